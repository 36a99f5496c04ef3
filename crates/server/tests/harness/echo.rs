//! A protocol that sends back what comes, in both forms of a protocol.

use gustnado::Tunnel;
use gustnado::protocol::{Protocol, Transport};

/// Sends back what comes.
pub(crate) struct Echo;

impl Protocol for Echo {
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
        transport.write(data);
    }
}

/// Does the same as a function.
pub(crate) async fn echo(mut tunnel: Tunnel) {
    while let Ok(bytes) = tunnel.recv().await {
        if bytes.is_empty() || tunnel.send(bytes).await.is_err() {
            return;
        }
    }
}
