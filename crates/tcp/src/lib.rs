//! Other protocols over TCP and Unix sockets, on the engine that carries HTTP.
//!
//! You write a [`Protocol`]: what to do when a connection is made, when data has come, when it is
//! lost. A [`Factory`] makes one for each connection. An [`Engine`] listens and connects.
//!
//! ```no_run
//! # mod gustnado { pub use {gustnado_config as config, gustnado_tcp as protocol}; }
//! use gustnado::config::Config;
//! use gustnado::protocol::{Engine, Protocol, Transport};
//!
//! struct Echo;
//!
//! impl Protocol for Echo {
//!     fn data_received(&mut self, transport: &mut Transport, data: &[u8]) {
//!         transport.write(data);
//!     }
//! }
//!
//! let engine = Engine::start(&Config::default()).expect("workers can be started");
//! let port = engine.listen_tcp("127.0.0.1:7000", |_| Echo).expect("the port is free");
//! println!("echoing at {}", port.address());
//! engine.run();
//! ```
//!
//! Each connection is one light task, so its callbacks never run concurrently, also where any
//! worker may run it. They must not block: a worker has many connections. To write from elsewhere,
//! take its [`TransportHandle`], from any thread.
//!
//! What lives here: protocols, transports, listeners, connectors, delayed calls. What does not:
//! HTTP. It uses tasks and the configuration.
#![forbid(unsafe_code)]

mod calls;
mod carrier;
mod connection;
mod connector;
mod counters;
mod engine;
mod handle;
mod handover;
mod line;
mod outbox;
mod port;
mod reason;
mod reconnect;
mod transport;

use std::sync::Arc;

use gustnado_tasks::Endpoint;

pub use calls::{CallError, DelayedCall};
pub use carrier::ByteStream;
pub use connector::{ConnectError, ConnectOptions, Connector, ConnectorState};
pub use counters::EngineStats;
#[doc(hidden)]
pub use engine::first_address;
pub use engine::{Engine, EngineError};
pub use handle::{TransportHandle, WriteError};
pub use handover::{run_on, run_on_stream};
pub use line::{LINE_BYTES_MAX, LineProtocol, LineReceiver, Lines};
pub use outbox::{WriteFlow, WriteLimits};
pub use port::{ListenError, Port};
pub use reason::Reason;
pub use reconnect::{Backoff, ReconnectingClientFactory, Retry};
pub use transport::Transport;

gustnado_tasks::debug_as_display!(CallError, ConnectError, EngineError, ListenError, WriteError);

/// The callbacks of one connection. Every callback has it to itself; what it writes leaves when it
/// returns. A panic in one ends this connection, and no other.
pub trait Protocol: Send {
    /// Called when the connection is made. Protocols whose server sends first do so here.
    fn connection_made(&mut self, _transport: &mut Transport) {}

    /// Called with received data: some bytes of a stream, cut anywhere. Never empty.
    fn data_received(&mut self, transport: &mut Transport, data: &[u8]);

    /// Called once when a connection that was made has ended, whatever the reason.
    fn connection_lost(&mut self, _reason: Reason) {}

    /// Called when the peer sends no more; it may still receive. If this does nothing, the
    /// connection stays half open until [`Transport::lose_connection`]; by default it ends once all
    /// is written.
    fn peer_finished(&mut self, transport: &mut Transport) {
        transport.lose_connection();
    }

    /// Called when more is pending than the high-water mark: produce no more until
    /// [`Self::resume_producing`].
    fn pause_producing(&mut self, _transport: &mut Transport) {}

    /// Called when no more is pending than the low-water mark: go on.
    fn resume_producing(&mut self, _transport: &mut Transport) {}

    /// Called when reading goes on, after [`Transport::pause_reading`] or a pause because the
    /// output was full. Of use to protocols that keep received data.
    fn reading_resumed(&mut self, _transport: &mut Transport) {}

    /// Called when nothing has moved for as long as [`Transport::set_timeout`] allows. If this does
    /// not end the connection, the time begins again.
    fn timed_out(&mut self, transport: &mut Transport) {
        transport.abort_connection();
    }

    /// Called when the engine stops. If this does not end the connection, it may go on until the
    /// engine's deadline, when it is cut.
    fn stopping(&mut self, transport: &mut Transport) {
        transport.lose_connection();
    }
}

/// Makes a [`Protocol`] for each connection. A closure from the peer's address to a protocol is a
/// simple one. Its methods may be called from several threads at once.
pub trait Factory: Send + Sync {
    /// Returns a protocol for a new connection, or `None` to close it at once.
    fn build_protocol(&self, peer: &Endpoint) -> Option<Box<dyn Protocol>>;

    /// Called when a listener or a connector begins to use this factory.
    fn started(&self) {}

    /// Called when that listener or connector builds no more protocols.
    fn stopped(&self) {}

    /// Called when a client's connection could not be made. [`Connector::connect`] tries again.
    fn connection_failed(&self, _connector: &Connector, _error: &ConnectError) {}

    /// Called when a client's connection has ended, after its protocol's own callback.
    /// [`Connector::connect`] makes a new one.
    fn connection_lost(&self, _connector: &Connector, _reason: Reason) {}
}

impl<F, P> Factory for F
where
    F: Fn(Endpoint) -> P + Send + Sync,
    P: Protocol + 'static,
{
    fn build_protocol(&self, peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        Some(Box::new(self(peer.clone())))
    }
}

/// A factory that several listeners and connectors share.
impl<F: Factory + ?Sized> Factory for Arc<F> {
    fn build_protocol(&self, peer: &Endpoint) -> Option<Box<dyn Protocol>> {
        (**self).build_protocol(peer)
    }

    fn started(&self) {
        (**self).started();
    }

    fn stopped(&self) {
        (**self).stopped();
    }

    fn connection_failed(&self, connector: &Connector, error: &ConnectError) {
        (**self).connection_failed(connector, error);
    }

    fn connection_lost(&self, connector: &Connector, reason: Reason) {
        (**self).connection_lost(connector, reason);
    }
}
