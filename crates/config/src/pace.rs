//! Settings of pace, and their declarations.

use std::time::Duration;

use gustnado_tasks::Throttle;

use super::Config;
use super::numbers::millis;
use super::tunable::{Field, SettingGroup, Tunable};
use super::unit::Unit;

const MINUTE: u64 = 60_000;
const SECOND_US: u64 = 1_000_000;
/// Accepts or requests per second.
const COUNT: u64 = 1_000_000_000;

settings! { $
    /// Limits of pace. Zeros, which are nearly all defaults, slow nothing down.
    ///
    /// A burst is how many bytes (or requests) may go at once after a pause. A burst of 0 is a
    /// quarter of a second's worth of bytes, or a second's worth of requests; less than a twentieth
    /// of a second's worth of bytes is raised to that. What a client may is shared by all
    /// connections from its address: its whole address in IPv4, the first 64 bits of it in IPv6.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Pace, each_setting_of_pace;
    own {
        /// Clients that are told apart, 1 to 16,777,216; those beyond share what one of them may.
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
    /// The table's defaults.
    fn default() -> Self {
        Config::default().pace
    }
}

impl Pace {
    /// Returns what slows accepting and the workers themselves.
    #[doc(hidden)]
    pub fn throttle(&self) -> Throttle {
        Throttle {
            accept_delay_ms: millis(self.accept_delay),
            accepts_per_second: self.accepts_per_second,
            pass_delay_us: self.pass_delay_us,
            no_io_wait_us: self.no_io_wait_us,
        }
    }
}

type Get = fn(&Config) -> u64;
type Set = fn(&mut Config, u64);

pub(super) const ACCEPT_DELAY: Tunable = Tunable {
    name: "accept-delay",
    group: SettingGroup::Pace,
    default: "off",
    doc: "How long an acceptor rests after each connection",
    field: Field::Number {
        unit: Unit::Duration,
        min: 1,
        max: MINUTE,
        zero: Some("off"),
        get: |config| millis(config.pace.accept_delay),
        set: |config, number| config.pace.accept_delay = Duration::from_millis(number),
    },
};

pub(super) const ACCEPTS_PER_SECOND: Tunable = Tunable {
    name: "accepts-per-second",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Connections accepted per second; others wait in the backlog",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: COUNT,
        zero: Some("off"),
        get: |config| config.pace.accepts_per_second,
        set: |config, number| config.pace.accepts_per_second = number,
    },
};

pub(super) const PASS_DELAY: Tunable = Tunable {
    name: "pass-delay-us",
    group: SettingGroup::Pace,
    default: "0",
    doc: "Microseconds a worker pauses after each round that did work",
    field: Field::Number {
        unit: Unit::Microseconds,
        min: 0,
        max: SECOND_US,
        zero: None,
        get: |config| config.pace.pass_delay_us,
        set: |config, number| config.pace.pass_delay_us = number,
    },
};

pub(super) const NO_IO_WAIT: Tunable = Tunable {
    name: "no-io-wait-us",
    group: SettingGroup::Pace,
    default: "0",
    doc: "Microseconds a worker without work waits, so that events come together",
    field: Field::Number {
        unit: Unit::Microseconds,
        min: 0,
        max: SECOND_US,
        zero: None,
        get: |config| config.pace.no_io_wait_us,
        set: |config, number| config.pace.no_io_wait_us = number,
    },
};

pub(super) const FIRST_BYTE_DELAY: Tunable = Tunable {
    name: "first-byte-delay",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Least time from a request to the first byte of its response",
    field: Field::Number {
        unit: Unit::Duration,
        min: 1,
        max: MINUTE,
        zero: Some("off"),
        get: |config| millis(config.pace.first_byte_delay),
        set: |config, number| config.pace.first_byte_delay = Duration::from_millis(number),
    },
};

pub(super) const WRITE_RATE: Tunable = rate(
    "write-rate",
    "Bytes per second sent on each connection",
    |config| config.pace.write_rate,
    |config, number| config.pace.write_rate = number,
);

pub(super) const WRITE_BURST: Tunable = burst(
    "write-burst",
    "Bytes that a connection may send at once; auto is 250 ms' worth",
    |config| config.pace.write_burst,
    |config, number| config.pace.write_burst = number,
);

pub(super) const READ_RATE: Tunable = rate(
    "read-rate",
    "Bytes per second received on each connection",
    |config| config.pace.read_rate,
    |config, number| config.pace.read_rate = number,
);

pub(super) const READ_BURST: Tunable = burst(
    "read-burst",
    "Bytes that a connection may receive at once; auto is 250 ms' worth",
    |config| config.pace.read_burst,
    |config, number| config.pace.read_burst = number,
);

pub(super) const CLIENT_WRITE_RATE: Tunable = rate(
    "client-write-rate",
    "Bytes per second sent to each client address",
    |config| config.pace.client_write_rate,
    |config, number| config.pace.client_write_rate = number,
);

pub(super) const CLIENT_WRITE_BURST: Tunable = burst(
    "client-write-burst",
    "Bytes sent to a client address at once; auto is 250 ms' worth",
    |config| config.pace.client_write_burst,
    |config, number| config.pace.client_write_burst = number,
);

pub(super) const CLIENT_READ_RATE: Tunable = rate(
    "client-read-rate",
    "Bytes per second received from each client address",
    |config| config.pace.client_read_rate,
    |config, number| config.pace.client_read_rate = number,
);

pub(super) const CLIENT_READ_BURST: Tunable = burst(
    "client-read-burst",
    "Bytes received from a client address at once; auto is 250 ms' worth",
    |config| config.pace.client_read_burst,
    |config, number| config.pace.client_read_burst = number,
);

pub(super) const SERVER_WRITE_RATE: Tunable = rate(
    "server-write-rate",
    "Bytes per second sent by the server in all",
    |config| config.pace.server_write_rate,
    |config, number| config.pace.server_write_rate = number,
);

pub(super) const SERVER_WRITE_BURST: Tunable = burst(
    "server-write-burst",
    "Bytes that the server may send at once; auto is 250 ms' worth",
    |config| config.pace.server_write_burst,
    |config, number| config.pace.server_write_burst = number,
);

pub(super) const SERVER_READ_RATE: Tunable = rate(
    "server-read-rate",
    "Bytes per second received by the server in all",
    |config| config.pace.server_read_rate,
    |config, number| config.pace.server_read_rate = number,
);

pub(super) const SERVER_READ_BURST: Tunable = burst(
    "server-read-burst",
    "Bytes that the server may receive at once; auto is 250 ms' worth",
    |config| config.pace.server_read_burst,
    |config, number| config.pace.server_read_burst = number,
);

pub(super) const REQUESTS_PER_SECOND: Tunable = Tunable {
    name: "requests-per-second",
    group: SettingGroup::Pace,
    default: "off",
    doc: "Requests per second of each client address; more get 429",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: COUNT,
        zero: Some("off"),
        get: |config| config.pace.requests_per_second,
        set: |config, number| config.pace.requests_per_second = number,
    },
};

pub(super) const REQUESTS_BURST: Tunable = Tunable {
    name: "requests-burst",
    group: SettingGroup::Pace,
    default: "auto",
    doc: "Requests of a client address at once; auto is a second's worth",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: COUNT,
        zero: Some("auto"),
        get: |config| config.pace.requests_burst,
        set: |config, number| config.pace.requests_burst = number,
    },
};

pub(super) const PACE_CLIENTS_MAX: Tunable = Tunable {
    name: "pace-clients-max",
    group: SettingGroup::Pace,
    default: "65536",
    doc: "Client addresses with limits of their own; those beyond share the limits of one",
    field: Field::Number {
        unit: Unit::Count,
        min: 1,
        max: 1 << 24,
        zero: None,
        get: |config| config.pace.clients_max as u64,
        set: |config, number| {
            config.pace.clients_max =
                usize::try_from(number).expect("the range above is within its type");
        },
    },
};

const fn rate(name: &'static str, doc: &'static str, get: Get, set: Set) -> Tunable {
    let (unit, zero) = (Unit::BytesPerSecond, Some("off"));
    let field = Field::Number { unit, min: 1, max: 1 << 40, zero, get, set };
    Tunable { name, group: SettingGroup::Pace, default: "off", doc, field }
}

const fn burst(name: &'static str, doc: &'static str, get: Get, set: Set) -> Tunable {
    let (unit, zero) = (Unit::Bytes, Some("auto"));
    let field = Field::Number { unit, min: 1, max: 1 << 40, zero, get, set };
    Tunable { name, group: SettingGroup::Pace, default: "auto", doc, field }
}
