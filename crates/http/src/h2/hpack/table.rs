//! The table that both sides build while they talk (RFC 7541 §2.3.2, §4).

use super::ENTRY_BYTES;

/// The entries, in one piece of memory: an idle connection keeps it.
///
/// An entry is the lengths of its name and its value, 16 bits each, and both; the oldest one comes
/// first. Entries that were evicted are cut off once they take half of the memory.
#[derive(Debug, Default)]
pub(super) struct HpackTable {
    bytes: Vec<u8>,
    /// Where the oldest entry begins.
    start: u32,
    /// Entries that were added so far; wraps.
    added: u32,
    count: u16,
    /// As the RFC counts it: with [`ENTRY_BYTES`] for each entry.
    size: u16,
    max: u16,
    /// How large its greatest size may become.
    limit: u16,
}

/// What stands in front of an entry.
const LENGTHS: usize = 4;

impl HpackTable {
    /// - `max`: its greatest size, up to 65,535.
    pub(super) fn new(max: usize) -> Self {
        let max = u16::try_from(max).unwrap_or(u16::MAX);
        Self { max, limit: max, ..Self::default() }
    }

    /// Returns how large its greatest size may become.
    pub(super) fn limit(&self) -> usize {
        self.limit.into()
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = u16::try_from(limit).unwrap_or(u16::MAX);
    }

    pub(super) fn max(&self) -> usize {
        self.max.into()
    }

    pub(super) fn len(&self) -> usize {
        self.count.into()
    }

    fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns how much memory it takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns how many entries were added so far.
    pub(super) fn added(&self) -> u32 {
        self.added
    }

    /// Changes its greatest size.
    pub(super) fn set_max(&mut self, max: usize) {
        self.max = u16::try_from(max).unwrap_or(u16::MAX);
        self.evict(0);
        if self.count == 0 {
            // A connection that keeps no fields keeps no memory for them.
            self.bytes = Vec::new();
        }
    }

    /// Returns an entry; the newest one has the place 0.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let older = self.len().checked_sub(place + 1)?;
        let mut at = self.start();
        for _ in 0..older {
            at += self.entry_len(at);
        }
        Some(self.entry(at))
    }

    /// Returns the places of an entry with this name and value, and of the newest one with this
    /// name.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
        let (mut same, mut named) = (None, None);
        let mut at = self.start();
        for place in (0..self.len()).rev() {
            let (found, its_value) = self.entry(at);
            if found == name {
                named = Some(place);
                if its_value == value {
                    same = named;
                }
            }
            at += self.entry_len(at);
        }
        (same, named)
    }

    /// Adds an entry; older ones make room. One that is too large empties the table.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.evict(size);
        if size > self.max() {
            return;
        }
        let start = self.start();
        if start > 0 && start >= self.bytes.len() / 2 {
            self.bytes.drain(..start);
            self.start = 0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "an entry is no larger than a table")]
        let lengths = [name.len() as u16, value.len() as u16].map(u16::to_le_bytes);
        // Exactly so much: the table grows rarely, and stays for as long as its connection.
        self.bytes.reserve_exact(LENGTHS + name.len() + value.len());
        self.bytes.extend_from_slice(lengths.as_flattened());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        #[expect(clippy::cast_possible_truncation, reason = "it is no larger than a table")]
        let size = size as u16;
        self.size += size;
        self.count += 1;
        self.added = self.added.wrapping_add(1);
    }

    /// Evicts the oldest entries, until so much more would fit.
    fn evict(&mut self, more: usize) {
        while self.count > 0 && usize::from(self.size) + more > self.max() {
            let len = self.entry_len(self.start());
            let size = len - LENGTHS + ENTRY_BYTES;
            #[expect(clippy::cast_possible_truncation, reason = "it is no larger than a table")]
            let (len, size) = (len as u32, size as u16);
            self.start += len;
            self.size -= size;
            self.count -= 1;
        }
        if self.count == 0 {
            self.bytes.clear();
            self.start = 0;
        }
    }

    #[inline]
    fn lengths(&self, at: usize) -> (usize, usize) {
        let [name_low, name_high, value_low, value_high] = self.bytes[at..][..LENGTHS] else {
            unreachable!("the slice has four bytes");
        };
        let length = |low, high| usize::from(u16::from_le_bytes([low, high]));
        (length(name_low, name_high), length(value_low, value_high))
    }

    #[inline]
    fn entry_len(&self, at: usize) -> usize {
        let (name, value) = self.lengths(at);
        LENGTHS + name + value
    }

    #[inline]
    fn entry(&self, at: usize) -> (&[u8], &[u8]) {
        let (name, value) = self.lengths(at);
        self.bytes[at + LENGTHS..][..name + value].split_at(name)
    }
}
