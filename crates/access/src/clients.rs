//! The rate of each client's requests, in a table that never grows.
//!
//! A bucket is one number: when it will be full again (GCRA). A client has one of eight places of
//! its set, which a keyed hash of its address chooses. A place whose bucket is full again is free:
//! a client that comes back there would begin with a full one, too. If no place is free, the
//! newcomer takes that of the client which has waited for least, together with its debt: so a flood
//! of addresses gets through at the table's rate and no faster, a client that has a place keeps it
//! while it is active, and nobody is locked out.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use foldhash::quality::RandomState;
use gustnado_config::{AccessSettings, RequestRate};
use gustnado_tasks::Endpoint;

use crate::AccessError;

/// Places of a set.
const WAYS: usize = 8;
/// Sets that share a lock.
const LOCKS: usize = 64;

/// The rate of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientRate {
    /// Time from one request to the next.
    interval_us: u64,
    /// How far a bucket may be ahead of the time.
    ahead_us: u64,
}

/// A client's bucket. Its key is never 0, which is a place that nobody has.
#[derive(Clone, Copy, Default)]
struct ClientPlace {
    client: u64,
    /// When the bucket will be full.
    full_us: u64,
}

type Sets = Box<[[ClientPlace; WAYS]]>;

/// The rates of all clients.
pub(crate) struct ClientRates {
    rate: ClientRate,
    prefix: u32,
    hasher: RandomState,
    /// Sets by lock.
    locks: Box<[Mutex<Sets>]>,
}

impl std::fmt::Debug for ClientRates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientRates ({:?})", self.rate)
    }
}

impl ClientRates {
    /// Returns the rates of the settings; `None` without a limit.
    pub(crate) fn of(settings: &AccessSettings) -> Result<Option<Self>, AccessError> {
        if settings.rate_limit.is_empty() {
            return Ok(None);
        }
        let rate =
            RequestRate::parse(&settings.rate_limit).ok_or_else(|| AccessError::Setting {
                setting: "rate-limit",
                problem: format!(
                    "expected a rate such as 10/s, found {:?}; write it so",
                    settings.rate_limit
                ),
            })?;
        let burst = match settings.rate_limit_burst {
            0 => rate.per_second(),
            burst => burst,
        };
        let interval_us = rate.interval_us();
        let rate =
            ClientRate { interval_us, ahead_us: interval_us.saturating_mul(u64::from(burst)) };
        let sets = settings.rate_limit_clients.div_ceil(WAYS);
        let locks = LOCKS.min(sets).max(1);
        let of_lock = sets.div_ceil(locks).max(1);
        let new = || Mutex::new(vec![[ClientPlace::default(); WAYS]; of_lock].into_boxed_slice());
        Ok(Some(Self {
            rate,
            prefix: settings.rate_limit_prefix,
            hasher: RandomState::default(),
            locks: (0..locks).map(|_| new()).collect(),
        }))
    }

    /// Takes a request of a client.
    ///
    /// # Errors
    /// In how many milliseconds it may come again, at least 1.
    pub(crate) fn take(&self, client: Option<&Endpoint>, now_ms: u64) -> Result<(), u64> {
        let client = self.hasher.hash_one(ClientNetwork::of(client, self.prefix)).max(1);
        let time_us = now_ms.saturating_mul(1_000);
        let lock = usize::try_from(client >> 48).unwrap_or(0) % self.locks.len();
        let mut sets = self.locks[lock].lock().unwrap_or_else(PoisonError::into_inner);
        let set = usize::try_from(client & 0xffff_ffff).unwrap_or(0) % sets.len();
        let places = &mut sets[set];
        let known = places.iter().position(|place| place.client == client);
        let least = || {
            let all = places.iter().enumerate();
            all.min_by_key(|(_, place)| place.full_us).map_or(0, |(at, _)| at)
        };
        let place = &mut places[known.unwrap_or_else(least)];
        place.client = client;
        let full_us = place.full_us.max(time_us) + self.rate.interval_us;
        let latest_us = time_us.saturating_add(self.rate.ahead_us);
        if full_us <= latest_us {
            place.full_us = full_us;
            return Ok(());
        }
        Err((full_us - latest_us).div_ceil(1_000).max(1))
    }
}

/// What counts as one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientNetwork {
    V4(u32),
    /// The bits of the prefix, others zero.
    V6(u128),
    /// A Unix socket, or an unknown address.
    Unknown,
}

impl ClientNetwork {
    pub(crate) fn of(client: Option<&Endpoint>, prefix: u32) -> Self {
        let Some(Endpoint::Tcp(address)) = client else { return Self::Unknown };
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.to_bits()),
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
                Self::V6(ip.to_bits() & mask)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rate: &str, burst: u32, clients: usize) -> ClientRates {
        let settings = AccessSettings {
            rate_limit: rate.to_owned(),
            rate_limit_burst: burst,
            rate_limit_clients: clients,
            ..AccessSettings::default()
        };
        ClientRates::of(&settings).expect("well formed").expect("a rate")
    }

    fn take(rates: &ClientRates, ip: &str, now_ms: u64) -> Result<(), u64> {
        let ip: IpAddr = ip.parse().expect("an address of this test");
        rates.take(Some(&Endpoint::Tcp((ip, 1).into())), now_ms)
    }

    #[test]
    fn a_client_sends_its_burst_and_then_its_rate() {
        let rates = rates("10/s", 3, 64);
        for _ in 0..3 {
            assert_eq!(take(&rates, "192.0.2.1", 1_000), Ok(()));
        }
        assert_eq!(take(&rates, "192.0.2.1", 1_000), Err(100));
        assert_eq!(take(&rates, "192.0.2.2", 1_000), Ok(()), "another client");
        assert_eq!(take(&rates, "192.0.2.1", 1_099), Err(1));
        assert_eq!(take(&rates, "192.0.2.1", 1_100), Ok(()));
        assert_eq!(take(&rates, "192.0.2.1", 1_100), Err(100), "a refusal costs nothing");
        for _ in 0..3 {
            assert_eq!(take(&rates, "192.0.2.1", 9_000), Ok(()), "after a pause");
        }
        assert_eq!(take(&rates, "192.0.2.1", 9_000), Err(100));
    }

    #[test]
    fn the_burst_is_a_seconds_worth_unless_it_is_said() {
        let rates = rates("5/s", 0, 64);
        let taken = (0..20).filter(|_| take(&rates, "192.0.2.1", 5_000).is_ok()).count();
        assert_eq!(taken, 5);
        let slow = self::rates("6/m", 0, 64);
        assert_eq!(take(&slow, "192.0.2.1", 5_000), Ok(()));
        assert_eq!(take(&slow, "192.0.2.1", 5_000), Err(10_000));
    }

    #[test]
    fn an_ipv6_client_is_its_network_and_mapped_ipv4_is_ipv4() {
        let rates = rates("1/s", 1, 64);
        assert_eq!(take(&rates, "2001:db8:0:1::5", 0), Ok(()));
        assert!(take(&rates, "2001:db8:0:1:ffff::9", 0).is_err());
        assert_eq!(take(&rates, "2001:db8:0:2::5", 0), Ok(()));
        assert_eq!(take(&rates, "192.0.2.1", 0), Ok(()));
        assert!(take(&rates, "::ffff:192.0.2.1", 0).is_err());
        assert_eq!(rates.take(None, 0), Ok(()));
        assert!(rates.take(Some(&Endpoint::Unix("/a".into())), 0).is_err(), "the same unknown one");
    }

    /// A table of 64 places, and 100,000 addresses that send one request each within a second.
    #[test]
    fn a_flood_of_addresses_gets_through_at_the_tables_rate() {
        let rates = rates("1/s", 5, 64);
        let mut passed = 0;
        for number in 0..100_000_u32 {
            let ip = IpAddr::V4((0x0a00_0000 + number).into());
            let now_ms = u64::from(number / 100);
            passed += u32::from(rates.take(Some(&Endpoint::Tcp((ip, 1).into())), now_ms).is_ok());
        }
        // Each place lets its burst of five through, and one more in the second.
        assert!((64..=64 * 7).contains(&passed), "{passed}");
        // A newcomer is let in as soon as a place of its set has room, a second later at most.
        assert_eq!(take(&rates, "192.0.2.77", 2_000), Ok(()));
    }
}
