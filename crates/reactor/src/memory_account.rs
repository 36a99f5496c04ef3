//! The account of the memory that receive buffers take. The reactor knows no budgets: its owner
//! may give it one.

use std::fmt;
use std::sync::Arc;

/// Memory for receive buffers, which several reactors may share.
pub trait MemoryAccount: Send + Sync {
    /// Adds to what is held; a negative number was released.
    fn change(&self, bytes: i64);

    /// Returns whether so many bytes more may be held.
    fn has_room_for(&self, bytes: usize) -> bool;
}

/// The account of a reactor. By default nothing is counted, and there is always room.
#[derive(Clone, Default)]
pub struct BufferAccount(Option<Arc<dyn MemoryAccount>>);

impl BufferAccount {
    /// Creates one that counts.
    pub fn new(account: Arc<dyn MemoryAccount>) -> Self {
        Self(Some(account))
    }

    pub(crate) fn add(&self, bytes: usize) {
        if let Some(account) = &self.0 {
            account.change(signed(bytes));
        }
    }

    pub(crate) fn release(&self, bytes: usize) {
        if let Some(account) = &self.0 {
            account.change(-signed(bytes));
        }
    }

    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.0.as_ref().is_none_or(|account| account.has_room_for(bytes))
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl fmt::Debug for BufferAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BufferAccount").field(&self.0.is_some()).finish()
    }
}

/// Buffers that a reactor has for its whole life, counted until it is dropped.
pub(crate) struct FixedBuffers {
    account: BufferAccount,
    bytes: usize,
}

impl FixedBuffers {
    pub(crate) fn new(account: &BufferAccount, bytes: usize) -> Self {
        account.add(bytes);
        Self { account: account.clone(), bytes }
    }
}

impl Drop for FixedBuffers {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}
