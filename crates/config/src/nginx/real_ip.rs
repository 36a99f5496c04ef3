//! The client's address as a proxy names it: `set_real_ip_from` and what belongs to it.

use super::LeftOuts;
use super::syntax::Directive;
use super::value::Taken;
use crate::networks::Networks;

/// Why the directives are left out.
const LEFT: &str = "say by forwarded-allow-ips whose word counts: left out";

/// Proxies that name the client's address, with what is inherited of them.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxRealIp {
    /// Those of `http`.
    directives: Vec<Directive>,
    /// Those of `http` were read: servers and locations follow.
    is_settled: bool,
    /// It is not known here which address is the client's.
    is_unknown: bool,
}

impl NginxRealIp {
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// Takes a directive.
    pub(super) fn take(&mut self, one: &Directive) -> Taken {
        if !self.is_settled {
            self.directives.push(one.clone());
            return Taken::Yes;
        }
        self.is_unknown = true;
        Taken::Noted(LEFT)
    }

    /// Returns the trusted proxies, if the directives of `http` say what one setting says of all
    /// servers: the first address of X-Forwarded-For from the right that is none of theirs.
    pub(super) fn settle(&mut self, left: &mut LeftOuts) -> Option<Vec<String>> {
        self.is_settled = true;
        let of = |name: &str| {
            let all = self.directives.iter().filter(|one| one.name == name);
            all.map(|one| one.args().join(" ")).collect::<Vec<_>>()
        };
        let network = |text: String| if text == "unix:" { "unix".to_owned() } else { text };
        let from: Vec<String> = of("set_real_ip_from").into_iter().map(network).collect();
        if from.is_empty() {
            return None;
        }
        let header = of("real_ip_header").concat().to_ascii_lowercase();
        let is_network =
            |text: &String| text != "*" && Networks::of(std::slice::from_ref(text)).is_ok();
        let is_known = header == "x-forwarded-for" && of("real_ip_recursive") == ["on"];
        if is_known && from.iter().all(is_network) {
            return Some(from);
        }
        self.is_unknown = true;
        for one in &self.directives {
            left.add(one, LEFT);
        }
        None
    }
}
