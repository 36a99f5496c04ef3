//! Another configuration for a server that runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gustnado_tasks::Endpoint;

use super::listeners::{self, Listeners};
use super::{Running, StartError, State, lines};
use crate::builder::Server;
use crate::config::{Config, TUNABLES};
use gustnado_app::app::App;
use gustnado_observe::access_log::AccessLog;

/// What a reload came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings that have another value now.
    pub changed: Vec<&'static str>,
    /// Settings that would have another value, if that did not need a restart.
    pub kept: Vec<&'static str>,
    /// Where it has begun to listen.
    pub opened: Vec<Endpoint>,
    /// Where it has stopped listening. Connections that came from there stay open.
    pub closed: Vec<Endpoint>,
}

impl Running {
    /// Serves something else from now on, without closing a connection.
    ///
    /// All of it is made ready before anything changes: folders, routes, new listeners. Requests
    /// that are being answered go on as they began, and each connection's next request is answered
    /// by what is said here: site, limits and times alike. A time that runs already (an idle
    /// connection's, say) runs on. The `Server` field and those of [`Server::header`] follow within
    /// a second.
    ///
    /// What only a restart can change stays as it was, and is named in the report.
    ///
    /// # Errors
    /// As [`Server::start`], and everything stays as it was. That is counted in
    /// [`crate::Stats::reloads_refused`].
    pub fn reload(&self, to: Server) -> Result<Reloaded, StartError> {
        let outcome = self.take_over(&mut self.state(), to);
        if outcome.is_err() {
            self.refuse_reload();
        }
        outcome
    }

    /// Counts a configuration that was wrong before [`Running::reload`] could be asked for it.
    pub fn refuse_reload(&self) {
        self.shared.reloads_refused.fetch_add(1, Ordering::Relaxed);
    }

    fn take_over(&self, state: &mut State, mut to: Server) -> Result<Reloaded, StartError> {
        if self.shared.is_draining() {
            return Err(StartError::Ending);
        }
        let kept = keep(&state.config, &mut to.config);
        let endpoints = listeners::endpoints(&to.config)?;
        let lists = super::lists(&to.config, &endpoints);
        let tables = self.making.tables(&to, &self.shared, lists)?;
        let old = self.current.app();
        let (places, logs) = (self.shared.places(), &self.shared.logs);
        let log = AccessLog::of(&to.config, places, logs, old.access_log.as_deref())?;
        let mut more = Listeners::default();
        for endpoint in endpoints.iter().filter(|one| !state.listeners.listens_on(one)) {
            if let Err(error) = more.open(&self.workers, endpoint.clone(), &self.current) {
                more.stop();
                return Err(error);
            }
        }
        // From here on nothing can fail.
        let opened = more.addresses();
        self.shared.set_lines(lines(&to.config, &to.fields));
        let current = Arc::downgrade(&self.current);
        let (hooks, shared) = (to.hooks.clone(), Arc::clone(&self.shared));
        self.current.replace(App::new(&to.config, tables, (hooks, log), shared, current));
        if let Some(log) = &old.access_log {
            log.flush();
        }
        state.listeners.extend(more);
        let closed = state.listeners.keep_only(&endpoints);
        let changed = changed(&state.config, &to.config);
        state.config = to.config;
        Ok(Reloaded { changed, kept, opened, closed })
    }
}

/// Takes back what only a restart can change, and says what that was.
fn keep(old: &Config, new: &mut Config) -> Vec<&'static str> {
    let mut kept = Vec::new();
    for tunable in TUNABLES.iter().filter(|tunable| tunable.needs_restart()) {
        let value = tunable.show(old);
        if tunable.show(new) != value {
            tunable.set(new, value.as_ref()).expect("a test sets every shown value again");
            kept.push(tunable.name);
        }
    }
    kept
}

fn changed(old: &Config, new: &Config) -> Vec<&'static str> {
    let is_changed = |tunable: &&crate::config::Tunable| tunable.show(old) != tunable.show(new);
    TUNABLES.iter().filter(is_changed).map(|tunable| tunable.name).collect()
}
