//! The threads of workers at a start: begun one by one, awaited together.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::exec::wakers::wake_target;
use crate::exec::worker::worker_handle::WorkerHandle;
use crate::exec::worker::workers_shared::{Phase, WorkersShared};

/// The threads that were started.
pub(super) struct StartedWorkers {
    pub(super) shared: Arc<WorkersShared>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) wake_targets: Vec<u16>,
    pub(super) notes: Vec<String>,
}

impl StartedWorkers {
    /// Adds the autoscaler's thread and its note, or ends all where that thread could not start.
    pub(super) fn watched(
        mut self,
        watched: io::Result<Option<(JoinHandle<()>, String)>>,
    ) -> io::Result<Self> {
        match watched {
            Ok(watched) => {
                let (thread, note): (Vec<_>, Vec<_>) = watched.into_iter().unzip();
                self.threads.extend(thread);
                self.notes.extend(note);
                Ok(self)
            }
            Err(error) => {
                self.end();
                Err(error)
            }
        }
    }

    /// Ends it all again: something else could not be started.
    pub(super) fn end(self) {
        self.shared.advance(Phase::Stopping);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.wake_targets.into_iter().for_each(wake_target::leave);
    }
}

/// Threads that have been started and have not all reported yet.
pub(super) struct ThreadStarter {
    pub(super) shared: Arc<WorkersShared>,
    threads: Vec<JoinHandle<()>>,
    wake_targets: Vec<u16>,
    report: mpsc::Sender<io::Result<Option<String>>>,
    reports: mpsc::Receiver<io::Result<Option<String>>>,
}

impl ThreadStarter {
    pub(super) fn new(shared: &Arc<WorkersShared>) -> Self {
        let (report, reports) = mpsc::channel();
        let shared = Arc::clone(shared);
        Self { shared, threads: Vec::new(), wake_targets: Vec::new(), report, reports }
    }

    pub(super) fn wake_target(&mut self, handle: Arc<dyn WorkerHandle>) -> io::Result<u16> {
        let wake_target = wake_target::enter(handle)?;
        self.wake_targets.push(wake_target);
        Ok(wake_target)
    }

    /// Starts a thread: `prepare` on it makes what it then runs, and a note for the user.
    pub(super) fn thread<P, R>(&mut self, name: String, prepare: P) -> io::Result<()>
    where
        P: FnOnce(Arc<WorkersShared>) -> io::Result<(Option<String>, R)> + Send + 'static,
        R: FnOnce() -> io::Result<()>,
    {
        let (shared, report) = (Arc::clone(&self.shared), self.report.clone());
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            let run = match prepare(shared) {
                Ok((note, run)) => {
                    // The receiver is gone if another thread could not start.
                    let _ = report.send(Ok(note));
                    run
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                    return;
                }
            };
            drop(report);
            if let Err(error) = run() {
                panic!("worker {name} cannot reach the kernel any more: {error}");
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits until every thread has started, or ends those that have.
    pub(super) fn wait(self) -> io::Result<StartedWorkers> {
        let Self { shared, threads, wake_targets, report, reports } = self;
        drop(report);
        let mut notes = Vec::new();
        let mut failed = None;
        for outcome in reports {
            match outcome {
                Ok(said) if notes.is_empty() => notes.extend(said),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        let started = StartedWorkers { shared, threads, wake_targets, notes };
        let Some(error) = failed else { return Ok(started) };
        started.end();
        Err(error)
    }
}
