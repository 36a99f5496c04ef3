//! One listener: its address, and the settings of its own behind it.
//!
//! It is a text everywhere: in a flag, a variable, a program, and in a file, whose `[[listen]]`
//! tables become such a text.

use std::fmt;

use super::networks::is_network;
use super::text::is_address;

/// A listener, such as `127.0.0.1:80 proxy-protocol proxy-allow-from=10.0.0.0/8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenSpec {
    /// `127.0.0.1:80`, `[::1]:80`, `unix:/run/site.sock`, `unix:@name` or `fd:3`.
    pub address: String,
    /// Whether it speaks TLS: `https://` or `http://` before the address, or the word `tls`.
    /// `None`: if there is a certificate.
    pub tls: Option<bool>,
    /// In place of the setting `proxy-protocol`.
    pub proxy_protocol: Option<bool>,
    /// In place of the setting `proxy-allow-from`; empty is none of its own.
    pub proxy_allow_from: Vec<String>,
    /// In place of the setting `backlog`.
    pub backlog: Option<u32>,
    /// In place of the setting `defer-accept`.
    pub defer_accept: Option<bool>,
    /// In place of the setting `uds-mode`.
    pub mode: Option<u32>,
    /// In place of the setting `uds-owner`.
    pub owner: Option<String>,
    /// Whether an IPv6 address takes IPv6 only; `None` is the system's choice.
    pub v6only: Option<bool>,
    /// Whether the address may be one that the machine does not have yet.
    pub freebind: bool,
    /// The network interface that connections come from.
    pub device: Option<String>,
}

/// The names of its settings, as keys of a table have them.
pub(super) const KEYS: [&str; 10] = [
    "tls",
    "proxy-protocol",
    "proxy-allow-from",
    "backlog",
    "defer-accept",
    "mode",
    "owner",
    "v6only",
    "freebind",
    "device",
];

impl ListenSpec {
    /// Reads a listener: its address, then words and `name=value` with blanks between them. A
    /// backslash before a blank keeps it in the address.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = words(text).into_iter();
        let first = words.next().unwrap_or_default();
        let (address, tls) = match first.split_once("://") {
            Some(("https", address)) => (address.trim_end_matches('/').to_owned(), Some(true)),
            Some(("http", address)) => (address.trim_end_matches('/').to_owned(), Some(false)),
            _ => (first, None),
        };
        let mut spec = Self { address, tls, ..Self::default() };
        if !is_address(&spec.address) {
            let found = &spec.address;
            return Err(format!(
                "expected an address such as 127.0.0.1:80, [::1]:80, unix:/run/site.sock, \
                 unix:@name or fd:3, found {found:?}"
            ));
        }
        for word in words {
            let (name, value) = word.split_once('=').map_or((&*word, None), |(n, v)| (n, Some(v)));
            spec.set(name, value)?;
        }
        spec.fit()?;
        Ok(spec)
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let wrong = |expected: &str| {
            let found = value.map_or("nothing".to_owned(), |value| format!("{value:?}"));
            Err(format!("{name}: expected {expected}, found {found}"))
        };
        let switch = match value {
            None | Some("true" | "on" | "yes" | "1") => Some(true),
            Some("false" | "off" | "no" | "0") => Some(false),
            Some(_) => None,
        };
        match (name, switch, value) {
            ("tls", Some(on), _) => self.tls = Some(on),
            ("proxy-protocol", Some(on), _) => self.proxy_protocol = Some(on),
            ("defer-accept", Some(on), _) => self.defer_accept = Some(on),
            ("v6only", Some(on), _) => self.v6only = Some(on),
            ("freebind", Some(on), _) => self.freebind = on,
            ("tls" | "proxy-protocol" | "defer-accept" | "v6only" | "freebind", None, _) => {
                return wrong("true or false");
            }
            ("proxy-allow-from", _, Some(network)) if is_network(network) => {
                self.proxy_allow_from.push(network.to_owned());
            }
            ("proxy-allow-from", ..) => return wrong("192.0.2.1, 10.0.0.0/8, unix or *"),
            ("backlog", _, Some(number)) => match number.parse() {
                Ok(number @ 1..=65_535) => self.backlog = Some(number),
                _ => return wrong("a whole number from 1 to 65535"),
            },
            ("mode", _, Some(mode)) => match mode_of(mode) {
                Some(mode) => self.mode = Some(mode),
                None => return wrong("permissions in octal such as 660"),
            },
            ("owner", _, Some(owner)) if super::text::is_user(owner) && !owner.is_empty() => {
                self.owner = Some(owner.to_owned());
            }
            ("owner", ..) => return wrong("a user such as www-data, or a user and :GROUP"),
            ("device", _, Some(device)) if is_device(device) => {
                self.device = Some(device.to_owned());
            }
            ("device", ..) => return wrong("a network interface such as eth0"),
            ("backlog", ..) => return wrong("a whole number from 1 to 65535"),
            ("mode", ..) => return wrong("permissions in octal such as 660"),
            _ => {
                let known = KEYS.join(", ");
                return Err(format!(
                    "expected one of {known} behind the address, found {name:?}; a blank in a \
                     path is written as \"\\ \""
                ));
            }
        }
        Ok(())
    }

    /// Checks that what it has of its own is of use for its kind of address.
    fn fit(&self) -> Result<(), String> {
        let path = self.address.strip_prefix("unix:");
        let (has_file, is_tcp) = (
            path.is_some_and(|path| !path.starts_with('@')),
            path.is_none() && !self.address.starts_with("fd:"),
        );
        let is_v6 = is_tcp && (self.address.starts_with('[') || !is_number_host(&self.address));
        for (name, is_set, is_fit, of) in [
            ("mode", self.mode.is_some(), has_file, "a Unix socket with a path"),
            ("owner", self.owner.is_some(), has_file, "a Unix socket with a path"),
            ("v6only", self.v6only.is_some(), is_v6, "an IPv6 address such as [::]:80"),
            ("freebind", self.freebind, is_tcp, "an IP address"),
            ("device", self.device.is_some(), is_tcp, "an IP address"),
        ] {
            if is_set && !is_fit {
                let address = &self.address;
                return Err(format!("{name} is of {of}, found {address}; leave {name} out"));
            }
        }
        Ok(())
    }

    /// Returns whether it has settings that its sockets are bound with, not only its address.
    pub fn has_own(&self) -> bool {
        *self != Self { address: self.address.clone(), ..Self::default() }
    }
}

/// The text that it is read from again.
impl fmt::Display for ListenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address.replace('\\', "\\\\").replace(' ', "\\ "))?;
        let switches = [
            ("tls", self.tls),
            ("proxy-protocol", self.proxy_protocol),
            ("defer-accept", self.defer_accept),
            ("v6only", self.v6only),
            ("freebind", Some(true).filter(|_| self.freebind)),
        ];
        for (name, on) in switches {
            match on {
                Some(true) => write!(f, " {name}")?,
                Some(false) => write!(f, " {name}=false")?,
                None => {}
            }
        }
        for network in &self.proxy_allow_from {
            write!(f, " proxy-allow-from={network}")?;
        }
        let mode = self.mode.map(|mode| format!("{mode:o}"));
        let backlog = self.backlog.map(|backlog| backlog.to_string());
        let (owner, device) = (self.owner.clone(), self.device.clone());
        for (name, value) in
            [("backlog", backlog), ("mode", mode), ("owner", owner), ("device", device)]
        {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        Ok(())
    }
}

/// Returns permissions that are written in octal.
pub(super) fn mode_of(text: &str) -> Option<u32> {
    let digits = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    u32::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777)
}

fn is_device(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    (1..16).contains(&text.len()) && text.bytes().all(letter)
}

/// Returns whether the host of an address is an IPv4 address, and no name.
fn is_number_host(address: &str) -> bool {
    address.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte))
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = text.trim().chars();
    while let Some(letter) = letters.next() {
        let word = words.last_mut().expect("it begins with one");
        match letter {
            '\\' => word.extend(letters.next()),
            ' ' | '\t' if word.is_empty() => {}
            ' ' | '\t' => words.push(String::new()),
            letter => word.push(letter),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_written_as_it_is_read() {
        for text in [
            "127.0.0.1:80",
            "unix:/run/my\\ site.sock mode=660 owner=www-data:web",
            "unix:@name backlog=12",
            "fd:3 proxy-protocol proxy-allow-from=*",
            "[::]:80 defer-accept=false v6only freebind backlog=7 device=eth0",
            "0.0.0.0:80 proxy-protocol proxy-allow-from=10.0.0.0/8 proxy-allow-from=unix",
            "127.0.0.1:80 proxy-protocol=false",
            "[::]:443 tls",
            "unix:@x tls=false",
        ] {
            let spec = ListenSpec::parse(text).expect(text);
            assert_eq!(spec.to_string(), text);
        }
        let spec = ListenSpec::parse("unix:/a\\ b  mode=0600").expect("blanks may repeat");
        assert_eq!((&*spec.address, spec.mode), ("unix:/a b", Some(0o600)));
        for (text, address, tls) in [
            ("https://[::]:443", "[::]:443", Some(true)),
            ("https://127.0.0.1:443/ backlog=7", "127.0.0.1:443", Some(true)),
            ("http://127.0.0.1:80", "127.0.0.1:80", Some(false)),
            ("127.0.0.1:80", "127.0.0.1:80", None),
        ] {
            let spec = ListenSpec::parse(text).expect(text);
            assert_eq!((&*spec.address, spec.tls), (address, tls));
        }
        assert!(spec.has_own() && !ListenSpec::parse("[::1]:1").expect("plain").has_own());
    }

    #[test]
    fn mistakes_say_what_was_expected_and_found() {
        for (text, part) in [
            ("", "expected an address"),
            ("127.0.0.1", "expected an address"),
            ("127.0.0.1:80 proxy", "expected one of tls, proxy-protocol, "),
            ("unix:/my site.sock", "a blank in a path"),
            ("[::1]:80 v6only=maybe", "v6only: expected true or false, found \"maybe\""),
            ("127.0.0.1:80 v6only", "v6only is of an IPv6 address such as [::]:80, found 127"),
            ("127.0.0.1:80 mode=660", "mode is of a Unix socket with a path"),
            ("unix:@x mode=660", "leave mode out"),
            ("unix:/x mode=999", "mode: expected permissions in octal such as 660, found \"999\""),
            ("unix:/x device=eth0", "device is of an IP address"),
            ("fd:3 freebind", "freebind is of an IP address"),
            ("[::]:1 backlog=0", "backlog: expected a whole number from 1 to 65535"),
            ("[::]:1 backlog", "found nothing"),
            ("[::]:1 proxy-allow-from=x", "proxy-allow-from: expected 192.0.2.1"),
        ] {
            let error = ListenSpec::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
