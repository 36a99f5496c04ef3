//! Settings of pace, and their declarations.

use std::time::Duration;

use super::Config;
use super::fields::{duration, number};
use super::tunable::{SettingGroup, Tunable};

const MINUTE: u64 = 60_000;
const SECOND_US: u64 = 1_000_000;
/// Accepts or requests per second.
const COUNT: u64 = 1_000_000_000;

settings! { $
    /// Limits of pace. Zero, nearly every default, is no limit.
    ///
    /// A burst is how many bytes (or requests) may go at once after a pause. A burst of 0 is a
    /// quarter of a second's worth of bytes, or a second's worth of requests; less than a twentieth
    /// of a second's worth of bytes is raised to that. All connections from one address share the
    /// limits of a client: the whole address in IPv4, its first 64 bits in IPv6.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Pace, each_setting_of_pace;
    own {
        /// Clients that are counted one by one, 1 to 16,777,216; those beyond share one limit.
        clients_max: usize,
    }
    usual {
        /// How long an acceptor rests after each connection.
        accept_delay: Duration,
        /// Connections accepted per second.
        accepts_per_second: u64,
        /// Microseconds that a worker pauses after each round that did work.
        pass_delay_us: u64,
        /// Microseconds that a worker without work lets pass before it looks for work again.
        no_io_wait_us: u64,
        /// Least time from a request to the first byte of its response.
        first_byte_delay: Duration,
        /// Bytes per second sent on each connection.
        write_rate: u64,
        /// Bytes that a connection may send at once.
        write_burst: u64,
        /// Bytes per second received on each connection.
        read_rate: u64,
        /// Bytes that a connection may receive at once.
        read_burst: u64,
        /// Bytes per second sent to each client.
        client_write_rate: u64,
        /// Bytes that may be sent to a client at once.
        client_write_burst: u64,
        /// Bytes per second received from each client.
        client_read_rate: u64,
        /// Bytes that may be received from a client at once.
        client_read_burst: u64,
        /// Bytes per second sent by the server.
        server_write_rate: u64,
        /// Bytes that the server may send at once.
        server_write_burst: u64,
        /// Bytes per second received by the server.
        server_read_rate: u64,
        /// Bytes that the server may receive at once.
        server_read_burst: u64,
        /// Requests per second of each client.
        requests_per_second: u64,
        /// Requests that a client may send at once.
        requests_burst: u64,
    }
}

impl Default for Pace {
    /// Returns the table's defaults.
    fn default() -> Self {
        Config::default().pace
    }
}

/// Declares a limit of bytes per second.
macro_rules! rate {
    ($field:ident, $name:literal, $doc:literal) => {
        Tunable {
            name: $name,
            group: SettingGroup::Pace,
            default: "off",
            doc: $doc,
            field: number!(pace.$field, BytesPerSecond, 1..=1 << 40, or "off"),
        }
    };
}

/// Declares how many bytes may go at once where such a limit is set.
macro_rules! burst {
    ($field:ident, $name:literal, $doc:literal) => {
        Tunable {
            name: $name,
            group: SettingGroup::Pace,
            default: "auto",
            doc: $doc,
            field: number!(pace.$field, Bytes, 1..=1 << 40, or "auto"),
        }
    };
}

pub(super) const ACCEPT_DELAY: Tunable = Tunable {
    name: "accept-delay",
    group: SettingGroup::Pace,
    default: "off",
    doc: "How long an acceptor rests after each connection",
    field: duration!(pace.accept_delay, 1..=MINUTE, or "off"),
};

pub(super) const ACCEPTS_PER_SECOND: Tunable = Tunable {
    name: "accepts-per-second",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Connections accepted per second; others wait in the backlog",
    field: number!(pace.accepts_per_second, Count, 1..=COUNT, or "off"),
};

pub(super) const PASS_DELAY: Tunable = Tunable {
    name: "pass-delay-us",
    group: SettingGroup::Pace,
    default: "0",
    doc: "Microseconds a worker pauses after each round that did work",
    field: number!(pace.pass_delay_us, Microseconds, 0..=SECOND_US),
};

pub(super) const NO_IO_WAIT: Tunable = Tunable {
    name: "no-io-wait-us",
    group: SettingGroup::Pace,
    default: "0",
    doc: "Microseconds a worker without work waits, so that events come together",
    field: number!(pace.no_io_wait_us, Microseconds, 0..=SECOND_US),
};

pub(super) const FIRST_BYTE_DELAY: Tunable = Tunable {
    name: "first-byte-delay",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Least time from a request to the first byte of its response",
    field: duration!(pace.first_byte_delay, 1..=MINUTE, or "off"),
};

pub(super) const WRITE_RATE: Tunable =
    rate!(write_rate, "write-rate", "Bytes per second sent on each connection");

pub(super) const WRITE_BURST: Tunable = burst!(
    write_burst,
    "write-burst",
    "Bytes that a connection may send at once; auto is 250 ms' worth"
);

pub(super) const READ_RATE: Tunable =
    rate!(read_rate, "read-rate", "Bytes per second received on each connection");

pub(super) const READ_BURST: Tunable = burst!(
    read_burst,
    "read-burst",
    "Bytes that a connection may receive at once; auto is 250 ms' worth"
);

pub(super) const CLIENT_WRITE_RATE: Tunable =
    rate!(client_write_rate, "client-write-rate", "Bytes per second sent to each client address");

pub(super) const CLIENT_WRITE_BURST: Tunable = burst!(
    client_write_burst,
    "client-write-burst",
    "Bytes sent to a client address at once; auto is 250 ms' worth"
);

pub(super) const CLIENT_READ_RATE: Tunable = rate!(
    client_read_rate,
    "client-read-rate",
    "Bytes per second received from each client address"
);

pub(super) const CLIENT_READ_BURST: Tunable = burst!(
    client_read_burst,
    "client-read-burst",
    "Bytes received from a client address at once; auto is 250 ms' worth"
);

pub(super) const SERVER_WRITE_RATE: Tunable =
    rate!(server_write_rate, "server-write-rate", "Bytes per second sent by the server in all");

pub(super) const SERVER_WRITE_BURST: Tunable = burst!(
    server_write_burst,
    "server-write-burst",
    "Bytes that the server may send at once; auto is 250 ms' worth"
);

pub(super) const SERVER_READ_RATE: Tunable =
    rate!(server_read_rate, "server-read-rate", "Bytes per second received by the server in all");

pub(super) const SERVER_READ_BURST: Tunable = burst!(
    server_read_burst,
    "server-read-burst",
    "Bytes that the server may receive at once; auto is 250 ms' worth"
);

pub(super) const REQUESTS_PER_SECOND: Tunable = Tunable {
    name: "requests-per-second",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Requests per second of each client address; more get 429",
    field: number!(pace.requests_per_second, Count, 1..=COUNT, or "off"),
};

pub(super) const REQUESTS_BURST: Tunable = Tunable {
    name: "requests-burst",
    group: SettingGroup::Pace,
    default: "auto",
    doc: "Requests of a client address at once; auto is a second's worth",
    field: number!(pace.requests_burst, Count, 1..=COUNT, or "auto"),
};

pub(super) const PACE_CLIENTS_MAX: Tunable = Tunable {
    name: "pace-clients-max",
    group: SettingGroup::Pace,
    default: "65536",
    doc: "Client addresses with limits of their own; those beyond share the limits of one",
    field: number!(pace.clients_max, Count, 1..=1 << 24),
};
