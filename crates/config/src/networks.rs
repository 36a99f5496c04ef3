//! Sets of addresses: single ones, networks, Unix sockets, all.

use std::net::IpAddr;

use gustnado_tasks::Endpoint;

/// What [`Networks::of`] takes, for messages.
pub(crate) const NETWORKS: &str =
    "an address such as 192.0.2.1, a network such as 10.0.0.0/8, unix, or * for all";

/// Which peers are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// `*`
    all: bool,
    /// `unix`
    unix: bool,
    blocks: Vec<Block>,
}

/// Addresses that begin alike. IPv4 is kept as IPv6 has it (RFC 4291 §2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: u128,
    mask: u128,
}

impl Networks {
    /// Takes in `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`, `unix` and `*`.
    ///
    /// # Errors
    /// The first text that is none of these.
    pub fn of(texts: &[String]) -> Result<Self, &str> {
        let mut networks = Self::default();
        for text in texts {
            match &**text {
                "*" => networks.all = true,
                "unix" => networks.unix = true,
                text => networks.blocks.push(Block::parse(text).ok_or(text)?),
            }
        }
        Ok(networks)
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether every address is in the list.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Returns whether a peer is meant.
    pub fn has(&self, peer: &Endpoint) -> bool {
        match peer {
            Endpoint::Tcp(address) => self.has_ip(address.ip()),
            Endpoint::Unix(_) => self.all || self.unix,
            Endpoint::Inherited(_) => self.all,
        }
    }

    /// Returns whether an address is meant. IPv4 that came over IPv6 is IPv4.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        let bits = bits_of(ip);
        self.all || self.blocks.iter().any(|block| block.has(bits))
    }
}

impl Block {
    fn parse(text: &str) -> Option<Self> {
        let (ip, len) = match text.split_once('/') {
            Some((ip, len)) => (ip, Some(prefix_len(len)?)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().ok()?;
        let len_max = if ip.is_ipv4() { 32 } else { 128 };
        let len = len.unwrap_or(len_max);
        if len > len_max {
            return None;
        }
        let mask = u128::MAX.checked_shl(len_max - len).unwrap_or(0);
        let start = bits_of(ip);
        // Bits behind the network's own are a slip: one digit too few would mean millions more.
        (start & !mask == 0).then_some(Self { start, mask })
    }

    fn has(self, bits: u128) -> bool {
        bits & self.mask == self.start && is_ipv4(bits) == is_ipv4(self.start)
    }
}

/// Returns whether it is in `::ffff:0:0/96`.
fn is_ipv4(bits: u128) -> bool {
    bits >> 32 == 0xffff
}

fn bits_of(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn prefix_len(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns what [`Networks::of`] takes, for the settings.
pub fn is_network(text: &str) -> bool {
    matches!(text, "*" | "unix") || Block::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &str) -> Networks {
        let texts: Vec<String> = texts.split_whitespace().map(str::to_owned).collect();
        Networks::of(&texts).expect("each is well-formed")
    }

    fn has(networks: &Networks, ip: &str) -> bool {
        networks.has_ip(ip.parse().expect("an address of this test"))
    }

    #[test]
    fn a_network_has_what_begins_like_it() {
        let some = networks("10.0.0.0/8 192.0.2.1 192.0.2.128/25 2001:db8::/32 ::1");
        for ip in ["10.0.0.0", "10.255.255.255", "192.0.2.1", "192.0.2.200", "::ffff:10.1.2.3"] {
            assert!(has(&some, ip), "{ip}");
        }
        for ip in ["2001:db8::", "2001:db8:ffff::1", "::1"] {
            assert!(has(&some, ip), "{ip}");
        }
        for ip in ["9.255.255.255", "11.0.0.0", "192.0.2.2", "192.0.2.127", "2001:db9::", "::2"] {
            assert!(!has(&some, ip), "{ip}");
        }
        assert!(!some.has(&Endpoint::Unix("".into())) && !some.is_all() && !some.is_empty());
    }

    #[test]
    fn all_of_one_family_is_not_all_of_the_other() {
        let (old, new) = (networks("0.0.0.0/0"), networks("::/0"));
        assert!(has(&old, "192.0.2.1") && has(&old, "::ffff:192.0.2.1") && !has(&old, "::1"));
        assert!(has(&new, "::1") && !has(&new, "192.0.2.1") && !has(&new, "::ffff:192.0.2.1"));
        let mapped = networks("::ffff:192.0.2.0/120");
        assert!(has(&mapped, "192.0.2.9") && !has(&mapped, "192.0.3.9"));
    }

    #[test]
    fn words_mean_unix_sockets_and_everybody() {
        let (unix, tcp) = (Endpoint::Unix("".into()), "192.0.2.1:5".parse().map(Endpoint::Tcp));
        let tcp = tcp.expect("an address of this test");
        assert!(networks("unix").has(&unix) && !networks("unix").has(&tcp));
        assert!(networks("*").has(&unix) && networks("*").has(&tcp) && networks("*").is_all());
        assert!(networks("").is_empty() && !networks("").has(&unix) && !networks("").has(&tcp));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "localhost",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/a",
            "2001:db8::1/32",
            "::/129",
            "10.0.0.0/8/8",
            "[::1]",
            "127.0.0.1:80",
            "Unix",
            "1.2.3",
        ] {
            assert!(!is_network(text), "{text:?}");
            assert_eq!(Networks::of(&[text.to_owned()]), Err(text));
        }
        for text in ["*", "unix", "0.0.0.0/0", "::/0", "127.0.0.1/32", "::1/128"] {
            assert!(is_network(text), "{text}");
        }
    }
}
