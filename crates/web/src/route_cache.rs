//! State that a worker keeps from one request to the next.

use std::cell::{Cell, Ref, RefCell};

use gustnado_tasks::BlockingPool;

use crate::handler::{HandlerId, ReusableCall};
use crate::request::Request;
use crate::routes::Tables;

thread_local! {
    /// The cache of this worker. Outside tests a thread works for one server.
    static CACHE: RefCell<Option<RouteCache>> = const { RefCell::new(None) };
}

/// State of a worker for the routes in force.
pub struct RouteCache {
    /// The number of the tables.
    tables: u64,
    pool: BlockingPool,
    /// The exact path that was found last.
    pub recent: Cell<usize>,
    /// The request of the last inline handler, to be reused.
    pub used: Cell<Option<Box<Request>>>,
    /// The memory of the last task handler that responded at once, and its identity.
    pub place: Cell<Option<(HandlerId, Box<dyn ReusableCall>)>>,
}

impl RouteCache {
    /// Runs `act` with this worker's cache for `tables`.
    #[inline]
    pub fn with<T>(tables: &Tables, act: impl FnOnce(&Self) -> T) -> T {
        CACHE.with(|cell| {
            let cache = cell.borrow();
            let cache = match &*cache {
                Some(kept) if kept.tables == tables.number => cache,
                _ => {
                    drop(cache);
                    Self::begin(cell, tables)
                }
            };
            act(cache.as_ref().expect("it was just begun, if there was none"))
        })
    }

    #[cold]
    fn begin<'c>(cell: &'c RefCell<Option<Self>>, tables: &Tables) -> Ref<'c, Option<Self>> {
        let new = Self {
            tables: tables.number,
            pool: tables.build.pool.clone(),
            recent: Cell::new(0),
            used: Cell::new(None),
            place: Cell::new(None),
        };
        let old = cell.replace(Some(new));
        // Dropped after the borrow has ended: that may run destructors of the program.
        drop(old);
        cell.borrow()
    }

    /// Returns the blocking pool of the server that the running thread works for, once a handler
    /// has run on it.
    pub fn pool() -> Option<BlockingPool> {
        CACHE.with_borrow(|cache| cache.as_ref().map(|cache| cache.pool.clone()))
    }

    /// Drops the cache of the running thread.
    pub fn forget() {
        drop(CACHE.take());
    }
}
