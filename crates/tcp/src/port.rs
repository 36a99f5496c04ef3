//! Listeners of an engine, and the connections that come to them.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gustnado_tasks::{Connection, Endpoint, ListenerHandle, Workers};
use gustnado_tls::Socket;

use super::Factory;
use super::connection::ProtocolLoop;
use super::counters::{EngineCounters, count};
use super::transport::ConnectionPolicy;

/// A listener of an engine. Dropping it changes nothing; clones are the same listener.
#[derive(Debug, Clone)]
pub struct Port {
    listening: Arc<ListenerHandle>,
}

impl Port {
    /// Returns the address in fact listened on.
    pub fn address(&self) -> &Endpoint {
        self.listening.endpoint()
    }

    /// Returns whether it was not stopped.
    pub fn is_listening(&self) -> bool {
        self.listening.is_open()
    }

    /// Stops listening. Connections that are open stay so, and what the kernel had accepted by then
    /// is served. Its factory's [`stopped`](crate::Factory::stopped) is called when it builds no
    /// more.
    pub fn stop_listening(&self) {
        self.listening.stop();
    }
}

/// The listeners of one engine.
#[derive(Default)]
pub(super) struct Ports {
    open: Vec<Arc<ListenerHandle>>,
    closed: bool,
}

impl Ports {
    pub(super) fn open(
        &mut self,
        workers: &Workers,
        endpoint: &Endpoint,
        used_factory: &Arc<UsedFactory>,
        policy: ConnectionPolicy,
    ) -> Result<Port, ListenError> {
        if self.closed {
            return Err(ListenError::Stopped);
        }
        self.open.retain(|listening| listening.is_open());
        let used_factory = Arc::clone(used_factory);
        let serve = Box::new(move |connection| -> gustnado_tasks::BoxTask {
            Box::pin(serve(connection, Arc::clone(&used_factory), policy))
        });
        let failed = |error| ListenError::of(endpoint, error);
        let listening = Arc::new(workers.listen(endpoint, true, serve).map_err(failed)?);
        self.open.push(Arc::clone(&listening));
        Ok(Port { listening })
    }

    /// Stops all listeners; there will be no more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.open.drain(..).for_each(|listening| listening.stop());
    }
}

/// A factory in use: it is told of the begin and of the end.
pub(super) struct UsedFactory {
    factory: Box<dyn Factory>,
    counters: Arc<EngineCounters>,
}

impl UsedFactory {
    pub(super) fn start(factory: Box<dyn Factory>, counters: Arc<EngineCounters>) -> Arc<Self> {
        counters.contain(|| factory.started());
        Arc::new(Self { factory, counters })
    }
}

impl Drop for UsedFactory {
    fn drop(&mut self) {
        self.counters.contain(|| self.factory.stopped());
    }
}

/// Serves one accepted connection.
fn serve(
    connection: Connection,
    used_factory: Arc<UsedFactory>,
    policy: ConnectionPolicy,
) -> impl Future<Output = ()> + Send {
    let (open, socket) =
        (OpenGuard::new(Arc::clone(&used_factory.counters)), Socket::new(connection));
    count(&open.0.accepted);
    async move {
        let _open = open;
        let built =
            ProtocolLoop::build(socket, &*used_factory.factory, &used_factory.counters, policy);
        drop(used_factory);
        let Some(mut running) = built else { return };
        running.attend().await;
        let reason = running.run().await;
        running.linger(reason).await;
    }
}

/// A connection that counts as open.
pub(super) struct OpenGuard(Arc<EngineCounters>);

impl OpenGuard {
    pub(super) fn new(counters: Arc<EngineCounters>) -> Self {
        counters.open.fetch_add(1, Ordering::SeqCst);
        Self(counters)
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The error of an engine that cannot listen.
#[non_exhaustive]
pub enum ListenError {
    /// The text is no address, and no name that has one.
    Address(io::Error),
    /// Another process, or this one, listens there.
    InUse(Endpoint),
    /// The user may not listen there.
    Denied(Endpoint),
    /// The kernel refuses otherwise.
    Refused(Endpoint, io::Error),
    /// The engine stops.
    Stopped,
}

impl ListenError {
    fn of(endpoint: &Endpoint, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse(endpoint.clone()),
            io::ErrorKind::PermissionDenied => Self::Denied(endpoint.clone()),
            _ => Self::Refused(endpoint.clone(), error),
        }
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(_) => f.write_str("no such address"),
            Self::InUse(endpoint) => write!(f, "cannot listen on {endpoint}: it is in use"),
            Self::Denied(endpoint) => write!(f, "cannot listen on {endpoint}: not permitted"),
            Self::Refused(endpoint, _) => write!(f, "cannot listen on {endpoint}"),
            Self::Stopped => f.write_str("the engine stops"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address(error) | Self::Refused(_, error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of what a function returns, without calling it.
    fn output_bytes<F, O>(_: F) -> usize
    where
        F: Fn(Connection, Arc<UsedFactory>, ConnectionPolicy) -> O,
    {
        size_of::<O>()
    }

    #[test]
    fn an_idle_connection_is_small() {
        let bytes = output_bytes(serve) + size_of::<ProtocolLoop>();
        assert!(bytes <= 512, "{bytes} bytes beside the protocol itself");
    }
}
