//! A pipe that a protocol uses.

use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado_tasks::ConnectionError;
use gustnado_tcp::ByteStream;

use super::StreamPipe;

/// A pipe that a protocol uses.
#[derive(Debug)]
pub(in crate::tunnel) struct ProtocolPipe(pub(in crate::tunnel) Arc<StreamPipe>);

impl ByteStream for ProtocolPipe {
    fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Result<Vec<u8>, ConnectionError>> {
        // A protocol is told of a drain by its loop.
        self.0.poll_recv(context, false).map_err(ConnectionError::from)
    }

    fn start_send(&mut self, bytes: Vec<u8>) {
        self.0.start_send(bytes.into());
    }

    fn poll_sent(&mut self, context: &Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.0.poll_sent(context).map_err(ConnectionError::from)
    }

    fn shutdown_write(&mut self) {
        self.0.shut();
    }

    fn abort(&mut self) {
        self.0.cut();
    }
}
