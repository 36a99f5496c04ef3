//! Workers that listen on a free port, and clients that connect to them. The tests of driven
//! workers use it too.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::time::Duration;

use gustnado_tasks::{Endpoint, ListenerHandle, Serve, Workers};

/// How long one wait may take. Nothing that works comes near it, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Workers, and the listener that their clients come to.
pub(crate) struct Served {
    workers: Workers,
    listener: ListenerHandle,
}

impl Served {
    /// Lets workers listen on a free port.
    pub(crate) fn new(workers: Workers, serve: Box<Serve>) -> Self {
        let listener = workers.listen(&anywhere(), false, serve).expect("a port is free");
        Self { workers, listener }
    }
}

impl Deref for Served {
    type Target = Workers;

    fn deref(&self) -> &Workers {
        &self.workers
    }
}

/// A free port of 127.0.0.1.
pub(crate) fn anywhere() -> Endpoint {
    Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Where the workers listen.
pub(crate) fn address(workers: &Served) -> SocketAddr {
    match workers.listener.endpoint() {
        Endpoint::Tcp(address) => *address,
        other => panic!("bound to {other:?}"),
    }
}

/// A connection whose reads do not wait for ever.
pub(crate) fn connect(workers: &Served) -> TcpStream {
    let client = TcpStream::connect(address(workers)).expect("the workers listen");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
    client
}
