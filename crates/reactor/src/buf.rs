//! Owned buffers: what was received, and what is to be sent.

use std::fmt;
use std::rc::Rc;

use bytes::Bytes;

use crate::large_bufs::LargeBuf;
use crate::provided_bufs::ProvidedBuf;

/// How many bytes one epoll receive can take at most.
pub(crate) const SCRATCH_BYTES: usize = 32 * 1024;

/// The buffer that a worker under epoll receives into: one is enough, for pieces do not last.
pub(crate) struct Scratch(Rc<ScratchBytes>);

type ScratchBytes = Box<[u8; SCRATCH_BYTES]>;

impl Default for Scratch {
    fn default() -> Self {
        let zeroed = vec![0; SCRATCH_BYTES].into_boxed_slice();
        Self(Rc::new(zeroed.try_into().expect("made with this length")))
    }
}

impl Scratch {
    /// Returns the buffer to receive into: another one while a piece of the last is still held.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut Rc::make_mut(&mut self.0)[..]
    }

    /// Returns the first `len` bytes, which were just received.
    #[inline]
    pub(crate) fn received(&self, len: usize) -> RecvBuf {
        RecvBuf(RecvSource::Scratch { bytes: Rc::clone(&self.0), len })
    }
}

/// Bytes that were received, in the buffer they arrived in. Empty means that the peer has sent its
/// last byte.
///
/// The buffer goes back to its reactor when the piece is dropped, so do not keep pieces: copy what
/// must outlive the turn. A piece stays on its thread.
pub struct RecvBuf(RecvSource);

enum RecvSource {
    Scratch { bytes: Rc<ScratchBytes>, len: usize },
    Other(OtherSource),
}

/// Apart, so that the usual source under epoll is told from these by one comparison.
enum OtherSource {
    End,
    Opened { bytes: Rc<Vec<u8>>, len: usize },
    Owned(Box<[u8]>),
    ProvidedBuf(ProvidedBuf),
    Large(LargeBuf),
}

/// How many bytes a worker's buffer for opened ones has at least.
const OPENED_BYTES_MIN: usize = 64 * 1024;

/// The buffer that a worker opens received bytes into which came sealed: one is enough, for pieces
/// do not last.
#[derive(Default)]
pub struct OpenedRoom(Rc<Vec<u8>>);

impl OpenedRoom {
    /// Returns the buffer to open into: another one while a piece of the last is still held.
    ///
    /// - `bytes_min`: how long it is at least. It stays as long as the longest that was wanted,
    ///   which is as much as one receive brings.
    pub fn bytes(&mut self, bytes_min: usize) -> &mut [u8] {
        let is_enough = self.0.len() >= bytes_min.max(OPENED_BYTES_MIN);
        if !is_enough || Rc::get_mut(&mut self.0).is_none() {
            let len = bytes_min.max(OPENED_BYTES_MIN).max(self.0.len());
            self.0 = Rc::new(vec![0; len]);
        }
        Rc::get_mut(&mut self.0).expect("nobody else holds it")
    }

    /// Returns the first `len` bytes, which were just opened.
    pub fn opened(&self, len: usize) -> RecvBuf {
        let bytes = Rc::clone(&self.0);
        RecvBuf(RecvSource::Other(OtherSource::Opened { bytes, len }))
    }
}

/// The outcome of discarding.
#[derive(Debug)]
pub enum Discarded {
    /// So many bytes are gone; 0: the peer has sent its last byte.
    Bytes(usize),
    /// These bytes had been received before, or cannot be discarded unread.
    Received(RecvBuf),
}

impl Discarded {
    /// Returns the number of bytes; 0 is the peer's end.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => *bytes,
            Self::Received(piece) => piece.bytes().len(),
        }
    }

    /// Returns whether the peer has sent its last byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl RecvBuf {
    /// Returns the peer's end.
    pub fn end() -> Self {
        Self(RecvSource::Other(OtherSource::End))
    }

    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        Self(RecvSource::Other(OtherSource::Owned(bytes.into_boxed_slice())))
    }

    pub(crate) fn provided(provided: ProvidedBuf) -> Self {
        Self(RecvSource::Other(OtherSource::ProvidedBuf(provided)))
    }

    pub(crate) fn large(buf: LargeBuf) -> Self {
        Self(RecvSource::Other(OtherSource::Large(buf)))
    }

    /// Hands the bytes on, for as long as they are needed: copied, if they are few or lie in a
    /// buffer that others need.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            RecvSource::Other(OtherSource::Large(buf)) => buf.into_bytes(),
            RecvSource::Other(OtherSource::Owned(bytes)) => bytes.into(),
            _ => Bytes::copy_from_slice(self.bytes()),
        }
    }

    /// Returns the received bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            RecvSource::Scratch { bytes, len } => &bytes[..*len],
            RecvSource::Other(other) => other.bytes(),
        }
    }
}

impl OtherSource {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::End => &[],
            Self::Opened { bytes, len } => &bytes[..*len],
            Self::Owned(bytes) => bytes,
            Self::ProvidedBuf(provided) => provided.bytes(),
            Self::Large(buf) => buf.bytes(),
        }
    }
}

impl fmt::Debug for RecvBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").field("len", &self.bytes().len()).finish()
    }
}

/// How many parts one call to the kernel takes at most. It would take 1,024.
pub(crate) const PARTS_MAX: usize = 256;

/// Bytes on their way out, and how many of them have left.
#[derive(Debug, Default)]
pub struct SendBuf {
    /// The bytes that are its own.
    pub bytes: Vec<u8>,
    /// What is sent from where it lies, each piece behind so many of its own bytes.
    shared: Vec<(usize, Bytes)>,
    pub(crate) form: SendForm,
    /// How many of all have left.
    pub(crate) at: usize,
    /// Dropped with the bytes.
    guard: Option<Box<dyn SendGuard>>,
    /// It is one of those for whole steps of a file, of which a worker keeps a few.
    is_for_steps: bool,
}

/// What is kept as long as the bytes of a send, and follows how many of them have left.
pub trait SendGuard: fmt::Debug + Send + Sync {
    /// Takes note that so many of all bytes have left, and that the peer has to take some before
    /// more can.
    fn note_blocked(&self, left_already: usize);

    /// Takes note that the bytes have moved to an allocation of another size.
    ///
    /// - `bytes`: the size of that.
    fn note_moved(&mut self, bytes: usize);
}

/// The form of a send. It is one value, so that a plain send costs one comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendForm {
    /// All of it lies in one place, and leaves at once.
    #[default]
    Plain,
    /// More follows at once (a file): the kernel may hold a last short packet back for it.
    MoreFollows,
    /// The connection's end follows at once.
    EndFollows,
    /// It lies in several places.
    Parts,
    /// It is sent together with what follows, and stays where it is until then.
    Waiting,
}

impl SendForm {
    /// Returns whether the kernel may hold a last short packet back.
    pub(crate) fn is_followed(self) -> bool {
        matches!(self, Self::MoreFollows | Self::EndFollows)
    }
}

/// The bytes of a send that its peer has not taken yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// In its buffer.
    pub here: u64,
    /// In the kernel's queue, which may hold bytes of earlier sends too. 0 where it cannot be asked
    /// about.
    pub queued: u64,
    /// All bytes that the buffer has held.
    pub total: u64,
}

impl SendBuf {
    /// Adds a piece that is sent from where it lies.
    pub fn share(&mut self, piece: Bytes) {
        self.form = SendForm::Parts;
        self.shared.push((self.bytes.len(), piece));
    }

    /// Keeps a guard as long as the bytes, which are more than a worker keeps a buffer for.
    pub fn keep_with(&mut self, guard: Box<dyn SendGuard>) {
        debug_assert!(self.is_large(), "a usual buffer is used again without a look at its guard");
        self.guard = Some(guard);
    }

    /// Takes the guard out, for another buffer that holds its bytes in another form.
    pub fn take_guard(&mut self) -> Option<Box<dyn SendGuard>> {
        self.guard.take()
    }

    /// Tells the guard how far it is.
    #[inline]
    pub fn note_blocked(&self) {
        if let Some(guard) = &self.guard {
            guard.note_blocked(self.at);
        }
    }

    /// Returns whether its allocation is larger than those that a worker keeps.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.bytes.capacity() > SPARE_BYTES_MAX
    }

    /// Announces that more follows at once, by another operation: the kernel may hold a last short
    /// packet back for it.
    pub fn expect_more(&mut self) {
        self.form = SendForm::MoreFollows;
    }

    /// Announces that the connection ends behind it: its end travels with it, one packet less.
    pub fn expect_end(&mut self) {
        self.form = SendForm::EndFollows;
    }

    /// Returns whether the connection ends behind it.
    pub fn ends(&self) -> bool {
        self.form == SendForm::EndFollows
    }

    /// Keeps it back when it is sent, until it is taken back: what follows is to leave
    /// with it.
    pub fn wait_for_more(&mut self) {
        self.form = SendForm::Waiting;
    }

    /// Undoes what was said of what follows.
    pub fn expect_nothing(&mut self) {
        self.form = if self.shared.is_empty() { SendForm::Plain } else { SendForm::Parts };
    }

    /// Returns whether it is kept back for what follows.
    pub fn waits_for_more(&self) -> bool {
        self.form == SendForm::Waiting
    }

    /// Returns the next bytes that have not left and lie in one place; none if all have left.
    pub fn next_part(&self) -> &[u8] {
        self.parts().next().unwrap_or_default()
    }

    /// Counts the next bytes as left, for an owner that sends them in another form.
    pub fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        debug_assert!(self.at <= self.len(), "more has left than there is");
    }

    /// Returns how many bytes have not left.
    pub fn left(&self) -> usize {
        self.len() - self.at
    }

    /// Returns how many bytes there are in all, those that have left too.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared.iter().map(|(_, piece)| piece.len()).sum::<usize>()
    }

    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_empty()
    }

    /// Takes all bytes out, in one place.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        let bytes = if self.shared.is_empty() {
            std::mem::take(&mut self.bytes)
        } else {
            let all = self.parts().collect::<Vec<_>>().concat();
            self.bytes.clear();
            all
        };
        self.clear(SPARE_BYTES_MAX);
        bytes
    }

    /// Returns the bytes that have not left yet, where all of them lie in one place.
    pub(crate) fn rest(&self) -> &[u8] {
        debug_assert!(self.shared.is_empty(), "there are parts");
        &self.bytes[self.at..]
    }

    /// Returns the bytes that have not left yet, place by place; none is empty.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let end = [(self.bytes.len(), &[][..])];
        let shared = self.shared.iter().map(|(behind, piece)| (*behind, &piece[..])).chain(end);
        let (mut from, mut left_already) = (0, self.at);
        let parts = shared.flat_map(move |(to, piece)| {
            let own = &self.bytes[from..to];
            from = to;
            [own, piece]
        });
        parts.filter_map(move |part| {
            let cut = left_already.min(part.len());
            left_already -= cut;
            Some(&part[cut..]).filter(|part| !part.is_empty())
        })
    }

    /// Returns whether all of it has left.
    pub(crate) fn has_left(&self) -> bool {
        self.at == self.len()
    }

    /// Forgets everything, and keeps the allocation unless it is larger than `keep_bytes_max`.
    fn clear(&mut self, keep_bytes_max: usize) {
        if self.bytes.capacity() > keep_bytes_max {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.shared.clear();
        self.form = SendForm::Plain;
        self.at = 0;
        self.guard = None;
    }

    /// Returns whether it has nothing to forget but its own bytes, in an allocation worth keeping.
    #[inline]
    fn is_usual(&self, keep_bytes_max: usize) -> bool {
        self.form == SendForm::Plain && self.bytes.capacity() <= keep_bytes_max
    }
}

/// How many unused [`SendBuf`]s a worker keeps, and how large each may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 * 1024;
/// The same of those for whole steps of a file: to allocate them anew would cost as much as to fill
/// them.
const STEP_SPARE_MAX: usize = 8;
const STEP_SPARE_BYTES_MAX: usize = 72 * 1024;

/// Unused [`SendBuf`]s: answering allocates nothing once a worker is warm.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "they travel boxed: a link and a socket hold 8 bytes of each")]
pub(crate) struct BufPool {
    unused: Vec<Box<SendBuf>>,
    for_steps: Vec<Box<SendBuf>>,
}

impl BufPool {
    #[expect(clippy::unnecessary_box_returns, reason = "kept boxed, see above")]
    pub(crate) fn take(&mut self) -> Box<SendBuf> {
        self.unused.pop().unwrap_or_default()
    }

    /// Returns a buffer for a whole step of a file that has to be read.
    #[expect(clippy::unnecessary_box_returns, reason = "kept boxed, see above")]
    pub(crate) fn take_for_step(&mut self) -> Box<SendBuf> {
        let mut out = self.for_steps.pop().unwrap_or_default();
        out.is_for_steps = true;
        out
    }

    #[inline]
    pub(crate) fn put(&mut self, mut out: Box<SendBuf>) {
        // Room without growing is room: growing ends at `SPARE_MAX`.
        if out.is_usual(SPARE_BYTES_MAX) && self.unused.len() < self.unused.capacity() {
            out.bytes.clear();
            out.at = 0;
            self.unused.push(out);
        } else {
            self.put_unusual(out);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_unusual(&mut self, mut out: Box<SendBuf>) {
        if out.is_for_steps && self.for_steps.len() < STEP_SPARE_MAX {
            out.clear(STEP_SPARE_BYTES_MAX);
            self.for_steps.push(out);
        } else if self.unused.len() < SPARE_MAX {
            out.is_for_steps = false;
            out.clear(SPARE_BYTES_MAX);
            self.unused.push(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_has_not_left_wherever_it_lies() {
        let mut out = SendBuf::default();
        out.share(Bytes::from_static(b"first"));
        out.bytes.extend_from_slice(b"-own-");
        out.share(Bytes::from_static(b"second"));
        out.share(Bytes::from_static(b"third"));
        out.bytes.extend_from_slice(b".");
        let whole = b"first-own-secondthird.";
        assert_eq!(out.len(), whole.len());
        for at in 0..=whole.len() {
            out.at = at;
            assert_eq!(out.parts().collect::<Vec<_>>().concat(), whole[at..], "{at}");
            assert!(out.parts().all(|part| !part.is_empty()));
            assert_eq!(out.has_left(), at == whole.len());
        }
        out.at = 0;
        assert_eq!(out.take_bytes(), whole);
        assert!(out.is_empty() && out.form == SendForm::Plain);
    }
}
