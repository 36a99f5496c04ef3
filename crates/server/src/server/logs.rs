//! The access log of a server that runs, and lines about connections that ended by an error.

use std::io::{self, Write};
use std::sync::Arc;

use gustnado_app::hooks::Hooks;
use gustnado_config::Config;
use gustnado_tasks::BlockingPool;

use super::{Running, StartError};

impl Running {
    /// Reopens the access log under the same name, after logrotate has moved the file. Does nothing
    /// without a log. Lines already queued go to the old file; none is lost, and no request waits.
    ///
    /// The log's own thread opens the file; this waits for it, for a second at most.
    ///
    /// # Errors
    /// [`StartError::AccessLog`]: the file cannot be opened, and the old one is still written. With
    /// the kind `TimedOut` the disk did not respond in time; the file is reopened once it does.
    pub fn reopen_logs(&self) -> Result<(), StartError> {
        match &self.current.app().access_log {
            Some(log) => Ok(log.reopen()?),
            None => Ok(()),
        }
    }

    /// Writes the queued lines of the access log, which otherwise takes up to a quarter of a
    /// second: for processes that end without a drain. Waits at most a second for a stalled disk.
    pub fn flush_logs(&self) {
        if let Some(log) = &self.current.app().access_log {
            log.flush();
        }
    }
}

/// Lines that may wait for standard error. Further ones are left out: clients make them, and
/// nothing is to wait for them.
const LINES_MAX: usize = 256;

/// Returns the hooks of a server, with one that writes lines where the settings want them and the
/// program has none.
pub(super) fn with_lines(hooks: &Hooks, config: &Config) -> Hooks {
    let mut hooks = hooks.clone();
    if config.log_connection_errors && hooks.fault.is_none() {
        let pool = BlockingPool::new(1, LINES_MAX);
        hooks.fault = Some(Arc::new(move |fault| {
            let line = format!("gustnado: a connection was ended by an error: {fault}");
            // Standard error may be closed; there is nowhere else to report it.
            let write = move || _ = writeln!(io::stderr(), "{line}");
            _ = pool.start(write);
        }));
    }
    hooks
}
