//! A port for a server that is about to start.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kernel gives out ports from here on, unless it says otherwise.
const GIVEN_FROM: u16 = 32_768;
/// How many ports below that are taken in turn.
const PORTS: u16 = 4_096;

/// Returns a port that is free, below those that the kernel gives out: one of those may go to
/// another program before the server listens, and that program would be measured.
///
/// # Errors
/// No port is free at all.
pub(super) fn free_port() -> std::io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let end = given_from();
    let first = end.saturating_sub(PORTS).max(1_024);
    // Contests of several processes begin in different places.
    let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(process::id().wrapping_mul(61));
    let ports = usize::from(end.saturating_sub(first));
    let begin = turn % u32::from(PORTS);
    for port in (first..end).cycle().skip(begin as usize).take(ports) {
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Returns the first port that the kernel gives out.
fn given_from() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|text| text.parse().ok());
    first.unwrap_or(GIVEN_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_another_one_that_the_kernel_does_not_give_out() {
        let first = free_port().expect("a port");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("it is free");
        let second = free_port().expect("a port");
        assert_ne!(first, second);
        assert!(first < given_from() && second < given_from(), "{first}, {second}");
        drop(taken);
    }
}
