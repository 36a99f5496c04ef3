//! The routes in force, and what a worker keeps of them from one request to the next.

use std::cell::{Cell, Ref, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gustnado_tasks::BlockingPool;

use crate::build_context::BuildContext;
use crate::handler::{HandlerId, Placed};
use crate::request::Request;
use crate::routes::Tables;

/// The routes that count now, and what others would be made ready with.
pub(crate) struct ActiveRoutes {
    tables: Mutex<Arc<Tables>>,
    /// Another one when the tables are swapped, and no other site's.
    version: AtomicU64,
    pub(crate) build: BuildContext,
}

thread_local! {
    /// What this worker answers by. (A thread works for one server, but in tests.)
    static CACHE: RefCell<Option<RouteCache>> = const { RefCell::new(None) };
}

/// The tables as a worker knows them, and what it keeps from one request to the next.
pub(crate) struct RouteCache {
    version: u64,
    pub(crate) tables: Arc<Tables>,
    /// The path that was found last.
    pub(crate) recent: Cell<usize>,
    /// The request of the last inline handler, to be used again.
    pub(crate) used: Cell<Option<Box<Request>>>,
    /// Where the last task handler was at work that answered at once, and which one that was.
    pub(crate) place: Cell<Option<(HandlerId, Box<dyn Placed>)>>,
}

impl ActiveRoutes {
    pub(crate) fn new(tables: Tables, build: BuildContext) -> Self {
        let tables = Mutex::new(Arc::new(tables));
        Self { tables, version: AtomicU64::new(fresh_version()), build }
    }

    /// Runs `act` with the tables that count now. Nothing is locked unless they were swapped since
    /// this worker last looked.
    #[inline]
    pub(crate) fn with<T>(&self, act: impl FnOnce(&RouteCache) -> T) -> T {
        let version = self.version.load(Ordering::Acquire);
        CACHE.with(|cell| {
            let cache = cell.borrow();
            let cache = match &*cache {
                Some(current) if current.version == version => cache,
                _ => {
                    drop(cache);
                    self.load(cell, version)
                }
            };
            act(cache.as_ref().expect("learnt just now, at the latest"))
        })
    }

    #[cold]
    fn load<'c>(
        &self,
        cell: &'c RefCell<Option<RouteCache>>,
        version: u64,
    ) -> Ref<'c, Option<RouteCache>> {
        let tables = Arc::clone(&self.tables.lock().unwrap_or_else(PoisonError::into_inner));
        let cache = RouteCache {
            version,
            tables,
            recent: Cell::new(0),
            used: Cell::new(None),
            place: Cell::new(None),
        };
        *cell.borrow_mut() = Some(cache);
        cell.borrow()
    }

    pub(crate) fn swap(&self, tables: Tables) {
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tables);
        self.version.store(fresh_version(), Ordering::Release);
    }
}

/// A version that no tables of this process have had.
fn fresh_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The blocking pool of the server that the running thread works for, once it has answered by
/// routes.
pub(crate) fn pool() -> Option<BlockingPool> {
    CACHE.with_borrow(|cache| cache.as_ref().map(|cache| cache.tables.pool().clone()))
}

/// Drops what the running thread keeps.
pub(super) fn forget() {
    let cache = CACHE.take();
    // (Not while it is borrowed: the last use of routes may run a program's destructors.)
    drop(cache);
}
