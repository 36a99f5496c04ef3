//! The access log of a server that runs.

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
