//! Whether bytes that stop anywhere can still become a good whole, found by trying ends on them.
//!
//! The functions that read the whole say what is good: so nothing here can let pass what they
//! refuse. That no end is missing is tested: every beginning of a good whole passes.

/// The ends of IPv6 addresses.
pub(crate) const OF_ADDRESS: [&str; 12] =
    ["", "0", ":", "::", ":0", "0:0", ":0:0", ".0", "0.0", ".0.0", "0.0.0", ".0.0.0"];

/// The ends of names and of ports.
const OF_NAME: [&str; 3] = ["", "a", "0"];

/// Returns the ends of a host, in two parts.
pub(crate) fn of_host() -> impl Iterator<Item = [&'static str; 2]> {
    let of_literal = OF_ADDRESS.iter().map(|end| [*end, "]"]);
    OF_NAME.iter().map(|end| [*end, ""]).chain(of_literal)
}

/// Returns the ends of a word of ASCII: all of it first.
pub(crate) fn of_word(word: &str) -> impl Iterator<Item = [&str; 1]> {
    (0..word.len()).map(|from| [&word[from..]])
}

/// Returns whether bytes are good as they are, or one of these ends makes them so.
pub(crate) fn fit<'a, const PARTS: usize>(
    begun: &[u8],
    ends: impl IntoIterator<Item = [&'a str; PARTS]>,
    is_good: impl Fn(&[u8]) -> bool,
) -> bool {
    if is_good(begun) {
        return true;
    }
    let mut whole = begun.to_vec();
    ends.into_iter().any(|end| {
        whole.truncate(begun.len());
        for part in end {
            whole.extend_from_slice(part.as_bytes());
        }
        is_good(&whole)
    })
}

#[cfg(test)]
mod tests {
    use super::{OF_ADDRESS, fit, of_host};
    use crate::target::authority;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn is_address(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
    }

    /// Addresses in every notation: whole, shortened anywhere, with the last four bytes as IPv4.
    fn addresses() -> impl Strategy<Value = String> {
        let groups = prop::collection::vec(0..=u16::MAX, 8);
        (groups, 0..9_usize, 0..9_usize, any::<[u8; 4]>(), any::<bool>()).prop_map(
            |(groups, from, len, v4, ends_in_v4)| {
                let mut words: Vec<_> = groups.iter().map(|group| format!("{group:x}")).collect();
                if ends_in_v4 {
                    words.truncate(6);
                    words.push(v4.map(|byte| byte.to_string()).join("."));
                }
                let (from, to) = (from.min(words.len()), (from + len).min(words.len()));
                let (head, tail) = (words[..from].join(":"), words[to..].join(":"));
                if to == from { words.join(":") } else { format!("{head}::{tail}") }
            },
        )
    }

    proptest! {
        #[test]
        fn every_beginning_of_an_address_can_become_one(address in addresses()) {
            prop_assert!(is_address(address.as_bytes()), "{address}");
            for len in 0..address.len() {
                let begun = &address.as_bytes()[..len];
                let ends = OF_ADDRESS.map(|end| [end]);
                prop_assert!(fit(begun, ends, is_address), "{address} {len}");
            }
        }

        #[test]
        fn every_beginning_of_a_host_can_become_one(
            host in prop_oneof![
                "[a-z0-9._~!$&'()*+,;=-]{1,9}(:[0-9]{0,4})?",
                addresses().prop_map(|address| format!("[{address}]:65535")),
            ],
        ) {
            for len in 0..=host.len() {
                let begun = &host.as_bytes()[..len];
                let is_host = |bytes: &[u8]| authority(bytes).is_some();
                prop_assert!(fit(begun, of_host(), is_host), "{host} {len}");
            }
        }
    }

    #[test]
    fn what_no_end_can_mend_is_not_good() {
        for begun in
            ["1:2:3:4:5:6:7:8:", "12345", "1::2::", "1.", "::1.2.3.4.", "::256.", "g", ":1"]
        {
            assert!(!fit(begun.as_bytes(), OF_ADDRESS.map(|end| [end]), is_address), "{begun}");
        }
    }
}
