//! From a host to a connection: names, addresses, and how long that may take.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Endpoint, Outbound, now, timeout};
use gustnado_tls::Socket;

use super::error::{ClientError, TimeoutPhase};
use super::http2_use::Http2Use;
#[cfg(feature = "tls")]
use super::tls;
use super::total::Total;
use super::{ClientShared, millis};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Whose connections can serve the same requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestOrigin {
    /// What Host says.
    pub(super) name: Arc<str>,
    /// The host in lower case; an IPv6 address in its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// Where to connect instead of the host.
    pub(super) via: Option<Endpoint>,
}

/// A connection that was made.
pub(super) struct MadeConnection {
    pub(super) socket: Socket,
    /// It goes on by HTTP/2.
    pub(super) is_http2: bool,
    /// What has come right behind the handshake.
    pub(super) received: Vec<u8>,
}

/// Connects to an origin. Each of its addresses in turn gets a fair share of the time that is left.
///
/// - `is_old`: HTTP/1.1 alone is offered, unless the client speaks nothing but HTTP/2.
pub(super) async fn connect(
    client: &ClientShared,
    origin: &RequestOrigin,
    total: &Total,
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "TLS offers protocols"))]
    is_old: bool,
) -> Result<MadeConnection, ClientError> {
    let late = || {
        let (waiting, after) = match total.timeout {
            Some(timeout) if now().mono_ms >= total.at_ms => (TimeoutPhase::Total, timeout),
            _ => (TimeoutPhase::Connect, client.options.connect_timeout),
        };
        ClientError::Timeout { waiting, host: Arc::clone(&origin.name), after }
    };
    let until_ms = now().mono_ms.saturating_add(millis(client.options.connect_timeout));
    let until_ms = until_ms.min(total.at_ms);
    let left_ms = || until_ms.saturating_sub(now().mono_ms);
    let found = timeout(Duration::from_millis(left_ms()), endpoints(client, origin)).await;
    let endpoints = found.ok_or_else(late)??;
    #[cfg(feature = "tls")]
    let connector = if origin.is_tls { Some(client.connector(is_old).await?) } else { None };
    let mut refused = None;
    for (tried, to) in endpoints.iter().enumerate() {
        let shares = (endpoints.len() - tried) as u64;
        let source = client.options.source.filter(|_| matches!(to, Endpoint::Tcp(_)));
        let outbound = Outbound { source, ..Outbound::default() };
        match Connection::connect(to, &outbound, left_ms() / shares).await {
            Ok(connection) => {
                #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "TLS begins on it"))]
                let mut made = MadeConnection {
                    socket: Socket::new(connection),
                    is_http2: client.options.http2 == Http2Use::Always,
                    received: Vec::new(),
                };
                #[cfg(feature = "tls")]
                if let Some(connector) = &connector {
                    made.socket.set_deadline(until_ms);
                    let (name, host) = (&origin.name, bare(&origin.host));
                    let begun = tls::begin(&mut made.socket, connector, name, host).await;
                    let (is_http2, received) = begun.ok_or_else(late)??;
                    if made.is_http2 && !is_http2 {
                        return Err(ClientError::NoHttp2 { host: Arc::clone(name) });
                    }
                    (made.is_http2, made.received) = (is_http2, received);
                }
                return Ok(made);
            }
            Err(ConnectionError::Broken(error)) => {
                refused = Some(ClientError::Connect { to: to.clone(), error });
            }
            Err(ConnectionError::TimedOut) => {}
            Err(_) => return Err(ClientError::Ending),
        }
    }
    Err(refused.unwrap_or_else(late))
}

/// Returns where an origin can be found, in the order of the resolver.
async fn endpoints(
    client: &ClientShared,
    origin: &RequestOrigin,
) -> Result<Vec<Endpoint>, ClientError> {
    if let Some(via) = &origin.via {
        return Ok(vec![via.clone()]);
    }
    if let Ok(address) = bare(&origin.host).parse::<IpAddr>() {
        return Ok(vec![Endpoint::Tcp(SocketAddr::new(address, origin.port))]);
    }
    let failed = |error| ClientError::Resolve { host: Arc::clone(&origin.name), error };
    let name = (origin.host.clone(), origin.port);
    let looked_up = client.resolver.run(move || {
        name.to_socket_addrs().map(|addresses| addresses.take(ADDRESSES_MAX).collect())
    });
    let addresses: Vec<SocketAddr> = match looked_up.await {
        Ok(Some(result)) => result.map_err(failed)?,
        Ok(None) => return Err(failed(io::Error::other("the resolver panicked"))),
        Err(full) => return Err(failed(io::Error::other(full))),
    };
    let source = client.options.source;
    let fits = |address: &SocketAddr| source.is_none_or(|s| s.is_ipv4() == address.is_ipv4());
    let endpoints: Vec<Endpoint> = addresses.into_iter().filter(fits).map(Endpoint::Tcp).collect();
    if endpoints.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "no address of the source's family");
        return Err(failed(error));
    }
    Ok(endpoints)
}

/// Returns a host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}
