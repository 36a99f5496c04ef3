//! Memory of a part of a head, or of a send, whose peer is waited for.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gustnado_tasks::{CutDuring, MemoryKind, cut_waker, now, sleep, spawn_detached};

use super::holder::Holder;
use super::table::BodyTable;
use super::{Bodies, locked};
use crate::client_key::ClientKey;

/// Memory is listed once its kind holds more than this part of its budget: most of the time it is
/// not, and costs nothing.
const LISTED_PART: u64 = 4;
/// How often the worst are looked for while a kind holds too much.
const RELIEF_INTERVAL: Duration = Duration::from_millis(100);

/// Memory that is held until a peer goes on, as those see it who decide which connection is cut.
/// Dropping it says that the memory is released.
#[derive(Debug)]
pub struct BlockedMemory {
    bodies: Arc<Bodies>,
    kind: MemoryKind,
    holder: Arc<Holder>,
    id: u64,
}

impl BlockedMemory {
    /// Lists memory of a connection of the running task. `None` while there is enough of it.
    ///
    /// - `kind`: heads or sends.
    /// - `client`: returns the client that it is held for; called only if it is needed.
    #[inline]
    pub fn enter(
        bodies: &Arc<Bodies>,
        kind: MemoryKind,
        client: impl FnOnce() -> Option<ClientKey>,
    ) -> Option<Self> {
        let ledger = bodies.ledger.get()?;
        if ledger.published(kind) <= ledger.budget(kind) / LISTED_PART {
            return None;
        }
        Self::listed(bodies, kind, client())
    }

    #[cold]
    fn listed(bodies: &Arc<Bodies>, kind: MemoryKind, client: Option<ClientKey>) -> Option<Self> {
        let during = match kind {
            MemoryKind::Heads => CutDuring::Head,
            MemoryKind::Sends => CutDuring::Send,
            _ => return None,
        };
        let (waker, holder) = (cut_waker(during)?, Arc::new(Holder::default()));
        let table = bodies.table_of(kind)?;
        let id = locked(table).add(Arc::clone(&holder), client, waker, now().mono_ms);
        Some(Self { bodies: Arc::clone(bodies), kind, holder, id })
    }

    /// Sets how many bytes are held. Of a head, more than at the last time were received just now.
    pub fn set(&self, bytes: usize) {
        if self.holder.held() > 0 {
            self.holder.note(bytes as u64, bytes as u64, now().mono_ms);
        } else {
            self.holder.hold(bytes as u64);
        }
        if let Some(table) = self.bodies.table_of(self.kind) {
            locked(table).hold(self.id, bytes as u64);
        }
        if self.bodies.is_short_of(self.kind) {
            Bodies::relieve_soon(&self.bodies);
        }
    }

    /// Sets how many bytes a send holds that has moved to an allocation of another size: so much a
    /// cut is going to release.
    pub fn note_moved(&self, bytes: usize) {
        self.holder.hold(bytes as u64);
        if let Some(table) = self.bodies.table_of(self.kind) {
            locked(table).hold(self.id, bytes as u64);
        }
    }

    /// Sets how many bytes the peer has taken so far.
    pub fn note_taken(&self, bytes: usize) {
        self.holder.note_taken(bytes as u64);
    }
}

impl Drop for BlockedMemory {
    fn drop(&mut self) {
        if let Some(table) = self.bodies.table_of(self.kind) {
            locked(table).remove(self.id, 0);
        }
    }
}

impl Bodies {
    fn table_of(&self, kind: MemoryKind) -> Option<&Mutex<BodyTable>> {
        match kind {
            MemoryKind::Heads => Some(&self.heads),
            MemoryKind::Sends => Some(&self.sends),
            _ => None,
        }
    }

    /// Has a task cut the worst connections until no kind holds too much.
    fn relieve_soon(bodies: &Arc<Self>) {
        if bodies.is_relieving.swap(true, Ordering::SeqCst) {
            return;
        }
        let own = Arc::clone(bodies);
        let relief = async move {
            loop {
                sleep(RELIEF_INTERVAL).await;
                if own.relieve() {
                    continue;
                }
                own.is_relieving.store(false, Ordering::SeqCst);
                // What came in between has seen that there is such a task.
                if !own.relieve() || own.is_relieving.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        };
        if spawn_detached(relief).is_err() {
            bodies.is_relieving.store(false, Ordering::SeqCst);
        }
    }

    /// Cuts the worst connections. Returns whether a kind held too much.
    fn relieve(&self) -> bool {
        let Some(ledger) = self.ledger.get() else { return false };
        let mut is_short = false;
        for kind in [MemoryKind::Heads, MemoryKind::Sends] {
            let (held, budget) = (ledger.held(kind), ledger.budget(kind));
            if let Some(table) = self.table_of(kind).filter(|_| held > budget) {
                is_short = true;
                locked(table).relieve(held, budget, now().mono_ms);
            }
        }
        is_short
    }
}
