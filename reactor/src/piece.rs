//! Owned buffers: what was received, and what is to be sent.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::buffers::Provided;

/// How many bytes one epoll receive can take at most.
const SCRATCH_BYTES: usize = 32 * 1024;

type ScratchBytes = Box<[u8; SCRATCH_BYTES]>;

/// The buffer that a worker under epoll receives into: one is enough, for pieces do not last.
#[derive(Default)]
pub(crate) struct Scratch(Cell<Option<ScratchBytes>>);

impl Scratch {
    pub(crate) fn take(&self) -> ScratchBytes {
        self.0.take().unwrap_or_else(|| {
            let zeroed = vec![0; SCRATCH_BYTES].into_boxed_slice();
            zeroed.try_into().expect("made with this length")
        })
    }

    pub(crate) fn put_back(&self, bytes: ScratchBytes) {
        self.0.set(Some(bytes));
    }
}

/// Bytes that were received, in the buffer they arrived in. Empty means that the peer has sent its
/// last byte.
///
/// The buffer goes back to its reactor when the piece is dropped, so do not keep pieces: copy what
/// must outlive the turn. A piece stays on its thread.
pub struct Piece(Source);

enum Source {
    End,
    Owned(Box<[u8]>),
    Scratch { home: Rc<Scratch>, bytes: Option<ScratchBytes>, len: usize },
    Provided(Provided),
}

impl Piece {
    pub(crate) fn end() -> Self {
        Self(Source::End)
    }

    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        Self(Source::Owned(bytes.into_boxed_slice()))
    }

    pub(crate) fn provided(provided: Provided) -> Self {
        Self(Source::Provided(provided))
    }

    pub(crate) fn scratch(home: Rc<Scratch>, bytes: ScratchBytes, len: usize) -> Self {
        Self(Source::Scratch { home, bytes: Some(bytes), len })
    }

    /// The received bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Source::Scratch { bytes: Some(bytes), len, .. } => &bytes[..*len],
            Source::End | Source::Scratch { bytes: None, .. } => &[],
            Source::Owned(bytes) => bytes,
            Source::Provided(provided) => provided.bytes(),
        }
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").field("len", &self.bytes().len()).finish()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Source::Scratch { home, bytes, .. } = &mut self.0
            && let Some(bytes) = bytes.take()
        {
            home.put_back(bytes);
        }
    }
}

/// Bytes on their way out, and how many of them have left.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// The bytes, in whole.
    pub bytes: Vec<u8>,
    /// More follows at once (a file): the kernel may hold a last short packet back for it.
    pub more: bool,
    pub(crate) at: usize,
}

/// Where the bytes of a send are that its peer has not taken yet.
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

impl Outgoing {
    /// The bytes that have not left yet.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Forgets everything, and keeps the allocation unless it is larger than `keep_bytes_max`.
    fn clear(&mut self, keep_bytes_max: usize) {
        if self.bytes.capacity() > keep_bytes_max {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.more = false;
        self.at = 0;
    }
}

/// How many unused [`Outgoing`]s a worker keeps, and how large each may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 16 * 1024;

/// Unused [`Outgoing`]s: answering allocates nothing once a worker is warm.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "they travel boxed: a link and a socket hold 8 bytes of each")]
pub(crate) struct Spare {
    unused: Vec<Box<Outgoing>>,
}

impl Spare {
    #[expect(clippy::unnecessary_box_returns, reason = "kept boxed, see above")]
    pub(crate) fn take(&mut self) -> Box<Outgoing> {
        self.unused.pop().unwrap_or_default()
    }

    pub(crate) fn put(&mut self, mut out: Box<Outgoing>) {
        if self.unused.len() < SPARE_MAX {
            out.clear(SPARE_BYTES_MAX);
            self.unused.push(out);
        }
    }
}
