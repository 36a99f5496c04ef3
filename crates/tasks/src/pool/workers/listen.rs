//! Listening on an endpoint while workers run.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use gustnado_reactor::{Endpoint, bind_with, defer_accept, set_options};

use super::Workers;
use crate::exec::worker::arrival::{Arrival, IncomingHandler};
use crate::exec::worker::workers_shared::Phase;
use crate::net::acceptor::Acceptor;
use crate::net::listener_handle::{ListenerHandle, ListenerShared, Serve};
use crate::pool::plan::{ListenOptions, WorkerPlan};

impl Workers {
    /// Listens on an endpoint, as the plan says.
    ///
    /// # Errors
    /// As [`Workers::listen_with`].
    pub fn listen(
        &self,
        endpoint: &Endpoint,
        descriptors: bool,
        serve: Box<Serve>,
    ) -> io::Result<ListenerHandle> {
        self.listen_with(endpoint, &self.plan.listen_options(), descriptors, serve)
    }

    /// Listens on an endpoint, with options of the listener's own.
    ///
    /// - `descriptors`: connections are to be ordinary descriptors, so that their addresses can be
    ///   asked for ([`crate::Connection::peer`]); under `io_uring` they then count against
    ///   `ulimit -n`.
    /// - `serve`: makes the task that serves a connection; called on the worker that will run it.
    ///   It is dropped when the listener has ended.
    ///
    /// # Errors
    /// The endpoint cannot be bound, or the workers are ending.
    pub fn listen_with(
        &self,
        endpoint: &Endpoint,
        options: &ListenOptions,
        descriptors: bool,
        serve: Box<Serve>,
    ) -> io::Result<ListenerHandle> {
        if self.phase() != Phase::Serving {
            return Err(io::Error::other("the workers are ending"));
        }
        let (sockets, endpoint, refused) = open(&self.plan, endpoint, options)?;
        let listener_shared =
            ListenerShared::new(serve, (descriptors, options.bind.backlog), &endpoint, &sockets);
        let listening = ListenerHandle::new(endpoint, refused, &listener_shared);
        let handles =
            self.shared.acceptor.get().map_or(&self.shared.handles[..], std::slice::from_ref);
        let stay = self.shared.acceptor.get().is_none();
        for (handle, socket) in handles.iter().zip(sockets) {
            let incoming = Arc::clone(&listener_shared) as Arc<dyn IncomingHandler>;
            handle.arrive(Arrival::Listener { socket, incoming, stay });
        }
        Ok(listening)
    }
}

/// Opens the listening sockets of one endpoint, one for each acceptor that the plan has. Returns
/// them with the endpoint in fact bound, and what the kernel would not grant.
///
/// # Errors
/// What the kernel says.
fn open(
    plan: &WorkerPlan,
    endpoint: &Endpoint,
    options: &ListenOptions,
) -> io::Result<(Vec<Arc<OwnedFd>>, Endpoint, Vec<String>)> {
    let alone = plan.scheduler.is_shared() || plan.acceptor == Acceptor::Dedicated;
    let acceptors = if alone { 1 } else { plan.workers };
    let (mut sockets, endpoint) = bind_with(endpoint, acceptors, &options.bind)?;
    if options.defer_accept {
        sockets.iter().try_for_each(defer_accept)?;
    }
    let mut refused = Vec::new();
    for socket in &sockets {
        refused = set_options(socket, &plan.sockets)?;
    }
    // A Unix socket file and an inherited number have one socket, which the acceptors share.
    while sockets.len() < acceptors {
        sockets.push(sockets[0].try_clone()?);
    }
    let sockets = sockets.into_iter().map(Arc::new).collect();
    Ok((sockets, endpoint, refused))
}
