//! Elastic workers: those that are added while all are held or full, and retired when idle.
//!
//! A server has them only if `workers_max` is above `workers`. Everything that they need beyond the
//! lock-free parts is in this folder; the rest of the crate sees [`Elastic`]. One thread, the
//! [`autoscaler`], decides; the rules are a [`Policy`] for workers with tasks of their own and one
//! for workers that share them.

mod autoscaler;
pub(crate) mod growth;
mod life_cycle;
mod pinned;
mod run;
mod shared;
mod state;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use gustnado_reactor::{Clock, ReactorWaker};

use crate::exec::executor::context::WorkerContext;
use crate::exec::worker::elastic::{Elastic, FixedWorkers};
use crate::exec::worker::inbox::Inbox;
use crate::exec::worker::worker_group::WorkerGroup;
use crate::exec::worker::workers_shared::WorkersShared;
use autoscaler::{Autoscaler, Policy, Timings};
use growth::Growth;
use life_cycle::ElasticWorkers;
use pinned::PinnedPolicy;
use shared::SharedPolicy;
use state::AutoscaleState;

pub(crate) use run::{leave_group, run_extra};

/// Runs a worker on its own thread until it ends.
pub(crate) type RunWorker = Box<dyn FnOnce() -> io::Result<()>>;
/// Opens the worker with this number and wake target on the running thread.
pub(crate) type OpenWorker = dyn Fn(usize, u16) -> io::Result<RunWorker> + Send + Sync;

/// Elastic workers that are set up, and that no autoscaler watches yet.
pub(crate) struct ElasticSetup {
    growth: Growth,
    floor: usize,
    /// `None`: the number of workers is fixed.
    state: Option<Arc<AutoscaleState>>,
}

impl ElasticSetup {
    /// - `floor`, `ceiling`: the least and the largest number of workers.
    /// - `is_group`: the workers share their tasks.
    pub(crate) fn new(
        growth: &Growth,
        floor: usize,
        ceiling: usize,
        is_group: bool,
    ) -> io::Result<Self> {
        let growth = growth.clone();
        if ceiling <= floor {
            return Ok(Self { growth, floor, state: None });
        }
        let elastic = ElasticWorkers::new(floor, ceiling, growth.cache_workers);
        let state = Arc::new(AutoscaleState::new(elastic, is_group, ReactorWaker::new()?));
        Ok(Self { growth, floor, state: Some(state) })
    }

    /// Returns whether workers may be added.
    pub(crate) fn is_elastic(&self) -> bool {
        self.state.is_some()
    }

    /// Returns what the rest of the crate sees of them.
    pub(crate) fn handle(&self) -> Arc<dyn Elastic> {
        match &self.state {
            Some(state) => Arc::clone(state) as Arc<dyn Elastic>,
            None => Arc::new(FixedWorkers(self.floor)),
        }
    }

    /// Starts the autoscaler of workers with tasks of their own, if there is one to start. Returns
    /// its thread and a note for the user.
    pub(crate) fn watch_pinned(
        self,
        shared: &Arc<WorkersShared>,
        clock: &Clock,
        inboxes: Vec<Arc<Inbox>>,
        open: impl Fn(usize, u16) -> io::Result<Rc<WorkerContext>> + Send + Sync + 'static,
    ) -> io::Result<Option<(JoinHandle<()>, String)>> {
        let policy =
            PinnedPolicy::new(Arc::clone(shared), inboxes.clone(), self.growth.grow_after_ms());
        let open = move |worker: usize, wake_target| {
            let (ctx, inbox) = (open(worker, wake_target)?, Arc::clone(&inboxes[worker]));
            Ok(Box::new(move || run_extra(&ctx, &inbox)) as RunWorker)
        };
        self.watch(shared, clock, Box::new(policy), Arc::new(open))
    }

    /// The same for workers that share their tasks.
    pub(crate) fn watch_group(
        self,
        shared: &Arc<WorkersShared>,
        clock: &Clock,
        group: Arc<WorkerGroup>,
        wake_target: u16,
        open: Arc<OpenWorker>,
    ) -> io::Result<Option<(JoinHandle<()>, String)>> {
        let policy = SharedPolicy::new(group, wake_target, self.growth.grow_after_ms());
        self.watch(shared, clock, Box::new(policy), open)
    }

    fn watch(
        self,
        shared: &Arc<WorkersShared>,
        clock: &Clock,
        policy: Box<dyn Policy>,
        open: Arc<OpenWorker>,
    ) -> io::Result<Option<(JoinHandle<()>, String)>> {
        let Some(state) = self.state else { return Ok(None) };
        let (floor, ceiling) = (state.elastic.floor(), state.elastic.ceiling());
        let autoscaler = Autoscaler {
            shared: Arc::clone(shared),
            state,
            clock: clock.clone(),
            growth: self.growth,
            policy,
            open,
            timings: Timings::default(),
        };
        let thread = thread::Builder::new().name("gust-watch".to_owned());
        let thread = thread.spawn(move || autoscaler.run())?;
        let note = format!("adds workers when all are busy, from {floor} up to {ceiling}");
        Ok(Some((thread, note)))
    }
}
