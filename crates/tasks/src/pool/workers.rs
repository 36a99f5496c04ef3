//! Starting and ending the workers of one server.

mod inspect;
mod listen;
mod start;
mod threads;

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gustnado_reactor::{BackendKind, Clock, descriptor_limit};
use rustix::event::{EventfdFlags, eventfd};

use crate::exec::error::WorkersStartError;
use crate::exec::wakers::wake_target;
use crate::exec::worker::workers_shared::{Counts, Phase, WorkersShared};
use crate::pool::driven::Driven;
use crate::pool::plan::WorkerPlan;
use crate::sync::lock::Lock;
use crate::sync::shared_load::SharedLoad;
use start::{WorkerFactory, choose_backend};
use threads::StartedWorkers;

/// How many descriptors are free at least once all workers have started: for a few connections, and
/// for the files that they ask for.
const FREE_MIN: usize = 8;

/// Running workers.
pub struct Workers {
    shared: Arc<WorkersShared>,
    plan: WorkerPlan,
    /// Until it has been ended.
    running: Lock<Option<RunningThreads>>,
    /// Worker 0 runs on its caller's thread.
    is_driven: bool,
    notes: Vec<String>,
    backend: BackendKind,
    clock: Clock,
}

/// Checks that a server that has started can do something: that connections can be accepted, and
/// files opened for them.
fn check_free_descriptors() -> io::Result<()> {
    let mut taken = Vec::with_capacity(FREE_MIN);
    while taken.len() < FREE_MIN {
        match eventfd(0, EventfdFlags::CLOEXEC) {
            Ok(descriptor) => taken.push(descriptor),
            Err(error) => {
                let (free, limit) = (taken.len(), descriptor_limit());
                let text = format!(
                    "expected {FREE_MIN} free descriptors for connections and files, found {free} \
                     of {limit} ({error}); raise the limit (ulimit -n), or start fewer workers"
                );
                return Err(io::Error::new(io::Error::from(error).kind(), text));
            }
        }
    }
    Ok(())
}

impl Workers {
    /// How long [`Workers::stop`] should wait once nothing is left to do: what still runs then is
    /// a handler that never returns.
    pub const STOP_WITHIN: Duration = Duration::from_secs(1);

    /// Starts the workers, and returns once all of them run. They [listen](Self::listen) to nothing
    /// yet.
    ///
    /// # Errors
    /// A thread or its reactor cannot be had.
    pub fn start(plan: &WorkerPlan) -> Result<Self, WorkersStartError> {
        let mut notes = Vec::new();
        let backend = choose_backend(plan, &mut notes);
        let capacity = plan.capacity(backend);
        let clock = Clock::start();
        let factory = WorkerFactory { plan: plan.clone(), backend, capacity, clock };
        let started = factory.start().map_err(WorkersStartError::Thread)?;
        if let Err(error) = check_free_descriptors() {
            started.end();
            return Err(WorkersStartError::Thread(error));
        }
        Ok(Self::of(started, factory, notes, false))
    }

    /// Like [`Workers::start`], with the first worker on the calling thread. It works when the
    /// caller has it [take a turn](Driven::turn). The others, if there are any, are threads as
    /// ever.
    ///
    /// All of them use epoll and share no tasks; a note says so where something else was wished.
    ///
    /// # Errors
    /// As [`Workers::start`]; [`WorkersStartError::Nested`] where the calling thread is a worker
    /// already.
    pub fn start_driven(plan: &WorkerPlan) -> Result<(Self, Driven), WorkersStartError> {
        Driven::check()?;
        let (plan, notes) = plan.driven();
        let backend = BackendKind::Epoll;
        let capacity = plan.capacity(backend);
        let clock = Clock::start();
        let factory = WorkerFactory { plan, backend, capacity, clock };
        let (started, driven) = factory.start_driven().map_err(WorkersStartError::Thread)?;
        Ok((Self::of(started, factory, notes, true), driven))
    }

    fn of(
        started: StartedWorkers,
        factory: WorkerFactory,
        notes: Vec<String>,
        is_driven: bool,
    ) -> Self {
        let StartedWorkers { shared, threads, wake_targets, notes: said } = started;
        let WorkerFactory { plan, backend, clock, .. } = factory;
        let notes = notes.into_iter().chain(said).collect();
        let running = Lock::new(Some(RunningThreads { threads, wake_targets }));
        Self { shared, plan, running, is_driven, notes, backend, clock }
    }

    /// Returns what a user should know about the start: why a wish was not granted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the backend at work.
    pub fn backend(&self) -> BackendKind {
        self.backend
    }

    /// Shares the load with other processes that accept from the same sockets: one with more
    /// connections than the mean lets the others accept first.
    ///
    /// - `number`: a descriptor of a file in memory, in which each process has a place for its
    ///   number of connections, and which is cleared (`u32::MAX`) for a process that has died. It
    ///   stays the caller's.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn share_load(&self, number: RawFd, place: u32) -> io::Result<()> {
        let load = SharedLoad::join(number, place)?;
        load.publish(self.connections_open());
        // Who has joined already stays where it is.
        let _ = self.shared.shared_load.set(load);
        Ok(())
    }

    /// Connections open now.
    pub fn connections_open(&self) -> usize {
        self.shared.connection_slots.open()
    }

    /// Returns whether no connection is open and, once the workers drain, none can come any more:
    /// what the kernel had accepted by then has been served.
    pub fn is_quiet(&self) -> bool {
        !self.is_accepting() && self.connections_open() == 0
    }

    /// Returns how many workers there are. A retired one counts until it has served what it has.
    pub fn workers(&self) -> usize {
        self.shared.elastic.workers()
    }

    /// Returns whether a listener may still bring connections.
    pub fn is_accepting(&self) -> bool {
        self.shared.acceptors.load(std::sync::atomic::Ordering::SeqCst) > 0
    }

    /// Connections open now on each worker (one number for the shared schedulers), those included
    /// that are not there.
    pub fn connections_by_place(&self) -> Vec<usize> {
        (0..self.shared.handles.len())
            .map(|place| self.shared.connection_slots.open_on(place))
            .collect()
    }

    /// Returns what happened to connections and tasks since the start.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Milliseconds since the start.
    pub fn uptime_ms(&self) -> u64 {
        self.clock.read_ms()
    }

    /// Returns the phase that the workers are in.
    pub fn phase(&self) -> Phase {
        self.shared.phase()
    }

    /// Goes forward to a later phase. Never back.
    pub fn advance(&self, phase: Phase) {
        self.shared.advance(phase);
    }

    /// Ends all workers and waits for them, but not longer than `within`: a handler that never
    /// returns keeps its thread until the process ends.
    pub fn stop(&self, within: Duration) {
        self.shared.advance(Phase::Stopping);
        // Taken out, so that it is done once: what is given up here may be another server's next.
        let running = self.running.lock().take();
        let Some(RunningThreads { threads, wake_targets }) = running else { return };
        let began = Instant::now();
        join(threads, began, within);
        // After the autoscaler has ended: until then it may add one.
        let (elastic, more) = self.shared.elastic.take_threads();
        join(elastic, began, within);
        wake_targets.into_iter().chain(more).for_each(wake_target::leave);
    }
}

/// Waits for threads that are to end, as long as there is time.
fn join(threads: Vec<JoinHandle<()>>, began: Instant, within: Duration) {
    for thread in threads {
        while !thread.is_finished() && began.elapsed() < within {
            thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            // A worker that panicked has said so; the rest of the end goes on.
            let _ = thread.join();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop(Self::STOP_WITHIN);
    }
}

/// The threads that are to be ended.
struct RunningThreads {
    threads: Vec<JoinHandle<()>>,
    wake_targets: Vec<u16>,
}
