//! Received bytes between two receives, and the memory that they take.

use std::sync::Arc;

use gustnado_app::bodies::{BlockedMemory, Bodies};
use gustnado_app::client_key::ClientKey;
use gustnado_config::UNCHARGED_BYTES;
use gustnado_tasks::{Charge, MemoryKind};

/// Received bytes that no request has consumed yet.
#[derive(Debug, Default)]
pub(super) struct Unread {
    pub(super) bytes: Vec<u8>,
    /// Bytes already searched for the head's end, so that a slow sender causes no rescans.
    pub(super) seen: usize,
    /// What they take, beyond what belongs to a connection.
    charge: Option<Charge>,
    /// The same where heads hold much.
    blocked: Option<BlockedMemory>,
}

impl Unread {
    /// Creates it of bytes that were not searched.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, seen: 0, charge: None, blocked: None }
    }

    /// Charges what is held from now on.
    #[inline]
    pub(super) fn charge(&mut self) {
        if self.bytes.capacity() > UNCHARGED_BYTES || self.charge.is_some() {
            let charge = self.charge.get_or_insert_with(|| Charge::new(MemoryKind::Heads));
            charge.set(self.bytes.capacity());
        }
    }

    /// Notes whether the rest of a head is waited for: then it is cut where heads hold too much.
    ///
    /// - `client`: returns the client that sends it; called only if it is needed.
    #[inline]
    pub(super) fn await_head(
        &mut self,
        is_awaited: bool,
        bodies: &Arc<Bodies>,
        client: impl FnOnce() -> Option<ClientKey>,
    ) {
        if self.charge.is_none() {
            return;
        }
        if !is_awaited {
            self.blocked = None;
        } else if self.blocked.is_none() {
            self.blocked = BlockedMemory::enter(bodies, MemoryKind::Heads, client);
        }
        if let Some(blocked) = &self.blocked {
            blocked.set(self.bytes.capacity());
        }
    }

    /// Returns whether it is charged, and there is too little memory for such bytes.
    pub(super) fn is_over_budget(&self) -> bool {
        self.charge.as_ref().is_some_and(Charge::is_over_budget)
    }
}
