//! The access log of a server that runs.

use super::{Running, StartError};

impl Running {
    /// Opens the access log anew, under the same name: for whoever has moved it away, such as
    /// logrotate. Without a log it does nothing. Lines that were waiting go into the old file;
    /// none is lost, and no request waits.
    ///
    /// The log's own thread opens the file; this waits for it, for a second at most.
    ///
    /// # Errors
    /// [`StartError::AccessLog`]: it cannot be opened, and the old file is written on. Of the kind
    /// `TimedOut`: the disk has not answered; the file is opened again once it does.
    pub fn reopen_logs(&self) -> Result<(), StartError> {
        match &self.current.app().access_log {
            Some(log) => Ok(log.reopen()?),
            None => Ok(()),
        }
    }

    /// Writes what waits to be written of the access log, which else takes a quarter of a second:
    /// for whoever ends the process without a drain. A frozen disk gets a second for it.
    pub fn flush_logs(&self) {
        if let Some(log) = &self.current.app().access_log {
            log.flush();
        }
    }
}
