//! The number of connections that each client has open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use gustnado_tasks::Endpoint;

use crate::client_key::ClientKey;

/// Open connections by client. A client has an entry while it has a connection, so there are never
/// more entries than connections.
#[derive(Debug, Default)]
pub struct ClientSlots(Mutex<HashMap<ClientKey, u32, RandomState>>);

/// A connection's place among those of its client; dropping it gives it back.
#[derive(Debug)]
pub struct ClientSlot {
    slots: Arc<ClientSlots>,
    /// `None`: a peer that is not counted.
    client: Option<ClientKey>,
}

impl ClientSlots {
    /// Takes a slot of the client at `peer`; `None` if it has `per_client_max` already. Peers
    /// without an IP address are not counted.
    pub fn take(
        self: &Arc<Self>,
        peer: &io::Result<Endpoint>,
        per_client_max: u32,
    ) -> Option<ClientSlot> {
        let client = ClientKey::of(peer);
        if client == ClientKey::Unknown {
            return Some(self.uncounted());
        }
        let mut open = self.lock();
        let count = open.entry(client).or_default();
        if *count >= per_client_max {
            return None;
        }
        *count += 1;
        Some(ClientSlot { slots: Arc::clone(self), client: Some(client) })
    }

    /// Returns a slot that counts for no client.
    pub fn uncounted(self: &Arc<Self>) -> ClientSlot {
        ClientSlot { slots: Arc::clone(self), client: None }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientKey, u32, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        if let Entry::Occupied(mut count) = self.slots.lock().entry(client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(slots: &Arc<ClientSlots>, peer: &str, per_client_max: u32) -> Option<ClientSlot> {
        let address = peer.parse().expect("an address with a port");
        slots.take(&Ok(Endpoint::Tcp(address)), per_client_max)
    }

    #[test]
    fn each_client_has_its_number_and_gets_it_back() {
        let slots = Arc::new(ClientSlots::default());
        let take = |peer: &str| take(&slots, peer, 2);
        let (first, second) = (take("192.0.2.1:1"), take("192.0.2.1:2"));
        assert!(first.is_some() && second.is_some() && take("192.0.2.1:3").is_none());
        assert!(take("[::ffff:192.0.2.1]:4").is_none());
        let _other = take("192.0.2.2:1").expect("another client");
        drop(first);
        assert!(take("192.0.2.1:5").is_some(), "and it is given back at once");
        drop(second);
        assert_eq!(slots.lock().len(), 1, "no entry stays of who has gone");
    }

    #[test]
    fn a_network_of_ipv6_addresses_is_one_client() {
        let slots = Arc::new(ClientSlots::default());
        let first = take(&slots, "[2001:db8:0:1::5]:1", 1);
        assert!(first.is_some() && take(&slots, "[2001:db8:0:1:2::6]:1", 1).is_none());
        assert!(take(&slots, "[2001:db8:0:2::5]:1", 1).is_some());
    }

    #[test]
    fn who_has_no_address_is_not_counted() {
        let slots = Arc::new(ClientSlots::default());
        let unix = Ok(Endpoint::Unix("/run/a".into()));
        let _all: Vec<_> =
            (0..9).map(|_| slots.take(&unix, 1).expect("there is no limit")).collect();
        assert!(slots.take(&Err(io::ErrorKind::Unsupported.into()), 1).is_some());
    }
}
