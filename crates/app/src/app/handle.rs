//! The app in force, and how a reload puts another one in its place.
//!
//! A connection holds the [`App`] it was accepted under. A reload puts another one in its place and
//! gives the old one notice. Each connection sees that at its next request, in the branch where it
//! would see a drain, and takes the new one before it answers. So a reload costs nothing where none
//! happens, drops no connection, and counts for all of them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::App;
use gustnado_web::routes::Tables;

/// The app that counts now.
pub struct AppHandle {
    app: RwLock<Arc<App>>,
}

impl AppHandle {
    /// - `make`: makes the first app; it can reach this later.
    pub fn new(make: impl FnOnce(Weak<Self>) -> App) -> Arc<Self> {
        Arc::new_cyclic(|current| {
            let app = make(Weak::clone(current));
            Self { app: RwLock::new(Arc::new(app)) }
        })
    }

    /// What a connection is to be served by from now on.
    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another app in the place of this one, which every connection will see.
    pub fn replace(&self, app: App) {
        let shared = Arc::clone(&app.shared);
        self.put(app);
        shared.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Serves by other routes from now on.
    pub fn swap_routes(&self, tables: Tables) {
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
    pub fn drain(&self) {
        let app = self.app();
        app.shared.begin_draining();
        app.give_notice();
        // (One that came meanwhile has seen it.)
        self.app().give_notice();
    }
}
