//! The buckets of each client address, for as long as they are needed.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use gustnado_tasks::Endpoint;
use gustnado_tls::Buckets;

use crate::client_key::ClientKey;

/// A full table is searched for clients to forget at most once in this time: under a flood of
/// addresses, each search would find nothing and cost as much as the table is long.
const SWEEP_MS: u64 = 1_000;

/// Buckets by client. Bounded: further clients share the buckets of one, so that a flood of
/// addresses is slowed rather than let through.
#[derive(Debug)]
pub(super) struct Clients {
    known_max: usize,
    table: Mutex<Table>,
    beyond: Arc<Buckets>,
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<ClientKey, Arc<Buckets>, RandomState>,
    swept_ms: Option<u64>,
}

impl Clients {
    pub(super) fn new(known_max: usize) -> Self {
        Self { known_max, table: Mutex::default(), beyond: Arc::default() }
    }

    /// Returns the buckets of a client. The lock is taken once per connection.
    pub(super) fn of(&self, peer: &io::Result<Endpoint>, now_ms: u64) -> Arc<Buckets> {
        let client = ClientKey::of(peer);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buckets) = table.known.get(&client) {
            return Arc::clone(buckets);
        }
        if table.known.len() >= self.known_max {
            table.sweep(now_ms);
        }
        if table.known.len() >= self.known_max {
            return Arc::clone(&self.beyond);
        }
        Arc::clone(table.known.entry(client).or_default())
    }
}

impl Table {
    /// Forgets clients without connections whose buckets are all full: a new entry would be the
    /// same.
    fn sweep(&mut self, now_ms: u64) {
        if self.swept_ms.is_some_and(|swept_ms| now_ms < swept_ms + SWEEP_MS) {
            return;
        }
        self.swept_ms = Some(now_ms);
        self.known.retain(|_, buckets| {
            let Buckets { write, read, requests } = &**buckets;
            let is_new = [write, read, requests].iter().all(|bucket| bucket.is_full(now_ms));
            Arc::strong_count(buckets) > 1 || !is_new
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_tasks::Rate;

    fn of(clients: &Clients, address: &str, now_ms: u64) -> Arc<Buckets> {
        let address = address.parse().expect("an address with a port");
        clients.of(&Ok(Endpoint::Tcp(address)), now_ms)
    }

    fn is_same(one: &Arc<Buckets>, other: &Arc<Buckets>) -> bool {
        Arc::ptr_eq(one, other)
    }

    #[test]
    fn a_client_is_an_address_whatever_its_port() {
        let clients = Clients::new(10);
        let one = of(&clients, "192.0.2.1:1000", 0);
        assert!(is_same(&one, &of(&clients, "192.0.2.1:2000", 0)));
        assert!(is_same(&one, &of(&clients, "[::ffff:192.0.2.1]:3000", 0)));
        assert!(!is_same(&one, &of(&clients, "192.0.2.2:1000", 0)));
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let clients = Clients::new(10);
        let one = of(&clients, "[2001:db8:0:1::5]:1", 0);
        assert!(is_same(&one, &of(&clients, "[2001:db8:0:1:ffff::9]:2", 0)));
        assert!(!is_same(&one, &of(&clients, "[2001:db8:0:2::5]:1", 0)));
    }

    #[test]
    fn those_of_whom_nothing_is_known_are_one() {
        let clients = Clients::new(10);
        let one = clients.of(&Ok(Endpoint::Unix("/run/a".into())), 0);
        assert!(is_same(&one, &clients.of(&Err(io::ErrorKind::Unsupported.into()), 0)));
    }

    #[test]
    fn a_full_table_forgets_who_would_be_new_again_and_never_grows() {
        let clients = Clients::new(2);
        let rate = Rate::new(1, 10).expect("a rate");
        let connected = of(&clients, "192.0.2.1:1", 0);
        let indebted = of(&clients, "192.0.2.2:1", 0);
        indebted.requests.take(rate, 0, 3);
        drop(indebted);
        let third = of(&clients, "192.0.2.3:1", 0);
        assert!(is_same(&third, &clients.beyond), "neither of the two may be forgotten");
        // Three seconds refill the bucket of its three requests.
        let fourth = of(&clients, "192.0.2.4:1", 3_000);
        assert!(!is_same(&fourth, &clients.beyond));
        assert!(is_same(&connected, &of(&clients, "192.0.2.1:9", 3_000)));
        assert!(is_same(&clients.beyond, &of(&clients, "192.0.2.5:1", 3_000)));
        // A second search within the same second is skipped.
        drop(fourth);
        assert!(is_same(&clients.beyond, &of(&clients, "192.0.2.5:1", 3_999)));
        assert!(!is_same(&clients.beyond, &of(&clients, "192.0.2.5:1", 4_000)));
    }
}
