//! The addresses of a connection, and why a connection attempt failed.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Outbound, now};
use gustnado_tls::Socket;

use super::counts::FailureKind;
use super::script::ServerAddrs;
use super::shared::LoadShared;

/// Destination and source of a connection within its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetRoute {
    group: u32,
    addrs: usize,
    pub(super) source: Option<SocketAddr>,
}

impl TargetRoute {
    /// Returns that of a connection.
    pub(super) fn of(shared: &LoadShared, group: u32, number: u64) -> Self {
        let servers = &shared.script.groups[group as usize].servers;
        let sources: &[IpAddr] = &shared.plan.sources;
        let pick = |length: usize, number: u64| {
            usize::try_from(number % length as u64).expect("it is below a length")
        };
        let source =
            (!sources.is_empty()).then(|| SocketAddr::new(sources[pick(sources.len(), number)], 0));
        // Divided, so that each target meets each source.
        let turn = number / (sources.len() as u64).max(1);
        Self { group, addrs: pick(servers.len(), turn), source }
    }

    /// Connects to the first of its addresses that accepts, beginning with the last one that did.
    /// Returns the connection, and what has come behind its handshake.
    pub(super) async fn connect(
        self,
        shared: &LoadShared,
        outbound: &Outbound,
        timeout_ms: u64,
    ) -> Result<(Socket, Vec<u8>), FailureKind> {
        let group = &shared.script.groups[self.group as usize];
        let ServerAddrs { all, good } = &group.servers[self.addrs];
        let until_ms = now().mono_ms.saturating_add(timeout_ms);
        let first = good.load(Ordering::Relaxed);
        let mut failure = FailureKind::Unconnected;
        for at in (first..all.len()).chain(0..first) {
            match Connection::connect(&all[at], outbound, timeout_ms).await {
                Ok(mut connection) => {
                    connection.make_direct().expect("nothing was sent or received on it yet");
                    let mut socket = Socket::new(connection);
                    if at != first {
                        good.store(at, Ordering::Relaxed);
                    }
                    let mut received = Vec::new();
                    if let (Some(tls), Some(host)) = (&shared.script.tls, &group.tls_host) {
                        socket.set_deadline(until_ms);
                        // A server without TLS has it at none of its addresses.
                        // Boxed, as this future is part of every connection's.
                        let begun = Box::pin(tls.begin(&mut socket, host)).await;
                        received = begun.inspect_err(|_| shared.note_refused())?;
                    }
                    shared.note_reached();
                    return Ok((socket, received));
                }
                Err(error) => failure = unmade(&error),
            }
        }
        if failure == FailureKind::Refused {
            shared.note_refused();
        }
        Err(failure)
    }
}

/// Converts the error of a connection attempt.
pub(super) fn unmade(error: &ConnectionError) -> FailureKind {
    let ConnectionError::Broken(error) = error else { return FailureKind::TimedOut };
    match error.kind() {
        // A missing Unix socket counts as refusal, as one without a listener does.
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => FailureKind::Refused,
        ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse => FailureKind::NoPort,
        ErrorKind::TimedOut => FailureKind::TimedOut,
        ErrorKind::ConnectionReset => FailureKind::Reset,
        _ => FailureKind::Unconnected,
    }
}

/// Converts the error of an established connection.
pub(super) fn broken(error: &ConnectionError) -> FailureKind {
    match error {
        ConnectionError::TimedOut => FailureKind::TimedOut,
        _ => FailureKind::Reset,
    }
}

/// Whole milliseconds, the unit of connections' deadlines.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::TargetRoute;
    use crate::load::StopHandle;
    use crate::load::counts::FailureKind;
    use crate::load::script::{Script, ServerAddrs};
    use crate::load::shared::LoadShared;
    use crate::plan::LoadPlan;
    use gustnado_tasks::{BlockOnOptions, Endpoint, Outbound, block_on_with};
    use std::net::{SocketAddr, TcpListener};

    /// Returns an address without a listener.
    fn closed() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.local_addr().expect("it is bound")
    }

    fn shared(addresses: &[SocketAddr]) -> LoadShared {
        let plan = LoadPlan::closed("http://127.0.0.1/", 1);
        let mut script = Script::prepare(&plan).expect("a good plan");
        let all = addresses.iter().map(|address| Endpoint::Tcp(*address)).collect();
        script.groups[0].servers = vec![ServerAddrs::of(all)];
        LoadShared::new(&plan, script, &StopHandle::default(), 1)
    }

    fn connected(shared: &LoadShared) -> Result<(), FailureKind> {
        let route = TargetRoute::of(shared, 0, 0);
        let connect = async { route.connect(shared, &Outbound::default(), 2_000).await.map(drop) };
        block_on_with(&BlockOnOptions::default(), connect).expect("it starts")
    }

    #[test]
    fn the_next_address_is_tried_where_one_refuses_and_is_remembered() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let open = listener.local_addr().expect("it is bound");
        let shared = shared(&[closed(), open]);
        for _ in 0..5 {
            connected(&shared).expect("one of them listens");
        }
        let addrs = shared.script.only_way().expect("one server");
        assert_eq!(addrs.good.load(super::Ordering::Relaxed), 1);
        assert!(!shared.is_unreachable());
    }

    #[test]
    fn a_server_that_refuses_at_all_its_addresses_is_not_there() {
        let shared = shared(&[closed(), closed()]);
        for tries in 1..=3 {
            assert_eq!(connected(&shared), Err(FailureKind::Refused));
            assert_eq!(shared.is_unreachable(), tries == 3);
        }
    }
}
