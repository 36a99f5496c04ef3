//! The plan that workers are started from: how many, which backend, how connections come to them.

use std::time::Duration;

use gustnado_reactor::{BackendKind, BindOptions, IoChoice, SocketOptions, descriptor_limit};

use crate::exec::schedule::SchedulerKind;
use crate::exec::worker::descriptors::descriptors_for_connections;
use crate::exec::worker::throttle::Throttle;
use crate::net::acceptor::Acceptor;
use crate::pool::elastic::growth::Growth;
use crate::sync::connection_slots::Placement;

/// A plan for workers: how many, how they poll, and how connections come to them.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Threads at the start, at least 1. They always stay.
    pub workers: usize,
    /// Whether more are added while all are busy.
    pub growth: Growth,
    /// Which backend to try.
    pub io: IoChoice,
    /// Which scheduler places and runs connections.
    pub scheduler: SchedulerKind,
    /// Connections per worker; 0: as many as the backend can hold. The queues have no such limit.
    pub slots: usize,
    /// Connections in total; 0: as many as the backend can hold.
    pub connections_max: usize,
    /// To which worker a connection goes.
    pub placement: Placement,
    /// Who accepts.
    pub acceptor: Acceptor,
    /// Connections that may wait to be accepted, per listening socket.
    pub backlog: u32,
    /// Whether a TCP connection is accepted only once its first bytes are here, or a second has
    /// passed.
    pub defer_accept: bool,
    /// For how long accepting goes on at most once the workers drain.
    pub drain_accept: Duration,
    /// What accepted TCP connections inherit.
    pub sockets: SocketOptions,
    /// Microseconds a worker goes on looking for work before it sleeps.
    pub spin_us: u64,
    /// Receive buffers of 4 KiB per worker under `io_uring`; a power of two.
    pub buffers: u16,
    /// What slows accepting and the workers down.
    pub throttle: Throttle,
}

/// Options of one listener, where it differs from the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenOptions {
    /// What its sockets are bound with.
    pub bind: BindOptions,
    /// As [`WorkerPlan::defer_accept`].
    pub defer_accept: bool,
}

/// The capacity of a plan on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Connections per worker (for the shared schedulers: of all workers together).
    pub per_place: usize,
    /// Connections in total.
    pub total: usize,
    /// Entries of each worker's descriptor table under `io_uring`.
    pub direct: usize,
}

impl WorkerPlan {
    /// Returns the options of a listener that has nothing of its own.
    pub fn listen_options(&self) -> ListenOptions {
        let bind = BindOptions::of_backlog(self.backlog);
        ListenOptions { bind, defer_accept: self.defer_accept }
    }

    /// Workers at most: those of the start, and what [`WorkerPlan::growth`] adds. The shared
    /// schedulers have 64 at most.
    pub fn workers_max(&self) -> usize {
        self.workers.max(self.growth.workers_max)
    }

    /// Returns how many connections this plan can hold with a backend, given the descriptor limit.
    pub fn capacity(&self, backend: BackendKind) -> Capacity {
        let limit = descriptor_limit();
        let ordinary = descriptors_for_connections(limit);
        // Multishot accepting may take a whole backlog at once: leave room for that in the table.
        let margin = (self.backlog as usize).min(limit / 20);
        let (fits_place, fits_total) = match backend {
            BackendKind::Uring => {
                (limit - margin, self.workers_max().saturating_mul(limit - margin))
            }
            BackendKind::Epoll => (ordinary, ordinary),
        };
        let total = if self.connections_max == 0 { fits_total } else { self.connections_max };
        let slots = match self.scheduler {
            SchedulerKind::Pool if self.slots > 0 => self.slots,
            SchedulerKind::PoolShared if self.slots > 0 => self.slots.saturating_mul(self.workers),
            _ => fits_place,
        };
        let per_place = slots.min(total).max(1);
        let direct = per_place.saturating_add(margin).min(limit);
        Capacity { per_place, total: total.max(1), direct }
    }

    /// Returns the plan where one of its workers is driven: it shares nothing, uses epoll, and
    /// never holds its thread. Returns what of that was wished otherwise.
    pub(crate) fn driven(&self) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        if self.io == IoChoice::Uring {
            notes.push(
                "a worker on its caller's thread uses epoll: it has to sleep apart from its other \
                 calls to the kernel"
                    .to_owned(),
            );
        }
        let scheduler = self.scheduler.unshared();
        if scheduler != self.scheduler {
            notes.push(format!(
                "a worker on its caller's thread shares no tasks: the scheduler is {}",
                scheduler.as_str()
            ));
        }
        let Throttle { pass_delay_us, no_io_wait_us, .. } = self.throttle;
        if self.spin_us > 0 || pass_delay_us > 0 || no_io_wait_us > 0 {
            notes.push("a worker on its caller's thread neither spins nor pauses".to_owned());
        }
        (Self { io: IoChoice::Epoll, scheduler, ..self.clone() }, notes)
    }
}
