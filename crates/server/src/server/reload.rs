//! Reloads: a new configuration for a running server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado_tasks::Endpoint;

use super::listeners::{self, ListenerPlan, Listeners, NameLookup};
use super::logs::with_lines;
use super::{ReloadState, Running, StartError, acme, lines, set_budgets};
use crate::builder::Server;
use crate::config::{Config, Machine, TUNABLES};
use gustnado_app::app::App;
use gustnado_observe::access_log::AccessLog;
use gustnado_observe::last_reload::LastReload;
use gustnado_observe::server_stats::ServerStats;

/// The longest reason that is kept.
const REASON_CHARS_MAX: usize = 1_000;

/// Report of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings whose value changed.
    pub changed: Vec<&'static str>,
    /// Settings whose new value needs a restart and was not applied.
    pub kept: Vec<&'static str>,
    /// Endpoints that were opened.
    pub opened: Vec<Endpoint>,
    /// Endpoints that were closed. Their connections stay open.
    pub closed: Vec<Endpoint>,
}

impl Running {
    /// Replaces the configuration without closing a connection.
    ///
    /// Folders, routes and new listeners are prepared before anything changes. Running requests
    /// finish by the old configuration; each connection's next request follows the new one, its
    /// limits and time-outs included. A time-out that already runs, e.g. of an idle connection, is
    /// kept. The `Server` field and those of [`Server::header`] follow within a second.
    ///
    /// Settings that need a restart keep their value, and are named in the report.
    ///
    /// # Errors
    /// As [`Server::start`]; the old configuration stays. [`crate::Stats::reloads_refused`] counts
    /// the failures.
    pub fn reload(&self, to: Server) -> Result<Reloaded, StartError> {
        let outcome = self.take_over(&mut self.state(), to);
        match &outcome {
            Ok(reloaded) => self.note_reload(true, String::new(), reloaded.kept.clone()),
            Err(error) => self.refuse_reload(&error.to_string()),
        }
        outcome
    }

    /// Counts a configuration that was rejected before [`Running::reload`] was called.
    ///
    /// - `reason`: what is wrong with it, for [`Running::last_reload`] and the page of counters.
    pub fn refuse_reload(&self, reason: &str) {
        self.shared.reloads_refused.fetch_add(1, Ordering::Relaxed);
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        self.note_reload(false, reason, Vec::new());
    }

    /// Returns the result of the last reload; `None` before the first.
    pub fn last_reload(&self) -> Option<LastReload> {
        self.shared.last_reload()
    }

    fn note_reload(&self, taken: bool, reason: String, kept: Vec<&'static str>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_s = since.as_secs();
        let before = || self.last_reload()?.taken_at_s;
        let taken_at_s = if taken { Some(at_s) } else { before() };
        self.shared.note_reload(LastReload { at_s, taken, reason, kept, taken_at_s });
    }

    fn take_over(&self, state: &mut ReloadState, mut to: Server) -> Result<Reloaded, StartError> {
        if self.shared.is_draining() {
            return Err(StartError::Ending);
        }
        let mut kept = keep(&state.config, &mut to.config);
        let plans = listeners::plans(&to, NameLookup::Now)?;
        let endpoints: Vec<_> = plans.iter().map(|plan| plan.endpoint.clone()).collect();
        let lists = super::lists(&to.config, &endpoints);
        let machine = Machine::read();
        let tables = self.resources.tables(&to, &self.shared, &machine, lists)?;
        let has_plain = listeners::has_plain(&plans);
        let has_other_acme = acme::changes(&state.config, &to.config, has_plain);
        let keeper = if has_other_acme { acme::open(&to.config, has_plain, None)? } else { None };
        let tls = listeners::tls_acceptor(&to, &plans)?;
        if tls.is_some() && !state.watches_files {
            let failed = |error| StartError::Worker { error };
            super::tls::watch_files(&self.current, &self.shared).map_err(failed)?;
            state.watches_files = true;
        }
        let old = self.current.app();
        let (places, logs) = (self.shared.places(), &self.shared.logs);
        let log = AccessLog::of(&to.config, places, logs, old.access_log.as_deref())?;
        let mut more = Listeners::default();
        let is_open = |plan: &&ListenerPlan| state.listeners.listens_on(&plan.endpoint);
        for plan in plans.iter().filter(|plan| !is_open(plan)) {
            if let Err(error) = more.open(&self.workers, plan.clone(), &self.current) {
                more.stop();
                return Err(error);
            }
        }
        // From here on nothing can fail.
        if state.listeners.keeps_options(&plans) {
            kept.push("listen");
        }
        let opened = more.addresses();
        self.shared.set_lines(lines(&to.config, &to.fields));
        set_budgets(self.workers.ledger(), &machine.memory_plan(&to.config));
        let current = Arc::downgrade(&self.current);
        let (hooks, shared) = (with_lines(&to.hooks, &to.config), Arc::clone(&self.shared));
        let openings = listeners::openings(&to.config, &plans, tls.as_ref());
        match &tls {
            Some(tls) => super::tls::tell_ends(tls, &self.shared),
            None => self.shared.set_certificate_ends(Vec::new()),
        }
        self.current.replace(App::new(&to.config, tables, (hooks, log), shared, current, openings));
        if let Some(log) = &old.access_log {
            log.flush();
        }
        state.listeners.extend(more);
        let closed = state.listeners.keep_only(&plans);
        let changed = changed(&state.config, &to.config);
        self.shared.handler_limits.set(&to.config);
        self.shared.spool.set(&to.config);
        if has_other_acme {
            // The one before ends first: they share a folder.
            state.keeping = None;
            // Without a thread the certificate is renewed after the next reload or restart.
            state.keeping = keeper.and_then(|keeper| acme::keep(keeper, &self.shared).ok());
        }
        state.config = to.config;
        Ok(Reloaded { changed, kept, opened, closed })
    }
}

/// Resets settings that need a restart, and returns their names.
fn keep(old: &Config, new: &mut Config) -> Vec<&'static str> {
    let mut kept = Vec::new();
    for tunable in TUNABLES.iter().filter(|tunable| tunable.needs_restart()) {
        if tunable.show(new) != tunable.show(old) {
            tunable.copy(old, new);
            kept.push(tunable.name);
        }
    }
    kept
}

fn changed(old: &Config, new: &Config) -> Vec<&'static str> {
    let is_changed = |tunable: &&crate::config::Tunable| tunable.show(old) != tunable.show(new);
    TUNABLES.iter().filter(is_changed).map(|tunable| tunable.name).collect()
}
