//! Limits of the server that a site and a route may have of their own.

use std::time::Duration;

use crate::Config;
use crate::tunable::Tunable;

/// The settings that a `[[site]]` and a `[[route]]` take, too, in place of the server's.
const LIMITS_OF_ROUTES: [&str; 7] = [
    "limit-body-bytes",
    "body-timeout",
    "write-timeout",
    "write-rate",
    "write-burst",
    "read-rate",
    "first-byte-delay",
];

impl Tunable {
    /// Returns whether a site or a route may have a value of its own: those [of
    /// routes](Self::is_of_route), and some limits of the server.
    pub fn fits_route(&self) -> bool {
        self.is_of_route() || LIMITS_OF_ROUTES.contains(&self.name)
    }
}

/// Limits in place of the server's; `None` is the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteLimits {
    /// Largest body of a request, in bytes.
    pub body_bytes_max: Option<u64>,
    /// Longest silence while a body is received.
    pub body_timeout: Option<Duration>,
    /// Longest time without progress while a response is sent.
    pub write_timeout: Option<Duration>,
    /// Bytes per second of responses, on each connection.
    pub write_rate: Option<u64>,
    /// Bytes that may go at once under a rate.
    pub write_burst: Option<u64>,
    /// Bytes per second of bodies, on each connection.
    pub read_rate: Option<u64>,
    /// Least time from a request to the first byte of its response.
    pub first_byte_delay: Option<Duration>,
}

impl RouteLimits {
    /// Takes one of the [settings](LIMITS_OF_ROUTES).
    ///
    /// - `config`: has its value.
    pub(crate) fn set(&mut self, name: &str, config: &Config) {
        match name {
            "limit-body-bytes" => self.body_bytes_max = Some(config.limit_body_bytes),
            "body-timeout" => self.body_timeout = Some(config.body_timeout),
            "write-timeout" => self.write_timeout = Some(config.write_timeout),
            "write-rate" => self.write_rate = Some(config.pace.write_rate),
            "write-burst" => self.write_burst = Some(config.pace.write_burst),
            "read-rate" => self.read_rate = Some(config.pace.read_rate),
            "first-byte-delay" => self.first_byte_delay = Some(config.pace.first_byte_delay),
            other => unreachable!("{other} is no limit of routes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TUNABLES;

    #[test]
    fn each_of_them_is_a_setting_of_the_server() {
        let mut limits = RouteLimits::default();
        for name in LIMITS_OF_ROUTES {
            assert!(TUNABLES.iter().any(|tunable| tunable.name == name), "{name}");
            let before = limits.clone();
            limits.set(name, &Config::default());
            assert_ne!(limits, before, "{name}");
        }
    }
}
