//! Bytes that no peer can guess (RFC 6455 §10.3).

use std::cell::RefCell;

use rustix::rand::{GetRandomFlags, getrandom};

/// Taken from the kernel at a time. It gives so many whole.
const POOL_BYTES: usize = 256;

thread_local! {
    /// The last ones of these were not given away.
    static POOL: RefCell<([u8; POOL_BYTES], usize)> = const { RefCell::new(([0; POOL_BYTES], 0)) };
}

/// Returns bytes that were never returned before.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    POOL.with_borrow_mut(|(pool, left)| {
        if *left < N {
            let got = getrandom(&mut pool[..], GetRandomFlags::empty());
            // It waits for the kernel's first bytes, and no signal interrupts so few.
            assert_eq!(got, Ok(POOL_BYTES), "the kernel gives random bytes");
            *left = POOL_BYTES;
        }
        let (_, unused) = pool.split_at_mut(POOL_BYTES - *left);
        *left -= N;
        let (given, _) = unused.split_first_chunk_mut().expect("there are that many");
        std::mem::replace(given, [0; N])
    })
}
