//! The life of a shared task's slot: queued once, run by one worker at a time, never forgotten.

use crate::sync::atomic::{AtomicU32, Ordering};

const READY: u32 = 1;
const RUNNING: u32 = 2;
const LIVE: u32 = 4;
const GENERATION_SHIFT: u32 = 8;
/// Bits of a generation: as many as a task's number has room for.
pub(crate) const GENERATION_BITS: u32 = 20;
/// The largest generation of a slot; the next one is zero again.
pub(crate) const GENERATION_MAX: u32 = (1 << GENERATION_BITS) - 1;

/// The activity of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskActivity {
    Runs,
    Queued,
    Waits,
}

/// A slot's state in one word: generation, and whether it is live, ready, running.
///
/// A thread that makes it ready while it is neither ready nor running queues it. The worker that
/// takes it out of the run queue runs it. If it became ready meanwhile, that worker queues it
/// again. So a slot is in the queue at most once, and the queue needs room for each slot only once.
#[derive(Debug, Default)]
pub(crate) struct Claim(AtomicU32);

impl Claim {
    /// Starts a life. Returns its generation. The slot is ready: queue it.
    pub(crate) fn open(&self) -> u32 {
        // A plain store: between two lives no other thread writes, since `LIVE` is not set.
        let generation = self.0.load(Ordering::Relaxed) >> GENERATION_SHIFT;
        self.0.store(generation << GENERATION_SHIFT | LIVE | READY, Ordering::Release);
        generation
    }

    /// Makes the slot ready, whichever life it is in if `generation` is `None`. Returns whether the
    /// caller is to queue it.
    pub(crate) fn ready(&self, generation: Option<u32>) -> bool {
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
            let other_life =
                generation.is_some_and(|generation| generation != generation_of(state));
            // Written even if it is ready already: the exchange in `run` has to read this write,
            // and so sees what the caller left for the task before it woke it.
            (!other_life && state & LIVE != 0).then_some(state | READY)
        });
        before.is_ok_and(|state| state & (READY | RUNNING) == 0)
    }

    /// Claims a slot that was taken out of the queue. Returns its generation.
    pub(crate) fn run(&self) -> u32 {
        // READY goes off before the task runs, not after: a wake-up during the run then counts for
        // the next one, though the task may have looked already.
        let before = self.0.fetch_xor(READY | RUNNING, Ordering::AcqRel);
        debug_assert!(before & (READY | RUNNING | LIVE) == READY | LIVE, "queued, so ready");
        generation_of(before)
    }

    /// Ends a run. Returns whether the slot became ready meanwhile: queue it.
    pub(crate) fn rest(&self) -> bool {
        self.0.fetch_and(!RUNNING, Ordering::AcqRel) & READY != 0
    }

    /// Returns the generation and the activity of a life; `None` between two lives.
    pub(crate) fn look(&self) -> Option<(u32, TaskActivity)> {
        let state = self.0.load(Ordering::Relaxed);
        let doing = match state & (RUNNING | READY) {
            READY => TaskActivity::Queued,
            0 => TaskActivity::Waits,
            _ => TaskActivity::Runs,
        };
        (state & LIVE != 0).then(|| (generation_of(state), doing))
    }

    /// Ends a life.
    pub(crate) fn close(&self) {
        let next = generation_of(self.0.load(Ordering::Relaxed)).wrapping_add(1) & GENERATION_MAX;
        self.0.swap(next << GENERATION_SHIFT, Ordering::AcqRel);
    }
}

fn generation_of(state: u32) -> u32 {
    state >> GENERATION_SHIFT
}
