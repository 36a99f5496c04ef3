//! Places of passwords that are checked or wait for it. The clients of one network have half of
//! them at most: a flood of wrong passwords leaves the others to everybody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use gustnado_tasks::Endpoint;

use crate::clients::ClientNetwork;

/// Bits of an IPv6 address that make a network.
const PREFIX: u32 = 64;

/// The places that networks have, which are as many as there are.
#[derive(Debug)]
pub struct CheckPlaces {
    of_network: usize,
    held: Mutex<HashMap<ClientNetwork, usize, RandomState>>,
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub struct CheckPlace {
    places: Arc<CheckPlaces>,
    network: ClientNetwork,
}

impl CheckPlaces {
    /// - `all`: how many there are.
    pub fn new(all: usize) -> Arc<Self> {
        Arc::new(Self { of_network: all.div_ceil(2), held: Mutex::default() })
    }

    /// Takes a place for a client; `None` if its network has its share.
    pub fn take(self: &Arc<Self>, client: Option<&Endpoint>) -> Option<CheckPlace> {
        let network = ClientNetwork::of(client, PREFIX);
        let mut held = self.lock();
        let places = held.entry(network).or_default();
        if *places >= self.of_network {
            return None;
        }
        *places += 1;
        Some(CheckPlace { places: Arc::clone(self), network })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientNetwork, usize, RandomState>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CheckPlace {
    fn drop(&mut self) {
        let mut held = self.places.lock();
        if let Some(places) = held.get_mut(&self.network) {
            *places -= 1;
            if *places == 0 {
                held.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_half_of_the_places() {
        let places = CheckPlaces::new(5);
        let client = |text: &str| Endpoint::Tcp(text.parse().expect("an address of this test"));
        let (flood, other) = (client("192.0.2.1:5"), client("192.0.2.2:5"));
        let mut held: Vec<_> = (0..3).map(|_| places.take(Some(&flood)).expect("one")).collect();
        assert!(places.take(Some(&flood)).is_none());
        assert!(places.take(Some(&other)).is_some() && places.take(None).is_some());
        held.pop();
        held.push(places.take(Some(&flood)).expect("it was given back"));
        assert!(places.take(Some(&client("[::ffff:192.0.2.1]:6"))).is_none(), "the same client");
        drop(held);
        assert!(places.lock().is_empty());
    }
}
