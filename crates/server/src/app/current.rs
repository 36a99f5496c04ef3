//! The app in force, and how a reload puts another one in its place.
//!
//! A connection holds the [`App`] it was accepted under. A reload puts another one in its place and
//! gives the old one notice. Each connection sees that at its next request, in the branch where it
//! would see a drain, and takes the new one before it answers. So a reload costs nothing where none
//! happens, drops no connection, and counts for all of them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::App;
use crate::routes::Tables;

/// The app that counts now.
pub(crate) struct Current {
    app: RwLock<Arc<App>>,
}

impl Current {
    /// - `make`: makes the first app; it can reach this later.
    pub(crate) fn new(make: impl FnOnce(Weak<Self>) -> App) -> Arc<Self> {
        Arc::new_cyclic(|current| {
            let app = make(Weak::clone(current));
            Self { app: RwLock::new(Arc::new(app)) }
        })
    }

    /// What a connection is to be served by from now on.
    pub(crate) fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another app in the place of this one, which every connection will see.
    pub(crate) fn replace(&self, app: App) {
        let lasting = Arc::clone(&app.lasting);
        self.put(app);
        lasting.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Serves by other routes from now on.
    pub(crate) fn swap_routes(&self, tables: Tables) {
        self.put(self.app().with_tables(Arc::new(tables)));
    }

    fn put(&self, app: App) {
        let mut place = self.app.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, Arc::new(app));
        drop(place);
        old.give_notice();
        if old.is_draining() {
            self.app().give_notice();
        }
    }

    /// From now on each connection's next answer is its last.
    pub(crate) fn drain(&self) {
        let app = self.app();
        app.lasting.begin_draining();
        app.give_notice();
        // (One that came meanwhile has seen it.)
        self.app().give_notice();
    }
}
