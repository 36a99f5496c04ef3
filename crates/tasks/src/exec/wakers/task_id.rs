//! The number of a task: which wake target, which slot, which life of it.

use crate::sync::claim::{GENERATION_BITS, GENERATION_MAX};

const SLOT_BITS: u32 = 32;
const WAKE_TARGET_BITS: u32 = u64::BITS - SLOT_BITS - GENERATION_BITS;
/// The bit of a wake target's number that makes a number name a waker kept for a timer there.
const FOREIGN: u16 = 1 << (WAKE_TARGET_BITS - 1);
/// How many wake targets can have a number.
pub(crate) const WAKE_TARGETS_MAX: usize = FOREIGN as usize;

/// Names one life of one task, of whichever server of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TaskId(u64);

impl TaskId {
    /// No task, and no waker.
    pub(crate) const NONE: Self = Self(u64::MAX);

    pub(crate) fn new(wake_target: u16, slot: u32, generation: u32) -> Self {
        let generation = u64::from(generation & GENERATION_MAX);
        let wake_target = u64::from(wake_target) << (SLOT_BITS + GENERATION_BITS);
        Self(wake_target | generation << SLOT_BITS | u64::from(slot))
    }

    /// The number of a waker that is kept for a timer of `wake_target`.
    pub(crate) fn foreign(wake_target: u16, place: u32, generation: u32) -> Self {
        Self::new(wake_target | FOREIGN, place, generation)
    }

    /// Returns whether it names a waker that is kept for a timer, and no task.
    pub(crate) fn is_foreign(self) -> bool {
        self.wake_target() & FOREIGN != 0
    }

    /// Returns the wake target whose timers wake it.
    pub(crate) fn home(self) -> u16 {
        self.wake_target() & !FOREIGN
    }

    pub(crate) fn of_token(token: u64) -> Self {
        Self(token)
    }

    pub(crate) fn token(self) -> u64 {
        self.0
    }

    pub(crate) fn wake_target(self) -> u16 {
        u16::try_from(self.0 >> (SLOT_BITS + GENERATION_BITS)).expect("12 bits are left")
    }

    pub(crate) fn slot(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).expect("masked to 32 bits")
    }

    pub(crate) fn generation(self) -> u32 {
        u32::try_from(self.0 >> SLOT_BITS & u64::from(GENERATION_MAX)).expect("masked to 20 bits")
    }
}
