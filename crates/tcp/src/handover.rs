//! Protocols on connections that another protocol has had before.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gustnado_tasks::Endpoint;
use gustnado_tls::Socket;

use super::Protocol;
use super::carrier::{ByteStream, Carrier};
use super::connection::ProtocolLoop;
use super::reason::Reason;
use super::transport::HandedOver;

/// Runs a protocol on a socket that another one has had before: HTTP, after an upgrade. Returns
/// when the connection is over.
///
/// - `unread`: bytes that came and were not used.
/// - `sent`: counts the bytes that leave.
/// - `closing_ms`: longest time without progress while a connection that ends is written out.
#[doc(hidden)]
pub async fn run_on(
    socket: Socket,
    unread: Vec<u8>,
    sent: Arc<AtomicU64>,
    protocol: Box<dyn Protocol>,
    closing_ms: u64,
) -> Reason {
    let addresses = match (socket.peer(), socket.local()) {
        (Ok(peer), Ok(local)) => (peer, local),
        (Err(error), _) | (_, Err(error)) => return Reason::Lost(error.kind()),
    };
    let handed = HandedOver { unread, sent };
    run(Carrier::Socket(socket), addresses, handed, protocol, closing_ms).await
}

/// Does the same on a stream of a connection that carries others, too.
///
/// - `addresses`: of the connection's peer, and of this end.
#[doc(hidden)]
pub async fn run_on_stream(
    stream: Box<dyn ByteStream>,
    addresses: (Endpoint, Endpoint),
    protocol: Box<dyn Protocol>,
    closing_ms: u64,
) -> Reason {
    let handed = HandedOver { unread: Vec::new(), sent: Arc::default() };
    run(Carrier::of_stream(stream), addresses, handed, protocol, closing_ms).await
}

async fn run(
    carrier: Carrier,
    addresses: (Endpoint, Endpoint),
    handed: HandedOver,
    protocol: Box<dyn Protocol>,
    closing_ms: u64,
) -> Reason {
    let mut running = ProtocolLoop::take_over(carrier, addresses, handed, protocol, closing_ms);
    running.attend().await;
    let reason = running.run().await;
    running.linger(reason).await;
    reason
}
