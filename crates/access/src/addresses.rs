//! Which clients may come, by their addresses.

use gustnado_config::{AccessSettings, Networks};
use gustnado_tasks::Endpoint;

use crate::AccessError;

/// The clients that may come.
#[derive(Clone, Debug)]
pub(crate) struct AddressRules {
    allow: Networks,
    deny: Networks,
}

impl AddressRules {
    /// Returns the rules of the settings; `None` if everybody may come.
    pub(crate) fn of(settings: &AccessSettings) -> Result<Option<Self>, AccessError> {
        let networks = |setting, texts: &[String]| {
            Networks::of(texts).map_err(|text| AccessError::Setting {
                setting,
                problem: format!("expected an address or a network, found {text:?}; write it so"),
            })
        };
        let allow = networks("allow", &settings.allow)?;
        let deny = networks("deny", &settings.deny)?;
        let is_open = (allow.is_empty() || allow.is_all()) && deny.is_empty();
        Ok((!is_open).then_some(Self { allow, deny }))
    }

    /// Returns whether a client may come. One whose address is unknown may not.
    ///
    /// - `through_stranger`: the connection is of a proxy on this machine that is not trusted to
    ///   name its clients: then they may be anywhere.
    pub(crate) fn admits(&self, client: Option<&Endpoint>, through_stranger: bool) -> bool {
        let Some(client) = client else { return false };
        let is_allowed = match () {
            () if self.allow.is_empty() || self.allow.is_all() => true,
            () => self.allow.has(client) && !through_stranger,
        };
        is_allowed && !self.deny.has(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Option<AddressRules> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let settings =
            AccessSettings { allow: owned(allow), deny: owned(deny), ..AccessSettings::default() };
        AddressRules::of(&settings).expect("well formed")
    }

    fn admits(rules: &AddressRules, ip: &str) -> bool {
        let address = format!("{ip}:1").parse().expect("an address of this test");
        rules.admits(Some(&Endpoint::Tcp(address)), false)
    }

    #[test]
    fn denied_addresses_are_denied_even_where_they_are_allowed() {
        let some = rules(&["10.0.0.0/8", "2001:db8::/32"], &["10.1.1.1"]).expect("some rules");
        assert!(admits(&some, "10.1.1.2") && admits(&some, "[2001:db8::1]"));
        assert!(!admits(&some, "10.1.1.1") && !admits(&some, "192.0.2.1"));
        let all_but_one = rules(&[], &["192.0.2.1"]).expect("some rules");
        assert!(admits(&all_but_one, "10.0.0.1") && !admits(&all_but_one, "192.0.2.1"));
        assert!(!admits(&all_but_one, "[::ffff:192.0.2.1]"), "IPv4 that came over IPv6");
    }

    #[test]
    fn whose_address_is_unknown_may_not_come() {
        let some = rules(&["10.0.0.0/8"], &[]).expect("some rules");
        assert!(!some.admits(None, false));
        let address = Endpoint::Tcp("10.0.0.1:1".parse().expect("an address"));
        assert!(some.admits(Some(&address), false) && !some.admits(Some(&address), true));
        assert!(rules(&[], &[]).is_none() && rules(&["*"], &[]).is_none());
    }
}
