//! What a sealed connection holds for a moment: one that waits holds none of it.

use std::mem;

use gustnado_tasks::{Charge, MemoryKind};

/// Bytes that a sealed connection holds for a moment, charged.
#[derive(Default)]
pub(super) struct TransientBytes(Option<Box<Transient>>);

#[derive(Default)]
struct Transient {
    /// The beginning of a record that is not whole. Nobody has vouched for its bytes.
    partial: Vec<u8>,
    /// Records without content that are to be sent: tickets, an alert.
    records: Vec<u8>,
    /// When an idle connection's time is over that waits for the rest of a record.
    due_ms: Option<u64>,
    /// What all of it takes.
    charge: Option<Charge>,
}

impl TransientBytes {
    pub(super) fn has_partial(&self) -> bool {
        self.0.as_ref().is_some_and(|held| !held.partial.is_empty())
    }

    pub(super) fn take_partial(&mut self) -> Vec<u8> {
        self.0.as_mut().map_or(Vec::new(), |held| mem::take(&mut held.partial))
    }

    /// Keeps the beginning of a record.
    pub(super) fn keep_partial(&mut self, partial: Vec<u8>) {
        if !partial.is_empty() {
            self.0.get_or_insert_default().partial = partial;
        }
        self.settle();
    }

    /// Notes a deadline that was brought forward for the rest of a record.
    pub(super) fn set_due(&mut self, due_ms: u64) {
        self.0.get_or_insert_default().due_ms = Some(due_ms);
    }

    /// Takes that deadline back, once the record has come and held no content.
    pub(super) fn take_due(&mut self) -> Option<u64> {
        let due_ms = self.0.as_mut()?.due_ms.take();
        self.settle();
        due_ms
    }

    pub(super) fn take_records(&mut self) -> Vec<u8> {
        let records = self.0.as_mut().map_or(Vec::new(), |held| mem::take(&mut held.records));
        self.settle();
        records
    }

    /// Adds records to send.
    pub(super) fn add_records(&mut self, mut records: Vec<u8>) {
        if !records.is_empty() {
            self.0.get_or_insert_default().records.append(&mut records);
        }
        self.settle();
    }

    /// Charges what is held, or lets go of what holds nothing.
    fn settle(&mut self) {
        let Some(held) = &mut self.0 else { return };
        if held.partial.is_empty() && held.records.is_empty() && held.due_ms.is_none() {
            self.0 = None;
            return;
        }
        let bytes = held.partial.capacity() + held.records.capacity();
        held.charge.get_or_insert_with(|| Charge::new(MemoryKind::Heads)).set(bytes);
    }
}
