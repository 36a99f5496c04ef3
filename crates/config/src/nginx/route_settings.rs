//! Directives that are settings of routes: who may come, how files are compressed, and how fast
//! they are sent.

use super::LeftOuts;
use super::limits::NginxLimits;
use super::real_ip::NginxRealIp;
use super::syntax::Directive;
use super::value::{NO_SUCH_VALUE, SettingValue, Taken, default_of, is_valid};
use crate::networks::Networks;

/// Settings of routes, with what is inherited of them.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxRouteSettings {
    /// `allow` and `deny` in their order: whether clients are allowed, and which.
    rules: Vec<(bool, String)>,
    /// Those are the scope's own; otherwise its first one replaces them, as in nginx.
    has_own_rules: bool,
    realm: Option<String>,
    users: Option<String>,
    real_ip: NginxRealIp,
    compresses: bool,
    types: Vec<String>,
    bytes_min: Option<String>,
    level: Option<String>,
    /// `on`, where compressed files are sent that lie beside others.
    precompressed: Option<&'static str>,
    write_rate: Option<String>,
    /// What texts are declared with; empty is nothing.
    charset: Option<String>,
    limits: NginxLimits,
}

/// Who may come, by `allow` and `deny`.
#[derive(Debug, PartialEq, Eq)]
enum AdmittedClients {
    Nobody,
    Some {
        allow: Vec<String>,
        deny: Vec<String>,
    },
    /// The order of the directives says what no two lists say.
    Unknown,
}

/// Directives of compression whose difference nobody can see who reads what is compressed.
const OF_GZIP: [&str; 5] =
    ["gzip_buffers", "gzip_disable", "gzip_http_version", "gzip_proxied", "gzip_vary"];

impl NginxRouteSettings {
    /// Returns those of a location in this scope.
    pub(super) fn inner(&self) -> Self {
        Self { has_own_rules: false, limits: self.limits.inner(), ..self.clone() }
    }

    /// Returns the proxies that name the client's address, if they are a setting of the server. Is
    /// called when all directives of `http` were read.
    pub(super) fn settle_real_ip(&mut self, left: &mut LeftOuts) -> Option<Vec<String>> {
        self.real_ip.settle(left)
    }

    /// Returns whether the same clients may come.
    pub(super) fn admits_as(&self, other: &Self) -> bool {
        self.access_lines() == other.access_lines()
    }

    /// Returns whether all clients may come.
    pub(super) fn admits_all(&self) -> bool {
        self.access_lines().is_empty()
    }

    /// Returns what texts are declared with, if it is given.
    pub(super) fn charset(&self) -> Option<&str> {
        self.charset.as_deref()
    }

    /// Returns the settings with their values.
    pub(super) fn lines(&self) -> Vec<(&'static str, SettingValue)> {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        let mut lines = self.access_lines();
        if self.compresses {
            // nginx compresses pages even where other types are named.
            let types = ["text/html".to_owned()].into_iter().chain(self.types.iter().cloned());
            lines.push(("compress", text("gzip")));
            lines.push(("compress-types", SettingValue::List(types.collect())));
            lines.extend(self.bytes_min.iter().map(|least| ("compress-bytes-min", text(least))));
            lines.extend(self.level.iter().map(|level| ("compress-gzip-level", text(level))));
        }
        lines.extend(self.precompressed.map(|value| ("precompressed", text(value))));
        lines.extend(self.write_rate.iter().map(|rate| ("write-rate", text(rate))));
        let charset = self.charset().filter(|one| !one.eq_ignore_ascii_case(default_of("charset")));
        lines.extend(charset.map(|charset| ("charset", text(charset))));
        lines.extend(self.limits.lines());
        lines
    }

    fn access_lines(&self) -> Vec<(&'static str, SettingValue)> {
        let mut lines = Vec::new();
        if let AdmittedClients::Some { allow, deny } = self.clients() {
            let both = [("allow", allow), ("deny", deny)].into_iter();
            let both = both.filter(|(_, all)| !all.is_empty());
            lines.extend(both.map(|(name, all)| (name, SettingValue::List(all))));
        }
        if let (Some(realm), Some(users)) = (&self.realm, &self.users) {
            lines.push(("basic-auth", SettingValue::Text(users.clone())));
            lines.push(("basic-auth-realm", SettingValue::Text(realm.clone())));
        }
        lines
    }

    /// Returns who may come. The first directive counts that names a client; here `deny` does.
    fn clients(&self) -> AdmittedClients {
        let (mut allow, mut deny) = (Vec::new(), Vec::new());
        let (mut has_late, mut is_end_closed) = (false, false);
        for (is_allowed, network) in &self.rules {
            match (is_allowed, network.as_str()) {
                (true, "all") => break,
                (false, "all") => {
                    is_end_closed = true;
                    break;
                }
                (true, _) if has_late => return AdmittedClients::Unknown,
                (true, network) => allow.push(network.to_owned()),
                (false, _) if !allow.is_empty() => has_late = true,
                (false, network) => deny.push(network.to_owned()),
            }
        }
        match (is_end_closed, allow.is_empty()) {
            (true, true) => AdmittedClients::Nobody,
            // Of others nobody may come, so that the late ones change nothing.
            (true, false) => AdmittedClients::Some { allow, deny },
            (false, _) if has_late => AdmittedClients::Unknown,
            (false, _) => AdmittedClients::Some { allow: Vec::new(), deny },
        }
    }
}

/// What the directives of a scope say together.
pub(super) enum SettingsConclusion {
    /// Something may be served.
    Open,
    /// Nothing may.
    Closed,
    /// What is meant cannot be said here, and so nothing may.
    Unclear(&'static str),
}

impl NginxRouteSettings {
    /// Takes a directive that is a setting of routes.
    pub(super) fn take(&mut self, one: &Directive) -> Taken {
        match (&*one.name, &one.args()[..]) {
            ("allow" | "deny", [network]) => return self.take_network(one, network),
            ("auth_basic", ["off"]) => self.realm = None,
            ("auth_basic", [realm]) if is_valid("basic-auth-realm", realm) => {
                self.realm = Some((*realm).to_owned());
            }
            ("auth_basic_user_file", [path]) => match &one.problem {
                None => self.users = Some((*path).to_owned()),
                Some(problem) => return Taken::Closed(problem.clone()),
            },
            ("set_real_ip_from" | "real_ip_header" | "real_ip_recursive", _) => {
                return self.real_ip.take(one);
            }
            ("charset", [name]) if *name == "off" || is_valid("charset", name) => {
                self.charset = Some(if *name == "off" { "" } else { name }.to_owned());
            }
            ("limit_rate", ["0"]) => self.write_rate = None,
            ("limit_rate", [rate]) if is_valid("write-rate", &rate.to_ascii_lowercase()) => {
                self.write_rate = Some(rate.to_ascii_lowercase());
            }
            (name, args) if name.starts_with("gzip") || name.ends_with("_static") => {
                return self.take_compression(name, args);
            }
            ("charset" | "limit_rate", _) => return Taken::Noted(NO_SUCH_VALUE),
            _ => return self.limits.take(one),
        }
        Taken::Yes
    }

    fn take_compression(&mut self, name: &str, args: &[&str]) -> Taken {
        match (name, args) {
            ("gzip", ["on"]) => self.compresses = true,
            ("gzip", ["off"]) => self.compresses = false,
            ("gzip_types", types) if types.iter().all(|kind| *kind == "*" || is_type(kind)) => {
                let kind = |kind: &&str| if *kind == "*" { "*/*" } else { *kind }.to_owned();
                self.types = types.iter().map(kind).filter(|one| one != "text/html").collect();
            }
            ("gzip_min_length", [text]) if is_valid("compress-bytes-min", text) => {
                self.bytes_min = Some((*text).to_owned());
            }
            ("gzip_comp_level", [text]) if is_valid("compress-gzip-level", text) => {
                self.level = Some((*text).to_owned());
            }
            ("gzip_static" | "brotli_static" | "zstd_static", ["on"]) => {
                self.precompressed = Some("on");
            }
            ("gzip_static" | "brotli_static" | "zstd_static", ["always"]) => {
                self.precompressed = Some("on");
                return Taken::Noted("clients that do not accept the coding get the file as it is");
            }
            ("gzip_static" | "brotli_static" | "zstd_static", ["off"]) => {}
            (name, _) if OF_GZIP.contains(&name) => {}
            (name, _) if name.starts_with("gzip") => return Taken::Noted(NO_SUCH_VALUE),
            _ => return Taken::Not,
        }
        Taken::Yes
    }

    fn take_network(&mut self, one: &Directive, network: &str) -> Taken {
        let network = if network == "unix:" { "unix" } else { network };
        let texts = [network.to_owned()];
        if network != "all" && (network == "*" || Networks::of(&texts).is_err()) {
            return Taken::Closed("expected an address, a network, unix: or all".to_owned());
        }
        if !self.has_own_rules {
            self.rules.clear();
            self.has_own_rules = true;
        }
        self.rules.push((one.name == "allow", network.to_owned()));
        Taken::Yes
    }

    /// Returns what the directives say together.
    pub(super) fn conclusion(&self) -> SettingsConclusion {
        match self.clients() {
            AdmittedClients::Unknown if self.has_own_rules => {
                SettingsConclusion::Unclear("allow before deny says what two lists do not say")
            }
            AdmittedClients::Nobody | AdmittedClients::Unknown => SettingsConclusion::Closed,
            AdmittedClients::Some { allow, deny }
                if self.real_ip.is_unknown() && !(allow.is_empty() && deny.is_empty()) =>
            {
                SettingsConclusion::Unclear("allow and deny are about addresses that a proxy names")
            }
            AdmittedClients::Some { .. } if self.realm.is_some() && self.users.is_none() => {
                SettingsConclusion::Unclear("auth_basic has no auth_basic_user_file")
            }
            AdmittedClients::Some { .. } => SettingsConclusion::Open,
        }
    }
}

/// Returns what keeps a file of users from being taken over.
pub(super) fn problem_of_users(text: &str) -> Option<String> {
    let hash = |line: &str| line.split(':').nth(1).unwrap_or_default().to_owned();
    let is_line = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let is_known = |hash: &String| {
        ["$2y$", "$2b$", "$2a$", "$argon2"].iter().any(|begin| hash.starts_with(begin))
    };
    let is_well = text.lines().filter(is_line).map(hash).all(|hash| is_known(&hash));
    (!is_well).then(|| {
        "its passwords have to be hashed by bcrypt or Argon2 (`gustnado passwd`)".to_owned()
    })
}

fn is_type(kind: &str) -> bool {
    is_valid("compress-types", kind) && !kind.contains(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(rules: &str) -> AdmittedClients {
        let rule = |rule: &str| {
            let (verb, network) = rule.split_once(' ').expect("two words");
            (verb == "allow", network.to_owned())
        };
        let rules = rules.split("; ").map(rule).collect();
        NginxRouteSettings { rules, ..NginxRouteSettings::default() }.clients()
    }

    #[test]
    fn lists_say_what_the_order_of_directives_says_or_nothing() {
        let some = |allow: &[&str], deny: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
            AdmittedClients::Some { allow: owned(allow), deny: owned(deny) }
        };
        for (rules, expected) in [
            ("allow 10.0.0.0/8; deny all", some(&["10.0.0.0/8"], &[])),
            ("deny 10.1.1.1; allow 10.0.0.0/8; deny all", some(&["10.0.0.0/8"], &["10.1.1.1"])),
            ("deny 192.0.2.1", some(&[], &["192.0.2.1"])),
            ("deny 192.0.2.1; allow all", some(&[], &["192.0.2.1"])),
            ("deny 192.0.2.1; allow 192.0.2.0/24", some(&[], &["192.0.2.1"])),
            ("allow 10.0.0.0/8", some(&[], &[])),
            ("allow all; deny 192.0.2.1", some(&[], &[])),
            ("deny all; allow 10.0.0.0/8", AdmittedClients::Nobody),
            ("allow 10.0.0.0/8; deny 10.1.1.1; deny all", some(&["10.0.0.0/8"], &[])),
            ("allow 10.1.1.1; deny 10.0.0.0/8", AdmittedClients::Unknown),
            ("allow 10.1.1.1; deny 10.0.0.0/8; allow 10.2.2.2; deny all", AdmittedClients::Unknown),
        ] {
            assert_eq!(clients(rules), expected, "{rules}");
        }
    }

    #[test]
    fn only_hashes_that_the_server_takes_are_taken_over() {
        for (text, is_well) in [
            ("# a\n\nann:$2y$05$abc:comment\n", true),
            ("ann:$argon2id$v=19$x", true),
            ("ann:$apr1$x$y", false),
            ("ann:$2y$05$abc\nbob:{SHA}xyz", false),
            ("ann", false),
        ] {
            assert_eq!(problem_of_users(text).is_none(), is_well, "{text}");
        }
    }
}
