//! Wakers that are not tasks' numbers, kept for the timers that are to wake them.
//!
//! A timer carries one number. A future that looks after several others (and so has a waker of its
//! own for each) must be woken through that waker; so it waits here, and its timer carries the
//! number of its slot.

use std::ops::DerefMut;
use std::task::Waker;

use gustnado_reactor::Wheel;

use crate::exec::wakers::task_id::TaskId;
use crate::sync::claim::GENERATION_MAX;

const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct WakerSlot {
    waker: Option<Waker>,
    generation: u32,
    /// The next free slot, while this one is.
    next_free: u32,
}

/// The wakers of one worker's timers, or of those that a group of workers shares.
#[derive(Debug)]
pub(crate) struct ForeignWakers {
    slots: Vec<WakerSlot>,
    free: u32,
}

impl Default for ForeignWakers {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NIL }
    }
}

impl ForeignWakers {
    /// Keeps a waker for a timer of `wake_target`. Returns the number that the timer is to carry.
    pub(crate) fn keep(&mut self, wake_target: u16, waker: Waker) -> TaskId {
        if self.free == NIL {
            self.free = u32::try_from(self.slots.len()).expect("fewer than 2^32 timers are armed");
            self.slots.push(WakerSlot { waker: None, generation: 0, next_free: NIL });
        }
        let at = self.free;
        let slot = &mut self.slots[at as usize];
        self.free = slot.next_free;
        slot.waker = Some(waker);
        TaskId::foreign(wake_target, at, slot.generation)
    }

    /// Returns whether the waker kept under this number is as good as `waker`.
    pub(crate) fn is_kept(&self, id: TaskId, waker: &Waker) -> bool {
        self.slots.get(id.slot() as usize).is_some_and(|slot| {
            slot.generation == id.generation()
                && slot.waker.as_ref().is_some_and(|kept| kept.will_wake(waker))
        })
    }

    /// Takes the waker out that is kept under this number, if it still is. Drop or wake it where
    /// nothing is borrowed.
    pub(crate) fn take(&mut self, id: TaskId) -> Option<Waker> {
        let slot = self.slots.get_mut(id.slot() as usize)?;
        if slot.generation != id.generation() {
            return None;
        }
        let waker = slot.waker.take()?;
        slot.generation = slot.generation.wrapping_add(1) & GENERATION_MAX;
        slot.next_free = std::mem::replace(&mut self.free, id.slot());
        Some(waker)
    }
}

/// Makes ready what is due in a wheel, and wakes the wakers that were kept for it. Returns when to
/// look again.
///
/// - `take`: takes a kept waker out.
#[inline]
pub(crate) fn expire(
    mut wheel: impl DerefMut<Target = Wheel>,
    now_ms: u64,
    mut take: impl FnMut(TaskId) -> Option<Waker>,
    mut ready: impl FnMut(TaskId) -> bool,
) -> Option<u64> {
    let mut foreign = Vec::new();
    wheel.expire(now_ms, |token| {
        let waiter = TaskId::of_token(token);
        if waiter.is_foreign() {
            foreign.extend(take(waiter));
        } else {
            ready(waiter);
        }
    });
    let next_ms = wheel.next_ms();
    drop(wheel);
    // What they do is not known, so nothing is borrowed or locked now.
    foreign.into_iter().for_each(Waker::wake);
    next_ms
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Sleeper;

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_number_names_one_waker_once() {
        let [waker, other] = [(); 2].map(|()| Waker::from(Arc::new(Sleeper)));
        let mut wakers = ForeignWakers::default();
        let first = wakers.keep(7, waker.clone());
        let second = wakers.keep(7, other.clone());
        assert!(first.is_foreign() && first.home() == 7);
        assert!(wakers.is_kept(first, &waker) && !wakers.is_kept(first, &other));
        assert!(wakers.take(first).is_some());
        assert!(wakers.take(first).is_none());
        let third = wakers.keep(7, waker.clone());
        assert_eq!(third.slot(), first.slot(), "places are used again");
        assert!(!wakers.is_kept(first, &waker) && wakers.is_kept(third, &waker));
        assert!(wakers.take(first).is_none());
        assert!(wakers.take(second).is_some() && wakers.take(third).is_some());
    }
}
