//! Where connections go, and why one that was made or tried has failed.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gustnado_tasks::{Endpoint, LinkError};

use super::shared::Shared;
use super::tally::Failure;

/// Where a connection goes to, and from where.
pub(super) fn route(shared: &Shared, group: u32, number: u64) -> (Endpoint, Option<SocketAddr>) {
    let addresses = &shared.script.groups[group as usize].addresses;
    let sources: &[IpAddr] = &shared.plan.sources;
    let pick = |length: usize, number: u64| {
        usize::try_from(number % length as u64).expect("it is below a length")
    };
    let source =
        (!sources.is_empty()).then(|| SocketAddr::new(sources[pick(sources.len(), number)], 0));
    // (Divided, so that each target meets each source.)
    let turn = number / (sources.len() as u64).max(1);
    (Endpoint::Tcp(addresses[pick(addresses.len(), turn)]), source)
}

/// Why a connection was not made.
pub(super) fn unmade(error: &LinkError) -> Failure {
    let LinkError::Broken(error) = error else { return Failure::TimedOut };
    match error.kind() {
        ErrorKind::ConnectionRefused => Failure::Refused,
        ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse => Failure::NoPort,
        ErrorKind::TimedOut => Failure::TimedOut,
        ErrorKind::ConnectionReset => Failure::Reset,
        _ => Failure::Unconnected,
    }
}

/// Why a connection is of no more use.
pub(super) fn broken(error: &LinkError) -> Failure {
    match error {
        LinkError::TimedOut => Failure::TimedOut,
        _ => Failure::Reset,
    }
}

/// Whole milliseconds, as links count time.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}
