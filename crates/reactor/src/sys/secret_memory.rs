//! Memory for secrets: the kernel leaves it out of core dumps, and it is wiped when it is given
//! back.
//!
//! Pieces of one size come from pages of their own. Pages are never given back: as many stay as
//! were needed at once.

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use zeroize::Zeroize;

/// Bytes of a piece.
pub const SECRET_BYTES: usize = 96;
/// Bytes that are mapped at once.
const CHUNK_BYTES: usize = 64 << 10;

type SecretPiece = [u8; SECRET_BYTES];

/// Pieces that nobody has.
struct FreeSecretPieces(Vec<NonNull<SecretPiece>>);

// SAFETY: each pointer leads to memory that is never unmapped, and is in one place only: in this
// list, or in one `SecretBytes`.
unsafe impl Send for FreeSecretPieces {}

static FREE: Mutex<FreeSecretPieces> = Mutex::new(FreeSecretPieces(Vec::new()));

fn free() -> MutexGuard<'static, FreeSecretPieces> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes for a secret; all zero at first.
pub struct SecretBytes(NonNull<SecretPiece>);

// SAFETY: it owns its piece alone, as a box does.
unsafe impl Send for SecretBytes {}
// SAFETY: through a shared reference the piece is only read.
unsafe impl Sync for SecretBytes {}

impl SecretBytes {
    /// Takes a piece. Where the kernel has no pages left it is one of the heap, wiped all the same.
    pub fn new() -> Self {
        let mut free = free();
        if free.0.is_empty() {
            map_more(&mut free.0);
        }
        let piece = free.0.pop();
        Self(piece.unwrap_or_else(|| NonNull::from(Box::leak(Box::new([0; SECRET_BYTES])))))
    }
}

/// Maps pages, and adds their pieces.
fn map_more(pieces: &mut Vec<NonNull<SecretPiece>>) {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: no address is asked for, so that no other mapping is touched.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), CHUNK_BYTES, protection, flags) };
    let Ok(start) = mapped else { return };
    // A kernel that does not know the advice dumps the pages; that is no reason to have none.
    // SAFETY: the pages were just mapped, and the advice changes nothing of what is in them.
    _ = unsafe { madvise(start, CHUNK_BYTES, Advice::LinuxDontDump) };
    let first = start.cast::<SecretPiece>();
    for at in 0..CHUNK_BYTES / SECRET_BYTES {
        // SAFETY: the piece ends within the pages that were just mapped.
        let piece = unsafe { first.add(at) };
        pieces.extend(NonNull::new(piece));
    }
}

impl Default for SecretBytes {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for SecretBytes {
    type Target = SecretPiece;

    fn deref(&self) -> &SecretPiece {
        // SAFETY: the piece is mapped for ever, was zeroed by the kernel or at its last drop, and
        // belongs to this value alone.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut SecretPiece {
        // SAFETY: as in `deref`, and nothing else refers to it while this value is borrowed so.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.zeroize();
        free().0.push(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_zero_again_for_its_next_owner() {
        let mut all: Vec<SecretBytes> = (0..2_000).map(|_| SecretBytes::new()).collect();
        for (at, piece) in all.iter_mut().enumerate() {
            assert_eq!(**piece, [0; SECRET_BYTES]);
            piece.fill(u8::try_from(at % 251 + 1).expect("below 256"));
        }
        // Each has its own: none was written over.
        for (at, piece) in all.iter().enumerate() {
            let fill = u8::try_from(at % 251 + 1).expect("below 256");
            assert_eq!(**piece, [fill; SECRET_BYTES]);
        }
        drop(all);
        for _ in 0..2_000 {
            assert_eq!(*SecretBytes::new(), [0; SECRET_BYTES]);
        }
    }

    /// What the kernel says about the pages: `dd` is "do not dump".
    #[test]
    fn pages_of_secrets_are_left_out_of_core_dumps() {
        let piece = SecretBytes::new();
        let address = ptr::from_ref::<SecretPiece>(&piece) as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut is_own = false;
        let flags = maps.lines().find_map(|line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            if let Some((from, to)) = range
                && let (Ok(from), Ok(to)) =
                    (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                is_own = (from..to).contains(&address);
            }
            line.strip_prefix("VmFlags:").filter(|_| is_own)
        });
        let flags = flags.expect("the piece is mapped");
        assert!(flags.split(' ').any(|flag| flag == "dd"), "{flags}");
    }
}
