//! Request bodies in memory: how much each may hold, and which one is cut when there is too little
//! for all.
//!
//! A body is in the table of all bodies once it holds more than belongs to its connection and has
//! to be waited for. So bodies that arrive with their head, or in one receive, do not touch it.

mod blocked;
mod holder;
mod table;

use std::fmt;
use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use gustnado_tasks::{Charge, Ledger, MemoryKind};

use crate::client_key::ClientKey;
use holder::Holder;
use table::{BodyTable, FIRST_BYTES, Granted};

pub use blocked::BlockedMemory;
pub use holder::Cut;

/// The most bytes that are asked for at once, and what a body of unknown length asks for.
const ASKED_BYTES_MAX: u64 = 1 << 20;
const UNKNOWN_BYTES: u64 = 64 << 10;
/// What a long body asks for that is not held whole: it gathers that much before it is written.
const PART_BYTES: u64 = 256 << 10;

/// The bodies of a server that hold memory.
#[derive(Debug, Default)]
pub struct Bodies {
    table: Mutex<BodyTable>,
    /// The same for parts of heads, and for sends.
    heads: Mutex<BodyTable>,
    sends: Mutex<BodyTable>,
    /// A task looks after these two, as they hold too much.
    is_relieving: AtomicBool,
    /// Set once the workers run.
    ledger: OnceLock<Arc<Ledger>>,
}

impl Bodies {
    /// Sets the ledger that has their budget.
    pub fn attach(&self, ledger: &Arc<Ledger>) {
        let first = self.ledger.set(Arc::clone(ledger));
        debug_assert!(first.is_ok(), "workers are attached once");
    }

    /// Returns whether more memory of a kind is held than may be, as far as that is published.
    pub fn is_short_of(&self, kind: MemoryKind) -> bool {
        self.ledger.get().is_some_and(|ledger| ledger.is_short_of(kind))
    }

    /// Returns how much all bodies may hold.
    pub fn budget(&self) -> u64 {
        self.ledger.get().map_or(u64::MAX, |ledger| ledger.budget(MemoryKind::Bodies))
    }

    fn table(&self) -> MutexGuard<'_, BodyTable> {
        locked(&self.table)
    }
}

fn locked(table: &Mutex<BodyTable>) -> MutexGuard<'_, BodyTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a body has been received.
#[derive(Clone, Copy, Debug)]
pub struct BodyProgress {
    /// Bytes of it in memory.
    pub held: usize,
    /// Bytes of it so far, with those on the disk.
    pub received: u64,
    /// What is in memory can be put to the disk.
    pub can_spill: bool,
    /// Its reader holds a part of it at most.
    pub is_part: bool,
    /// So many bytes of it belong to its connection, and are not charged by themselves.
    pub uncharged: usize,
    /// Bytes still to come, if that is known.
    pub left: Option<u64>,
    /// So many bytes its peer is about to be allowed to send at once: they have to be granted
    /// first. 0 where the kernel stops the peer at any byte.
    pub ahead: usize,
    pub now_ms: u64,
}

impl BodyProgress {
    /// Returns how much has to be granted before more may be received.
    fn needed(&self) -> u64 {
        let ahead = self.left.map_or(self.ahead as u64, |left| left.min(self.ahead as u64));
        (self.held as u64).saturating_add(ahead.max(1))
    }
}

/// The outcome of a request to receive more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyAdmission {
    /// More may be received.
    Read,
    /// Not before this time, or a wake-up: so the kernel's window stops the peer.
    Wait(u64),
    /// What is in memory is to be put to the disk first.
    Spill,
    /// The body is to end with an error.
    Cut(Cut),
}

/// The memory of one request's body. Dropping it releases the memory.
#[derive(Debug, Default)]
pub struct BodyHold(Option<Box<Held>>);

struct Held {
    bodies: Arc<Bodies>,
    holder: Arc<Holder>,
    id: u64,
    charge: Charge,
    is_waiting: bool,
    is_whole: bool,
    /// It has been told to put what it holds to the disk because memory is short.
    is_spilling: bool,
}

impl BodyHold {
    /// Asks to receive more of the body.
    ///
    /// - `client`: returns the client that sends it; called only if it is needed.
    /// - `waker`: of the connection's task.
    #[inline]
    pub fn admit(
        &mut self,
        bodies: &Arc<Bodies>,
        state: BodyProgress,
        client: impl FnOnce() -> Option<ClientKey>,
        waker: &Waker,
    ) -> BodyAdmission {
        if state.held <= state.uncharged && self.0.is_none() {
            return BodyAdmission::Read;
        }
        let held = self.0.get_or_insert_with(|| {
            Box::new(Held::new(Arc::clone(bodies), client(), waker, state.now_ms))
        });
        held.admit(state)
    }

    /// Returns whether the body was cut, which ends a wait for more of it.
    #[inline]
    pub fn cut(&self) -> Option<Cut> {
        self.0.as_ref().and_then(|held| held.holder.cut()).filter(|_| !self.is_whole())
    }

    /// Returns whether the body is to be put to the disk, which ends a wait for more of it.
    #[inline]
    pub fn is_to_spill(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.holder.is_to_spill())
    }

    fn is_whole(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.is_whole)
    }

    /// Returns whether the last admission was a wait: time has passed since then.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.is_waiting)
    }

    /// Returns whether many more bytes than are held may be received at once: what comes in one
    /// receive is held, whatever was granted.
    pub fn has_room(&self, held: usize) -> bool {
        self.room(held).is_some_and(|room| room >= FIRST_BYTES)
    }

    /// Returns how many bytes more were granted than are held; `None` if the body is not charged.
    ///
    /// - `held`: bytes of the body in memory.
    pub fn room(&self, held: usize) -> Option<u64> {
        self.0.as_ref().map(|own| own.holder.allowed().saturating_sub(held as u64))
    }

    /// Returns how many bytes are held beyond what was granted.
    ///
    /// - `held`: bytes of the body in memory.
    pub fn excess(&self, held: usize) -> usize {
        let Some(own) = &self.0 else { return 0 };
        let allowed = usize::try_from(own.holder.allowed()).unwrap_or(usize::MAX);
        if own.is_whole { 0 } else { held.saturating_sub(allowed) }
    }

    /// Returns whether a wait for more of the body is over: it was granted, cut, or is to be put to
    /// the disk.
    pub fn is_decided(&self, state: &BodyProgress) -> bool {
        let is_granted = self.0.as_ref().is_some_and(|own| state.needed() <= own.holder.allowed());
        is_granted || self.cut().is_some() || self.is_to_spill()
    }

    /// Notes that the body was received to its end: from now on it cannot be cut.
    ///
    /// - `held`: bytes of it in memory.
    pub fn complete(&mut self, held: usize, received: u64, now_ms: u64) {
        let Some(own) = &mut self.0 else { return };
        if !own.is_whole {
            own.is_whole = true;
            own.note(held, received, now_ms);
            own.bodies.table().complete(own.id, own.bodies.budget());
        }
    }

    /// Returns whether the body is in the table of all bodies.
    #[inline]
    pub fn is_charged(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether a whole body holds memory, which its reader may release.
    #[inline]
    pub fn may_settle(&self) -> bool {
        self.0.as_ref().is_some_and(|own| own.is_whole && own.charge.bytes() > 0)
    }

    /// Notes that less of a whole body is in memory.
    pub fn settle(&mut self, held: usize, now_ms: u64) {
        if let Some(own) = self.0.as_mut().filter(|own| own.is_whole && held < own.charge.bytes()) {
            own.note(held, own.holder.received(), now_ms);
            own.bodies.table().release(own.id, own.bodies.budget());
        }
    }
}

impl Held {
    fn new(bodies: Arc<Bodies>, client: Option<ClientKey>, waker: &Waker, now_ms: u64) -> Self {
        let holder = Arc::new(Holder::default());
        let id = bodies.table().add(Arc::clone(&holder), client, waker.clone(), now_ms);
        let charge = Charge::new(MemoryKind::Bodies);
        let (is_waiting, is_whole, is_spilling) = (false, false, false);
        Self { bodies, holder, id, charge, is_waiting, is_whole, is_spilling }
    }

    fn note(&mut self, held: usize, received: u64, now_ms: u64) {
        self.charge.set(held);
        self.holder.note(held as u64, received, now_ms);
    }

    fn admit(&mut self, state: BodyProgress) -> BodyAdmission {
        if let Some(cut) = self.holder.cut() {
            return BodyAdmission::Cut(cut);
        }
        if state.held != self.charge.bytes() {
            self.note(state.held, state.received, state.now_ms);
        }
        self.is_waiting = false;
        self.holder.set_can_spill(state.can_spill);
        if self.holder.is_to_spill() && !self.is_spilling {
            return self.spill(state);
        }
        if mem::take(&mut self.is_spilling) {
            self.bodies.table().release(self.id, self.bodies.budget());
        }
        let (held, allowed) = (state.held as u64, self.holder.allowed());
        if state.needed() <= allowed {
            return BodyAdmission::Read;
        }
        let left = state.left.unwrap_or(UNKNOWN_BYTES);
        let most = match allowed {
            0 => FIRST_BYTES,
            _ if state.is_part => PART_BYTES,
            _ if state.can_spill && held.saturating_add(left) > ASKED_BYTES_MAX => PART_BYTES,
            _ => ASKED_BYTES_MAX,
        };
        let wanted = left.min(most).max(1);
        let budget = self.bodies.budget();
        let granted = self.bodies.table().ask(self.id, wanted, budget, state.now_ms);
        match granted {
            Granted::Yes => BodyAdmission::Read,
            Granted::Wait(until_ms) => {
                self.is_waiting = true;
                BodyAdmission::Wait(until_ms)
            }
            Granted::No => self.spill(state),
        }
    }

    /// Has what is in memory put to the disk. Without any, one receive may bring more: that is as
    /// little as an idle connection may hold.
    fn spill(&mut self, state: BodyProgress) -> BodyAdmission {
        self.is_spilling = true;
        if state.can_spill && state.held > 0 { BodyAdmission::Spill } else { BodyAdmission::Read }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.table().remove(self.id, self.bodies.budget());
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("holder", &self.holder).finish_non_exhaustive()
    }
}
