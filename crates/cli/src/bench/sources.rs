//! The addresses to connect from: `127.0.0.5`, or all of `127.0.0.0/24`.

use crate::usage_error::UsageError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of addresses: each one has tens of thousands of ports.
const ADDRESSES_MAX: usize = 65_536;

/// Parses a list of addresses and networks, in order.
///
/// # Errors
/// A text that is neither an address nor a network, or too many addresses.
pub(super) fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<IpAddr>, UsageError> {
    let mut found = Vec::new();
    for text in texts {
        let wrong = |why: &str| {
            let form = "expected an address such as 127.0.0.5 or a network such as 127.0.0.0/24";
            UsageError::of_usage(format!("--source: {form}, found {text:?}{why}"))
        };
        let (address, length) = match text.split_once('/') {
            None => (text, None),
            Some((address, length)) => {
                (address, Some(length.parse::<u32>().map_err(|_| wrong(""))?))
            }
        };
        let address: IpAddr = address.parse().map_err(|_| wrong(""))?;
        let Some(length) = length else {
            found.push(address);
            continue;
        };
        let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
        let host_bits =
            bits.checked_sub(length).ok_or_else(|| wrong("; its length is too large"))?;
        if host_bits > 16 {
            return Err(wrong(&format!("; at most {ADDRESSES_MAX} addresses are taken")));
        }
        found.extend(network(address, host_bits));
    }
    if found.len() > ADDRESSES_MAX {
        return Err(UsageError::of_usage(format!(
            "--source: at most {ADDRESSES_MAX} addresses are taken"
        )));
    }
    Ok(found)
}

/// All addresses of a network except the first and the last one, which are the network's own and
/// the broadcast address.
fn network(address: IpAddr, host_bits: u32) -> Vec<IpAddr> {
    let size = 1_u128 << host_bits;
    let inner = if host_bits < 2 { 0..size } else { 1..size - 1 };
    match address {
        IpAddr::V4(address) => {
            let base = u128::from(address.to_bits()) & !(size - 1);
            let of = |bits: u128| u32::try_from(bits).expect("it begins as 32 bits");
            inner.map(|host| Ipv4Addr::from_bits(of(base | host)).into()).collect()
        }
        IpAddr::V6(address) => {
            let base = address.to_bits() & !(size - 1);
            inner.map(|host| Ipv6Addr::from_bits(base | host).into()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<String> {
        let found = read(std::iter::once(text)).expect(text);
        found.iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn a_network_is_its_addresses_without_the_first_and_the_last() {
        let found = addresses("127.0.0.0/24");
        assert_eq!(found.len(), 254);
        assert_eq!((&*found[0], &*found[253]), ("127.0.0.1", "127.0.0.254"));
        assert_eq!(addresses("127.0.0.77/24"), found, "the network is meant");
        assert_eq!(addresses("127.0.0.9"), ["127.0.0.9"]);
        assert_eq!(addresses("127.0.0.9/32"), ["127.0.0.9"]);
        assert_eq!(addresses("127.0.0.8/31"), ["127.0.0.8", "127.0.0.9"]);
        assert_eq!(addresses("127.0.0.8/30"), ["127.0.0.9", "127.0.0.10"]);
        assert_eq!(addresses("::1"), ["::1"]);
        assert_eq!(addresses("fd00::/126"), ["fd00::1", "fd00::2"]);
        assert_eq!(addresses("127.1.0.0/16").len(), 65_534);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "localhost", "127.0.0.1/", "127.0.0.1/33", "127.0.0.0/8", "::/64", "1/2/3"]
        {
            let refused = read(std::iter::once(text)).expect_err(text);
            assert!(refused.line.starts_with("--source: expected an address"), "{}", refused.line);
        }
        assert!(read(["127.1.0.0/16", "127.2.0.0/16"].into_iter()).is_err());
    }
}
