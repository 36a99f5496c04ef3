//! Rates of bytes and requests: by connection, route, client address and server.
//!
//! What lives here: the choice of each connection's pace, by the settings. Keeping it is the task
//! of [`gustnado_tls::Socket`]; the buckets' arithmetic is [`gustnado_tasks::Rate`].

mod clients;

use std::io;
use std::sync::Arc;

use gustnado_config::millis;
use gustnado_tasks::{Endpoint, Rate};
use gustnado_tls::{Buckets, Flows, Pacer};

use clients::Clients;

/// The pace of every connection, before any of its requests is known.
#[derive(Debug)]
pub struct Pace {
    connection: Flows,
    client: Flows,
    server: Flows,
    /// Of one client.
    requests: Option<Rate>,
    first_byte_delay_ms: u64,
    clients: Clients,
    server_buckets: Arc<Buckets>,
}

impl Pace {
    /// Returns `None` if nothing is paced, the default.
    pub fn new(config: &gustnado_config::Pace) -> Option<Self> {
        let flows = |write, write_burst, read, read_burst| Flows {
            write: Rate::steady(write, write_burst),
            read: Rate::steady(read, read_burst),
        };
        let requests_burst = match config.requests_burst {
            0 => config.requests_per_second,
            burst => burst,
        };
        let pace = Self {
            connection: flows(
                config.write_rate,
                config.write_burst,
                config.read_rate,
                config.read_burst,
            ),
            client: flows(
                config.client_write_rate,
                config.client_write_burst,
                config.client_read_rate,
                config.client_read_burst,
            ),
            server: flows(
                config.server_write_rate,
                config.server_write_burst,
                config.server_read_rate,
                config.server_read_burst,
            ),
            requests: Rate::new(config.requests_per_second, requests_burst),
            first_byte_delay_ms: millis(config.first_byte_delay),
            clients: Clients::new(config.clients_max),
            server_buckets: Arc::default(),
        };
        let is_free = pace.connection.is_free()
            && pace.client.is_free()
            && pace.server.is_free()
            && pace.requests.is_none()
            && pace.first_byte_delay_ms == 0;
        (!is_free).then_some(pace)
    }

    /// Returns the pacer of a new connection.
    ///
    /// - `peer`: returns the address, and is called only if it is needed; unknown ones count as one
    ///   client.
    pub fn pacer(&self, peer: impl FnOnce() -> io::Result<Endpoint>, now_ms: u64) -> Box<Pacer> {
        let mut pacer = Pacer::default();
        pacer.delay_first_byte(self.first_byte_delay_ms);
        pacer.own(self.connection);
        if !self.client.is_free() || self.requests.is_some() {
            let client = self.clients.of(&peer(), now_ms);
            pacer.share(self.client, &client);
            if let Some(rate) = self.requests {
                pacer.limit_requests(rate, client);
            }
        }
        pacer.share(self.server, &self.server_buckets);
        Box::new(pacer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_paced_unless_that_is_said() {
        assert!(Pace::new(&gustnado_config::Pace::default()).is_none());
        // Rates of accepting and of the workers leave connections unpaced.
        let pace =
            gustnado_config::Pace { accepts_per_second: 1, pass_delay_us: 1, ..Default::default() };
        assert!(Pace::new(&pace).is_none());
    }

    #[test]
    fn each_setting_alone_is_a_pace() {
        let of = |change: fn(&mut gustnado_config::Pace)| {
            let mut pace = gustnado_config::Pace::default();
            change(&mut pace);
            Pace::new(&pace)
        };
        assert!(of(|pace| pace.write_rate = 1).is_some());
        assert!(of(|pace| pace.read_rate = 1).is_some());
        assert!(of(|pace| pace.client_write_rate = 1).is_some());
        assert!(of(|pace| pace.client_read_rate = 1).is_some());
        assert!(of(|pace| pace.server_write_rate = 1).is_some());
        assert!(of(|pace| pace.server_read_rate = 1).is_some());
        assert!(of(|pace| pace.requests_per_second = 1).is_some());
        assert!(of(|pace| pace.first_byte_delay = std::time::Duration::from_millis(1)).is_some());
    }

    #[test]
    fn a_burst_of_requests_is_a_seconds_worth_unless_it_is_said() {
        let pace = |requests_burst| {
            let pace = gustnado_config::Pace {
                requests_per_second: 20,
                requests_burst,
                ..Default::default()
            };
            Pace::new(&pace).and_then(|pace| pace.requests)
        };
        assert_eq!((pace(0), pace(3)), (Rate::new(20, 20), Rate::new(20, 3)));
    }
}
