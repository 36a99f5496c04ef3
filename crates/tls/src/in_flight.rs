//! Handshakes under way: how many there are, and how many of them one turn of a worker takes on.
//!
//! A handshake costs a server as much as twenty requests, and its client next to nothing. Without
//! bounds a few clients would take all of the server's time, and hold its memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use gustnado_tasks::{turn_number, yield_now};

/// Hellos that one turn of a worker answers, some 130 µs each. The others wait for the next turn,
/// behind the requests of established connections.
const HELLOS_PER_TURN: u8 = 8;
/// Hellos of a turn while many wait: most of those are asked for another share, some 20 µs each.
const HELLOS_PER_CROWDED_TURN: u8 = 48;
/// Handshakes for which the list keeps its memory.
const FEW: usize = 64;
/// How many hellos wait where many do.
const CROWD: u32 = 2 * HELLOS_PER_TURN as u32;

/// Hellos that wait for a turn, on all workers.
static WAITING: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The number of a turn, and the hellos that it has answered.
    static TURN: Cell<(u64, u8)> = const { Cell::new((0, 0)) };
}

/// Waits for a turn that has time for a hello.
pub(crate) async fn await_turn() {
    let is_turn = || TURN.with(|turn| is_taken_on(turn, turn_number(), is_crowded()));
    if is_turn() {
        return;
    }
    let _waiting = WaitingHello::new();
    while !is_turn() {
        yield_now().await;
    }
}

/// Returns whether many hellos wait: more come than can be answered.
pub(crate) fn is_crowded() -> bool {
    WAITING.load(Ordering::Relaxed) >= CROWD
}

fn is_taken_on(turn: &Cell<(u64, u8)>, number: u64, is_crowded: bool) -> bool {
    let (last, hellos) = turn.get();
    let hellos = if last == number { hellos } else { 0 };
    turn.set((number, hellos.saturating_add(1)));
    hellos < if is_crowded { HELLOS_PER_CROWDED_TURN } else { HELLOS_PER_TURN }
}

/// A hello that waits for a turn.
pub(crate) struct WaitingHello(());

impl WaitingHello {
    pub(crate) fn new() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for WaitingHello {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All handshakes under way. Where there are too many, the oldest one ends: its client has had the
/// most time for its answer.
#[derive(Debug)]
pub(crate) struct HandshakesUnderWay {
    max: usize,
    waiting: Mutex<WaitingHandshakes>,
}

#[derive(Debug, Default)]
struct WaitingHandshakes {
    /// The oldest first, which is open. Those behind it that are over leave late.
    handshakes: VecDeque<Arc<Slot>>,
    open: usize,
}

/// One handshake.
#[derive(Debug, Default)]
struct Slot {
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

const OPEN: u8 = 0;
const OVER: u8 = 1;
const EVICTED: u8 = 2;

impl Slot {
    fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }
}

impl HandshakesUnderWay {
    /// - `max`: how many there may be.
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), waiting: Mutex::default() }
    }

    /// Begins one. The oldest one ends if there are too many.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        let slot = Arc::new(Slot::default());
        let mut evicted = None;
        {
            let mut waiting = self.waiting();
            waiting.open += 1;
            waiting.handshakes.push_back(Arc::clone(&slot));
            if waiting.open > self.max {
                evicted = waiting.evict();
            }
            if waiting.handshakes.len() > 2 * self.max {
                waiting.handshakes.retain(|slot| slot.is_open());
            }
        }
        if let Some(evicted) = evicted {
            let waker = evicted.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
            waker.into_iter().for_each(Waker::wake);
        }
        UnderWay { all: self, slot }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingHandshakes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingHandshakes {
    fn evict(&mut self) -> Option<Arc<Slot>> {
        // All states change under the lock of the list.
        while let Some(oldest) = self.handshakes.pop_front() {
            if oldest.is_open() {
                oldest.state.store(EVICTED, Ordering::Release);
                self.open -= 1;
                return Some(oldest);
            }
        }
        None
    }

    /// Counts one as over. Those that are over and in front leave.
    fn end(&mut self, slot: &Slot) {
        slot.state.store(OVER, Ordering::Relaxed);
        self.open -= 1;
        while self.handshakes.pop_front_if(|oldest| !oldest.is_open()).is_some() {}
        if self.handshakes.is_empty() {
            self.handshakes.shrink_to(FEW);
        }
    }
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    all: &'a HandshakesUnderWay,
    slot: Arc<Slot>,
}

impl UnderWay<'_> {
    /// Returns whether this one has to end; the task is woken once it has.
    pub(crate) fn poll_evicted(&self, context: &Context<'_>) -> bool {
        {
            let mut waker = self.slot.waker.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
        }
        // Behind the lock of the waker: who evicts takes it afterwards.
        self.slot.state.load(Ordering::Acquire) == EVICTED
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut waiting = self.all.waiting();
        if self.slot.is_open() {
            waiting.end(&self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_oldest_handshake_ends_where_there_are_too_many() {
        let all = HandshakesUnderWay::new(2);
        let context = Context::from_waker(Waker::noop());
        let is_evicted = |one: &UnderWay<'_>| one.poll_evicted(&context);
        let (first, second) = (all.begin(), all.begin());
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let third = all.begin();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&third));
        drop(second);
        let fourth = all.begin();
        assert!(!is_evicted(&third) && !is_evicted(&fourth));
        drop(first);
        let fifth = all.begin();
        assert!(is_evicted(&third) && !is_evicted(&fourth) && !is_evicted(&fifth));
    }

    #[test]
    fn the_list_does_not_grow_with_handshakes_that_are_over() {
        let all = HandshakesUnderWay::new(4);
        let held = all.begin();
        for _ in 0..1_000 {
            drop(all.begin());
        }
        assert!(all.waiting().handshakes.len() <= 2 * 4 + 1);
        assert_eq!(all.waiting().open, 1);
        drop(held);
        assert_eq!(all.waiting().open, 0);
        assert!(all.waiting().handshakes.is_empty());
    }

    #[test]
    fn a_turn_takes_few_hellos_on() {
        let turn = Cell::new((0, 0));
        let taken = |number| (0..100).filter(|_| is_taken_on(&turn, number, false)).count();
        assert_eq!(taken(7), usize::from(HELLOS_PER_TURN));
        assert_eq!(taken(7), 0);
        assert_eq!(taken(8), usize::from(HELLOS_PER_TURN));
        let crowded = (0..100).filter(|_| is_taken_on(&turn, 9, true)).count();
        assert_eq!(crowded, usize::from(HELLOS_PER_CROWDED_TURN));
    }
}
