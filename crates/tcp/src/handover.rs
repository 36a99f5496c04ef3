//! Protocols on connections that another protocol has had before.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gustnado_tls::Socket;

use super::Protocol;
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
    let handed = HandedOver { unread, sent };
    let mut running = match ProtocolLoop::take_over(socket, handed, protocol, closing_ms) {
        Ok(running) => running,
        Err(error) => return Reason::Lost(error.kind()),
    };
    running.attend().await;
    let reason = running.run().await;
    running.linger(reason).await;
    reason
}
