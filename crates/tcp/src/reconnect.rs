//! Connections that are made again: later and later, and not all at once.

use std::f64::consts::{E, TAU};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use gustnado_tasks::{Endpoint, Lock};

use super::calls::DelayedCall;
use super::{ConnectError, Connector, Factory, Protocol, Reason};

/// The waits before a connection is made again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Before the first time; at least 1 ms. 1 s by default.
    pub initial: Duration,
    /// Factor by which each further wait grows; at least 1. e by default.
    pub factor: f64,
    /// Standard deviation of the wait, as a part of it, so that many clients do not come back at
    /// the same moment; 0 for none. 0.1196 by default.
    pub jitter: f64,
    /// The longest wait. One hour by default.
    pub max: Duration,
    /// Most attempts until [`Retry::reset_delay`]; `None`, the default, is no limit.
    pub retries_max: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            factor: E,
            jitter: 0.119_626_564_72,
            max: Duration::from_hours(1),
            retries_max: None,
        }
    }
}

impl Backoff {
    /// Returns the wait before the time that follows `retries` others. `deviation` is in standard
    /// deviations.
    fn wait(&self, retries: u32, deviation: f64) -> Duration {
        let exponent = i32::try_from(retries).unwrap_or(i32::MAX);
        let max = self.max.as_secs_f64();
        let initial = self.initial.as_secs_f64().max(0.001);
        let base = (initial * self.factor.max(1.0).powi(exponent)).min(max);
        let wait = (base + base * self.jitter * deviation).clamp(0.0, max);
        Duration::try_from_secs_f64(wait).unwrap_or(self.max)
    }
}

/// The attempts of one [`ReconnectingClientFactory`]. Clones are the same.
///
/// Make it before the factory where protocols are to call [`Retry::reset_delay`] once they see that
/// the connection is of use.
#[derive(Clone, Default)]
pub struct Retry {
    inner: Arc<Lock<Tries>>,
}

#[derive(Default)]
struct Tries {
    backoff: Backoff,
    /// Attempts since the start, or since the last reset.
    retries: u32,
    given_up: bool,
    next: Option<DelayedCall>,
}

impl Retry {
    /// Attempts with such waits between them.
    pub fn new(backoff: Backoff) -> Self {
        Self { inner: Arc::new(Lock::new(Tries { backoff, ..Tries::default() })) }
    }

    /// Begins with the initial wait again: the connection is of use.
    pub fn reset_delay(&self) {
        self.inner.lock().retries = 0;
    }

    /// Makes no more connections; one that is there, or being made, is left alone.
    pub fn stop_trying(&self) {
        let next = {
            let mut tries = self.inner.lock();
            tries.given_up = true;
            tries.next.take()
        };
        if let Some(next) = next {
            next.cancel();
        }
    }

    /// Returns the number of attempts to make the connection again since the last reset.
    pub fn retries(&self) -> u32 {
        self.inner.lock().retries
    }

    /// Makes `connector` connect again after the next wait, unless that is over or the engine
    /// stops.
    pub fn retry(&self, connector: &Connector) {
        let mut tries = self.inner.lock();
        let enough = tries.backoff.retries_max.is_some_and(|max| tries.retries >= max);
        if tries.given_up || enough || connector.engine().is_stopping() {
            return;
        }
        let wait = tries.backoff.wait(tries.retries, deviation());
        tries.retries = tries.retries.saturating_add(1);
        let again = connector.clone();
        // Refused, the engine stops, or has a million calls waiting: then that is the end.
        tries.next = connector.engine().call_later(wait, move || again.connect()).ok();
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = self.inner.lock();
        f.debug_struct("Retry")
            .field("retries", &tries.retries)
            .field("given_up", &tries.given_up)
            .finish_non_exhaustive()
    }
}

/// A factory of clients whose connection is made again when it is lost, or could not be made. The
/// waits in between grow ([`Backoff`]). The inner factory gets every callback, too.
#[derive(Debug)]
pub struct ReconnectingClientFactory<F> {
    factory: F,
    retry: Retry,
}

impl<F: Factory> ReconnectingClientFactory<F> {
    /// Creates a factory with the default waits.
    pub fn new(factory: F) -> Self {
        Self::with(Retry::default(), factory)
    }

    /// Creates a factory with waits that are shared with others.
    pub fn with(retry: Retry, factory: F) -> Self {
        Self { factory, retry }
    }

    /// Returns the handle that restarts the waits, or ends them.
    pub fn retry(&self) -> Retry {
        self.retry.clone()
    }
}

impl<F: Factory> Factory for ReconnectingClientFactory<F> {
    fn build_protocol(&self, peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        self.factory.build_protocol(peer)
    }

    fn started(&self) {
        self.factory.started();
    }

    fn stopped(&self) {
        self.factory.stopped();
    }

    fn connection_failed(&self, connector: &Connector, error: &ConnectError) {
        self.factory.connection_failed(connector, error);
        self.retry.retry(connector);
    }

    fn connection_lost(&self, connector: &Connector, reason: Reason) {
        self.factory.connection_lost(connector, reason);
        self.retry.retry(connector);
    }
}

/// A random number with mean 0 and standard deviation 1 (Box and Muller's method).
fn deviation() -> f64 {
    // Each has keys of its own, which is all the randomness that a jitter needs.
    let uniform = || {
        let bits = RandomState::new().hash_one(0_u8) >> 32;
        (f64::from(u32::try_from(bits).unwrap_or_default()) + 0.5) / (f64::from(u32::MAX) + 1.0)
    };
    (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_the_factor_up_to_the_longest() {
        let backoff = Backoff::default();
        let waits: Vec<f64> =
            (0..10).map(|retries| backoff.wait(retries, 0.0).as_secs_f64()).collect();
        assert!((waits[0] - 1.0).abs() < 1e-9);
        for pair in waits[..9].windows(2) {
            assert!((pair[1] / pair[0] - E).abs() < 1e-6, "{waits:?}");
        }
        assert!((waits[9] - 3_600.0).abs() < 1e-9);
        assert_eq!(backoff.wait(u32::MAX, 40.0), backoff.max);
    }

    #[test]
    fn jitter_moves_a_wait_both_ways_and_never_below_zero() {
        let backoff = Backoff { jitter: 0.5, ..Backoff::default() };
        assert_eq!(backoff.wait(0, 1.0), Duration::from_millis(1_500));
        assert_eq!(backoff.wait(0, -1.0), Duration::from_millis(500));
        assert_eq!(backoff.wait(0, -9.0), Duration::ZERO);
    }

    #[test]
    fn deviations_are_spread_as_they_should_be() {
        let drawn: Vec<f64> = (0..4_000).map(|_| deviation()).collect();
        let mean = drawn.iter().sum::<f64>() / 4_000.0;
        let square = drawn.iter().map(|drawn| drawn * drawn).sum::<f64>() / 4_000.0;
        assert!(mean.abs() < 0.1 && (square - 1.0).abs() < 0.15, "{mean} {square}");
    }
}
