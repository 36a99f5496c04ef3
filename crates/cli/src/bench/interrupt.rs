//! Ctrl-C: the first one stops the load and reports the outcome so far; the second one ends the
//! process at once.

use super::progress::BenchProgress;
use crate::output::Console;
use crate::{exit, signals};
use gustnado_lab::load::StopHandle;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Handle;
use std::io;
use std::thread::JoinHandle;

/// Handles signals from before the load until after it.
pub(super) struct Interrupt {
    handle: Handle,
    thread: JoinHandle<Option<i32>>,
}

impl Interrupt {
    /// Begins to handle signals.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn watch(
        stop: StopHandle,
        meter: BenchProgress,
        output: Console,
    ) -> io::Result<Self> {
        let mut signals = signals::caught(&[SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let watch = move || {
            let mut first = None;
            for signal in signals.forever() {
                if first.is_some() {
                    std::process::exit(exit::by_signal(signal));
                }
                first = Some(signal);
                stop.now();
                meter.suspended(|| {
                    output.say("stopping; a second Ctrl-C ends at once, without a report");
                });
            }
            first
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(Self { handle, thread })
    }

    /// Stops handling signals; returns the first one, if any came.
    pub(super) fn end(self) -> Option<i32> {
        self.handle.close();
        self.thread.join().expect("the watch does nothing that panics")
    }
}
