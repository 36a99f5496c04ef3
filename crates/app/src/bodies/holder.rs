//! One body in memory, as its connection and the table of all of them see it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use gustnado_http::status::Status;
use gustnado_web::body::BodyError;

/// How often recent progress halves, in milliseconds.
const HALF_LIFE_MS: u64 = 4_000;
/// The time that recent progress stands for: its half-life by the logarithm of two.
const RECENT_MS: u64 = 5_770;
/// A body that comes more slowly than this is slow.
const SLOW_BYTES_PER_SECOND: u64 = 16 << 10;

/// Why a body was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It came slowly, and held memory that others needed.
    Slow,
    /// The server had no memory left for it.
    Full,
}

impl Cut {
    /// Returns the status of the response to a request whose body was cut.
    pub fn status(self) -> Status {
        match self {
            Self::Slow => Status::REQUEST_TIMEOUT,
            Self::Full => Status::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the error that the reader of a cut body gets.
    pub fn error(self) -> BodyError {
        match self {
            Self::Slow => BodyError::TooSlow,
            Self::Full => BodyError::NoMemory,
        }
    }
}

/// The shared state of one body. Its connection writes what it holds and how it comes, the table
/// writes how much it may hold; neither waits for the other.
#[derive(Debug, Default)]
pub(super) struct Holder {
    held: AtomicU64,
    allowed: AtomicU64,
    /// Bytes received, also those that are not held any more.
    received: AtomicU64,
    /// Bytes received lately, each halved every [`HALF_LIFE_MS`], as of `recent_ms`.
    recent: AtomicU64,
    recent_ms: AtomicU64,
    /// Bytes of a send that its peer has taken, and how many of them are in `recent`.
    taken: AtomicU64,
    taken_seen: AtomicU64,
    cut: AtomicU8,
    /// What it holds can be put to the disk, and whether it is to be.
    can_spill: AtomicBool,
    is_to_spill: AtomicBool,
}

// Each number stands for itself: a reader that sees an old one decides a little earlier or later.
impl Holder {
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(super) fn allowed(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    pub(super) fn allow(&self, bytes: u64) {
        self.allowed.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn cut(&self) -> Option<Cut> {
        match self.cut.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Cut::Slow),
            _ => Some(Cut::Full),
        }
    }

    pub(super) fn set_cut(&self, cut: Cut) {
        self.cut.store(if cut == Cut::Slow { 1 } else { 2 }, Ordering::Relaxed);
    }

    pub(super) fn can_spill(&self) -> bool {
        self.can_spill.load(Ordering::Relaxed)
    }

    pub(super) fn set_can_spill(&self, can_spill: bool) {
        self.can_spill.store(can_spill, Ordering::Relaxed);
    }

    /// Orders that what it holds is put to the disk, or takes the order back.
    pub(super) fn order_spill(&self, is_to_spill: bool) {
        self.is_to_spill.store(is_to_spill, Ordering::Relaxed);
    }

    pub(super) fn is_to_spill(&self) -> bool {
        self.is_to_spill.load(Ordering::Relaxed)
    }

    /// Notes how much is held, and how much was received so far.
    pub(super) fn note(&self, held: u64, received: u64, now_ms: u64) {
        let more = received.saturating_sub(self.received.swap(received, Ordering::Relaxed));
        self.held.store(held, Ordering::Relaxed);
        self.add_recent(more, now_ms);
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Notes how much of a send is held, of which nothing was taken yet.
    pub(super) fn hold(&self, bytes: u64) {
        self.held.store(bytes, Ordering::Relaxed);
        self.received.store(bytes, Ordering::Relaxed);
    }

    /// Notes how many bytes of a send its peer has taken. Where that is known, no clock is.
    pub(super) fn note_taken(&self, taken: u64) {
        self.taken.store(taken, Ordering::Relaxed);
    }

    /// Counts what the peer has taken since the last look as recent progress.
    pub(super) fn look(&self, now_ms: u64) {
        let taken = self.taken.load(Ordering::Relaxed);
        let more = taken.saturating_sub(self.taken_seen.swap(taken, Ordering::Relaxed));
        if more > 0 {
            self.add_recent(more, now_ms);
        }
    }

    fn add_recent(&self, more: u64, now_ms: u64) {
        self.recent.store(self.recent(now_ms).saturating_add(more), Ordering::Relaxed);
        self.recent_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Lets time pass that does not count as silence.
    pub(super) fn skip(&self, ms: u64) {
        let at_ms = self.recent_ms.load(Ordering::Relaxed);
        self.recent_ms.store(at_ms.saturating_add(ms), Ordering::Relaxed);
    }

    /// Returns the bytes received lately.
    pub(super) fn recent(&self, now_ms: u64) -> u64 {
        let past_ms = now_ms.saturating_sub(self.recent_ms.load(Ordering::Relaxed));
        let halves = u32::try_from(past_ms / HALF_LIFE_MS).unwrap_or(u32::MAX);
        let whole = self.recent.load(Ordering::Relaxed).checked_shr(halves).unwrap_or(0);
        // Between two halvings a straight line is near enough.
        whole - whole / 2 * (past_ms % HALF_LIFE_MS) / HALF_LIFE_MS
    }

    /// Returns whether it has come slowly.
    ///
    /// - `active_ms`: how long it has been received.
    pub(super) fn is_slow(&self, active_ms: u64, now_ms: u64) -> bool {
        let span_ms = active_ms.clamp(1, RECENT_MS);
        self.recent(now_ms).saturating_mul(1_000) / span_ms < SLOW_BYTES_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_fades() {
        let holder = Holder::default();
        holder.note(64_000, 64_000, 1_000);
        assert_eq!(holder.recent(1_000), 64_000);
        assert_eq!(holder.recent(3_000), 48_000);
        assert_eq!(holder.recent(5_000), 32_000);
        assert_eq!(holder.recent(9_000), 16_000);
        assert_eq!(holder.recent(1_000_000), 0);
        holder.note(65_000, 65_000, 9_000);
        assert_eq!((holder.held(), holder.recent(9_000)), (65_000, 17_000));
        holder.note(0, 66_000, 9_000);
        assert_eq!((holder.held(), holder.recent(9_000)), (0, 18_000), "received, and put away");
        holder.skip(60_000);
        assert_eq!(holder.recent(69_000), 18_000);
    }

    #[test]
    fn what_a_peer_has_taken_is_progress_as_of_the_next_look() {
        let holder = Holder::default();
        holder.note(64_000, 64_000, 1_000);
        holder.look(5_000);
        assert_eq!(holder.recent(5_000), 32_000);
        holder.note_taken(16_000);
        assert_eq!(holder.recent(5_000), 32_000);
        holder.look(9_000);
        assert_eq!(holder.recent(9_000), 32_000);
        holder.look(13_000);
        assert_eq!(holder.recent(13_000), 16_000);
    }

    #[test]
    fn slow_is_a_matter_of_the_last_seconds() {
        let holder = Holder::default();
        holder.note(1 << 20, 1 << 20, 0);
        assert!(!holder.is_slow(100, 100));
        assert!(!holder.is_slow(10_000, 10_000));
        assert!(holder.is_slow(30_000, 30_000));
        let trickle = Holder::default();
        trickle.note(5_000, 5_000, 0);
        assert!(!trickle.is_slow(100, 100) && trickle.is_slow(1_000, 1_000));
    }
}
