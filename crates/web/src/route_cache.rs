//! What a worker keeps of handlers from one request to the next.

use std::cell::{Cell, Ref, RefCell};

use gustnado_tasks::BlockingPool;

use crate::handler::{HandlerId, ReusableCall};
use crate::request::Request;
use crate::routes::Tables;

thread_local! {
    /// What this worker keeps. (A thread works for one server, but in tests.)
    static CACHE: RefCell<Option<RouteCache>> = const { RefCell::new(None) };
}

/// What a worker keeps of the handlers of some routes.
pub struct RouteCache {
    /// The number of the tables.
    tables: u64,
    pool: BlockingPool,
    /// The path that was found last.
    pub recent: Cell<usize>,
    /// The request of the last inline handler, to be used again.
    pub used: Cell<Option<Box<Request>>>,
    /// Where the last task handler was at work that responded at once, and which one that was.
    pub place: Cell<Option<(HandlerId, Box<dyn ReusableCall>)>>,
}

impl RouteCache {
    /// Runs `act` with what this worker keeps of the handlers in `tables`.
    #[inline]
    pub fn with<T>(tables: &Tables, act: impl FnOnce(&Self) -> T) -> T {
        CACHE.with(|cell| {
            let cache = cell.borrow();
            let cache = match &*cache {
                Some(kept) if kept.tables == tables.number() => cache,
                _ => {
                    drop(cache);
                    Self::begin(cell, tables)
                }
            };
            act(cache.as_ref().expect("begun just now, at the latest"))
        })
    }

    #[cold]
    fn begin<'c>(cell: &'c RefCell<Option<Self>>, tables: &Tables) -> Ref<'c, Option<Self>> {
        let new = Self {
            tables: tables.number(),
            pool: tables.pool().clone(),
            recent: Cell::new(0),
            used: Cell::new(None),
            place: Cell::new(None),
        };
        let old = cell.replace(Some(new));
        // (Not while it is borrowed: its end may run a program's destructors.)
        drop(old);
        cell.borrow()
    }

    /// Returns the blocking pool of the server that the running thread works for, once a handler
    /// has run on it.
    pub fn pool() -> Option<BlockingPool> {
        CACHE.with_borrow(|cache| cache.as_ref().map(|cache| cache.pool.clone()))
    }

    /// Drops what the running thread keeps.
    pub fn forget() {
        drop(CACHE.take());
    }
}
