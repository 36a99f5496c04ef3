//! Limits of locations: how often a client may ask, and what it may send.

use super::syntax::Directive;
use super::value::{NO_SUCH_VALUE, SettingValue, Taken, is_valid, setting_of};

/// The limits of a scope, with what is inherited of them.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxLimits {
    /// Zones of `limit_req_zone`, each with its rate; none where a client is no address.
    zones: Vec<(String, Option<String>)>,
    /// The rate, and how many requests may come at once.
    rate: Option<(String, u32)>,
    /// It is the scope's own; otherwise the scope's first one replaces it, as in nginx.
    has_own_rate: bool,
    /// Those that are settings of the server, too.
    of_server: Vec<(&'static str, String)>,
}

/// Keys by which each address is a client.
const ADDRESSES: [&str; 2] = ["$binary_remote_addr", "$remote_addr"];

impl NginxLimits {
    /// Returns those of a location in this scope.
    pub(super) fn inner(&self) -> Self {
        Self { has_own_rate: false, ..self.clone() }
    }

    /// Returns the settings with their values.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&'static str, SettingValue)> {
        let rate = self.rate.iter().flat_map(|(rate, burst)| {
            [("rate-limit", rate.clone()), ("rate-limit-burst", burst.to_string())]
        });
        let all = rate.chain(self.of_server.iter().cloned());
        all.map(|(name, value)| (name, SettingValue::Text(value)))
    }

    /// Takes a directive that is a limit.
    pub(super) fn take(&mut self, one: &Directive) -> Taken {
        match (&*one.name, &one.args()[..]) {
            ("limit_req_zone", [key, rest @ ..]) => self.add_zone(key, rest),
            ("limit_req", args) => self.set_rate(args),
            // What is refused gets 429.
            ("limit_req_status", ["429"]) => Taken::Yes,
            ("client_max_body_size" | "client_body_timeout" | "send_timeout", _) => {
                let Some((name, Some(value))) = setting_of(one) else {
                    return Taken::Noted(NO_SUCH_VALUE);
                };
                self.of_server.retain(|(known, _)| *known != name);
                self.of_server.push((name, value));
                Taken::Yes
            }
            _ => Taken::Not,
        }
    }

    fn add_zone(&mut self, key: &str, rest: &[&str]) -> Taken {
        let (Some(zone), Some(rate)) = (parameter(rest, "zone="), parameter(rest, "rate=")) else {
            return Taken::Not;
        };
        let name = zone.split(':').next().unwrap_or_default().to_owned();
        let rate = rate.replace("r/", "/");
        let is_known = ADDRESSES.contains(&key) && is_valid("rate-limit", &rate);
        self.zones.push((name, is_known.then_some(rate)));
        Taken::Yes
    }

    /// A burst is what may come at once beyond the rate's next request.
    fn set_rate(&mut self, args: &[&str]) -> Taken {
        let zone = parameter(args, "zone=").unwrap_or_default();
        let known = self.zones.iter().find(|(name, _)| name == zone);
        let Some(rate) = known.and_then(|(_, rate)| rate.clone()) else {
            return Taken::Noted("only rates of each address are taken over: left out");
        };
        let burst = parameter(args, "burst=").map_or(Some(0), |text| text.parse().ok());
        let Some(burst) = burst.and_then(|burst: u32| burst.checked_add(1)) else {
            return Taken::Noted(NO_SUCH_VALUE);
        };
        let is_other = self.rate.as_ref().is_some_and(|(other, _)| *other != rate);
        if burst > 1_000_000 || self.has_own_rate && is_other {
            return Taken::Noted("one rate counts for a location: left out");
        }
        (self.rate, self.has_own_rate) = (Some((rate, burst)), true);
        if args.contains(&"nodelay") || burst == 1 {
            return Taken::Yes;
        }
        Taken::Noted("requests beyond the rate are refused, not delayed")
    }
}

/// Returns what follows a parameter's name, if it is given.
fn parameter<'a>(args: &[&'a str], name: &str) -> Option<&'a str> {
    args.iter().find_map(|text| text.strip_prefix(name))
}
