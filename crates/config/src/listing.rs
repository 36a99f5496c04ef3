//! Listing of folders that have no index.

use gustnado_tasks::Endpoint;

use super::Config;
use super::listen::ListenSpec;

/// Listing of folders that have no `index.html`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// While the server listens on loopback addresses only, trusts no proxy, and standard error is
    /// a terminal: somebody tries it out, and no other machine can connect.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: such a folder gets 404.
    Off,
}

impl Listing {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["auto", "on", "off"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns whether folders are listed.
    ///
    /// - `endpoints`: all places where the server listens.
    /// - `on_terminal`: whether standard error is a terminal.
    #[doc(hidden)]
    pub fn is_on(self, config: &Config, endpoints: &[Endpoint], on_terminal: bool) -> bool {
        let is_loopback = |endpoint: &Endpoint| match endpoint {
            Endpoint::Tcp(address) => address.ip().to_canonical().is_loopback(),
            _ => false,
        };
        // Behind a proxy, every client comes from loopback.
        let has_own = |text: &String| {
            ListenSpec::parse(text).is_ok_and(|spec| spec.proxy_protocol == Some(true))
        };
        let has_proxy = config.proxy_protocol
            || config.listen.iter().any(has_own)
            || !config.forwarded_allow_ips.is_empty();
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Auto => on_terminal && !has_proxy && endpoints.iter().all(is_loopback),
        }
    }
}

/// Archives of what is in a folder, which clients may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archives {
    /// None.
    #[default]
    Off,
    /// All forms that there are.
    On,
    /// tar, compressed with Zstandard.
    TarZst,
    /// zip.
    Zip,
}

impl Archives {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 4] = [Self::Off, Self::On, Self::TarZst, Self::Zip];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 4] = ["off", "on", "tar.zst", "zip"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the forms that clients may ask for, by their names in a query.
    #[doc(hidden)]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Off => &[],
            Self::On => &["tar.zst", "zip"],
            Self::TarZst => &["tar.zst"],
            Self::Zip => &["zip"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(texts: &[&str]) -> Vec<Endpoint> {
        let endpoint = |text: &&str| match text.parse() {
            Ok(address) => Endpoint::Tcp(address),
            Err(_) => Endpoint::Unix((*text).into()),
        };
        texts.iter().map(endpoint).collect()
    }

    #[test]
    fn auto_lists_only_for_the_person_at_the_terminal() {
        let config = Config::default();
        let is_on = |texts: &[&str], on_terminal| {
            Listing::Auto.is_on(&config, &endpoints(texts), on_terminal)
        };
        assert!(is_on(&["127.0.0.1:80"], true));
        assert!(is_on(&["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"], true));
        assert!(!is_on(&["127.0.0.1:80"], false));
        assert!(!is_on(&["127.0.0.1:80", "192.0.2.1:80"], true));
        for open in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "/run/site.sock"] {
            assert!(!is_on(&[open], true), "{open}");
        }
    }

    #[test]
    fn behind_a_proxy_loopback_is_everybody() {
        let here = endpoints(&["127.0.0.1:80"]);
        let believing =
            Config { forwarded_allow_ips: vec!["127.0.0.1".to_owned()], ..Config::default() };
        let introduced = Config { proxy_protocol: true, ..Config::default() };
        for config in [believing, introduced] {
            assert!(!Listing::Auto.is_on(&config, &here, true));
            assert!(Listing::On.is_on(&config, &here, false));
        }
        assert!(!Listing::Off.is_on(&Config::default(), &here, true));
    }
}
