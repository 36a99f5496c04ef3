//! A server that does not listen, for questions about it.

use std::sync::Arc;

use gustnado_app::app::{App, AppHandle, ServerShared};
use gustnado_app::hooks::Hooks;
use gustnado_files::LookupTrace;
use gustnado_tls::TlsAcceptor;

use super::listeners::NameLookup;
use super::{RouteResources, StartError, acme, lines, listeners, lists};
use crate::builder::Server;
use crate::config::Machine;

/// A server that only this process can ask.
pub(crate) struct AskedApp {
    pub(crate) app: Arc<App>,
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
}

impl AskedApp {
    /// - `trace`: where lookups of files are noted.
    ///
    /// # Errors
    /// As the start of the server.
    pub(crate) fn new(builder: &Server, trace: &LookupTrace) -> Result<Self, StartError> {
        let mut config = builder.config.clone();
        // It is asked by HTTP/1.1.
        config.http1 = true;
        let plans = listeners::plans(builder, NameLookup::AtStart)?;
        let is_there = acme::is_there(&config, listeners::has_plain(&plans))?;
        let tls = if is_there { listeners::tls_acceptor(builder, &plans)? } else { None };
        let openings = listeners::openings(&config, &plans, tls.as_ref());
        let endpoints: Vec<_> = plans.iter().map(|plan| plan.endpoint.clone()).collect();
        let mut resources = RouteResources::new(&config, 1);
        resources.trace = Some(trace.clone());
        let scheduler = config.scheduler.as_str();
        let shared = ServerShared::new(1, scheduler, resources.folders.counts());
        let lists = lists(&config, &endpoints);
        let tables = resources.tables(builder, &shared, &Machine::read(), lists)?;
        shared.set_lines(lines(&config, &builder.fields));
        shared.handler_limits.set(&config);
        shared.spool.set(&config);
        // What is asked here is in no log, and no callback hears of it.
        let hooks = (Hooks::default(), None);
        let current = AppHandle::new(|current| {
            App::new(&config, tables, hooks, Arc::clone(&shared), current, openings)
        });
        Ok(Self { app: current.app(), tls })
    }
}
