//! The pace of one route.

use std::sync::Arc;
use std::time::Duration;

use gustnado_config::millis;
use gustnado_tasks::Rate;
use gustnado_tls::ResponsePace;

/// The pace of a route, as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoutePace {
    pub write: u64,
    pub write_in_all: u64,
    pub read: u64,
    pub burst: u64,
    pub first_byte_delay: Duration,
}

impl RoutePace {
    /// Returns the rate at which requests' bodies are received.
    pub fn read_rate(self) -> Option<Rate> {
        Rate::steady(self.read, self.burst)
    }

    /// Returns the pace of the responses, if they have one.
    pub fn of_responses(self) -> Option<Arc<ResponsePace>> {
        let write = Rate::steady(self.write, self.burst);
        let in_all = Rate::steady(self.write_in_all, self.burst);
        ResponsePace::new(write, in_all, millis(self.first_byte_delay)).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_paced_unless_that_is_said() {
        assert!(RoutePace::default().of_responses().is_none());
    }
}
