//! The app in force, which a reload replaces.
//!
//! A connection holds the [`App`] it was accepted under. A reload installs another one and notifies
//! the old one. Each connection sees that at its next request, in the same branch as a drain, and
//! switches before it responds. So a reload costs nothing while there is none, drops no connection
//! and applies to all of them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::App;
use gustnado_web::routes::Tables;

/// The app in force.
pub struct AppHandle {
    app: RwLock<Arc<App>>,
}

impl AppHandle {
    /// - `make`: makes the first app, which can reach this handle later.
    pub fn new(make: impl FnOnce(Weak<Self>) -> App) -> Arc<Self> {
        Arc::new_cyclic(|current| {
            let app = make(Weak::clone(current));
            Self { app: RwLock::new(Arc::new(app)) }
        })
    }

    /// Returns the app in force.
    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the app. Every connection will see that.
    pub fn replace(&self, app: App) {
        let shared = Arc::clone(&app.shared);
        self.put(app);
        shared.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Replaces the routes.
    pub fn swap_routes(&self, tables: Tables) {
        self.put(self.app().with_tables(Arc::new(tables)));
    }

    fn put(&self, app: App) {
        let mut place = self.app.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, Arc::new(app));
        // Notified only after the swap: a connection that sees the notice must find the successor.
        drop(place);
        old.give_notice();
        // The drain may have notified the old app only. The lock orders this check against the
        // second notice in `drain`, so one of the two sees the other.
        if old.is_draining() {
            self.app().give_notice();
        }
    }

    /// Starts the drain: each connection's next response is its last.
    pub fn drain(&self) {
        let app = self.app();
        // The state before the notice: a connection that sees the notice reads the state next.
        app.shared.begin_draining();
        app.give_notice();
        // A reload may have installed another app meanwhile, which nothing has notified.
        self.app().give_notice();
    }
}
