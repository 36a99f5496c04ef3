//! Counters of several processes that serve the same sockets.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use gustnado_observe::stats::SharedStats;
use gustnado_tasks::{duplicate, sleep};

use super::Running;

/// How often processes that serve together tell each other their counters.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

impl Running {
    /// Adds up the counters on pages with those of other processes that serve the same sockets, by
    /// a file in memory. Others see this process's counters of up to a second ago.
    ///
    /// - `number`: the file's descriptor, which stays the caller's. The file may be empty.
    /// - `place`: this process's own place in it. Another process may take it afterwards, and goes
    ///   on from the totals that are there.
    ///
    /// # Errors
    /// The file cannot be read, or no task can be started.
    #[doc(hidden)]
    pub fn share_stats(&self, number: RawFd, place: u32) -> io::Result<()> {
        let file = duplicate(number)?;
        self.shared.share_stats(SharedStats::join(file, place)?);
        self.shared.publish_stats(true);
        let shared = Arc::downgrade(&self.shared);
        let publishing = async move {
            loop {
                sleep(PUBLISH_EVERY).await;
                let Some(shared) = shared.upgrade() else { return };
                shared.publish_stats(true);
            }
        };
        self.workers.spawner().spawn(publishing).map(drop).map_err(io::Error::other)
    }

    /// Leaves this process's totals for the others at its end.
    #[doc(hidden)]
    pub fn leave_stats(&self) {
        self.shared.publish_stats(false);
    }
}
