//! Signals that the command catches.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::iterator::Signals;

/// Returns what receives these signals from now on.
///
/// They are held back meanwhile. The library would lose one that comes between its handler and what
/// the handler calls: a process that was told to end would serve on.
pub(crate) fn caught(numbers: &[i32]) -> io::Result<Signals> {
    let held = numbers.iter().filter_map(|number| Signal::try_from(*number).ok());
    let before = held.collect::<SigSet>().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let signals = Signals::new(numbers);
    before.thread_set_mask()?;
    signals
}
