//! The thread that writes a log, the only one that waits for its disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use gustnado_tasks::block_file_size_signal;

use super::{BUFFER_BYTES, Commands, Shared, Urgency, locked};
use crate::access_log::output::{Output, Written, count_lines};

/// How long a line may stay in a buffer.
const EVERY: Duration = Duration::from_millis(250);
/// The thread's stack, with a margin.
const STACK_BYTES: usize = 128 << 10;

/// The open file, and the lines that are being written.
struct Writer {
    shared: Arc<Shared>,
    output: Output,
    /// Lines taken from each worker's buffer. While some are left no more are taken, so that the
    /// lines of one worker stay in order.
    taken: Box<[Vec<u8>]>,
}

/// The work of a round.
struct Round {
    reopens: bool,
    is_last: bool,
}

/// Starts the thread. It ends after the last round of a log that was dropped.
pub(super) fn start(shared: Arc<Shared>, output: Output, path: PathBuf) -> io::Result<()> {
    let taken = shared.buffers.iter().map(|_| Vec::new()).collect();
    let mut writer = Writer { shared, output, taken };
    let thread = thread::Builder::new().name("gustnado-log".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || writer.run(&path)).map(drop)
}

impl Writer {
    fn run(&mut self, path: &Path) {
        // A write past RLIMIT_FSIZE then fails with EFBIG, as on a full disk, and does not end the
        // process. Only this thread's mask changes: the process's own handling of signals stays as
        // it is.
        block_file_size_signal();
        loop {
            let round = self.shared.next_round();
            let is_all_written = self.write_all();
            let reopened = round.reopens.then(|| self.reopen(path));
            if round.is_last {
                self.count_left();
            }
            self.shared.end_round(is_all_written, reopened, round.is_last);
            if round.is_last {
                return;
            }
        }
    }

    /// Writes all buffers. Returns whether nothing was left.
    fn write_all(&mut self) -> bool {
        let mut is_done = true;
        for place in 0..self.taken.len() {
            is_done &= self.write(place);
        }
        is_done && !self.output.owes()
    }

    /// Writes the rest of a buffer, or else its new lines. Returns whether nothing was left.
    fn write(&mut self, place: usize) -> bool {
        let lines = &mut self.taken[place];
        if lines.is_empty() {
            // A swap under the lock, the write after it: the worker goes on with the emptied
            // allocation.
            std::mem::swap(lines, &mut locked(&self.shared.buffers[place]));
        }
        if lines.is_empty() && !self.output.owes() {
            return true;
        }
        let is_done = match self.output.write(lines) {
            Written::All => true,
            Written::Lost(count) => {
                self.shared.lost.fetch_add(count, Ordering::Relaxed);
                true
            }
            Written::Waits => return false,
        };
        // The memory that a stall needed is freed.
        lines.shrink_to(BUFFER_BYTES);
        is_done
    }

    fn reopen(&mut self, path: &Path) -> io::Result<()> {
        self.output = Output::open(path)?;
        Ok(())
    }

    /// Counts the lines that will never be written as lost.
    fn count_left(&self) {
        let taken: u64 = self.taken.iter().map(|lines| count_lines(lines)).sum();
        let waiting: u64 = self.shared.buffers.iter().map(|one| count_lines(&locked(one))).sum();
        self.shared.lost.fetch_add(taken + waiting, Ordering::Relaxed);
    }
}

impl Shared {
    /// Waits for work, then for a moment in which more may join it.
    fn next_round(&self) -> Round {
        let is_quiet =
            |commands: &mut Commands| commands.urgency == Urgency::Never && !commands.is_over;
        let commands = self.commanded.wait_while(locked(&self.commands), is_quiet);
        let commands = commands.unwrap_or_else(PoisonError::into_inner);
        let may_wait =
            |commands: &mut Commands| commands.urgency < Urgency::AtOnce && !commands.is_over;
        let rested = self.commanded.wait_timeout_while(commands, EVERY, may_wait);
        let (mut commands, _) = rested.unwrap_or_else(PoisonError::into_inner);
        commands.urgency = Urgency::Never;
        commands.rounds_begun += 1;
        Round { reopens: std::mem::take(&mut commands.reopens), is_last: commands.is_over }
    }

    fn end_round(&self, is_all: bool, reopened: Option<io::Result<()>>, is_last: bool) {
        let mut commands = locked(&self.commands);
        commands.is_all_written = is_all || is_last;
        if !is_all {
            // The rest is retried a moment later.
            commands.raise(Urgency::Soon);
        }
        commands.rounds_done = if is_last { u64::MAX } else { commands.rounds_done + 1 };
        if reopened.is_some() {
            commands.reopened = reopened;
        }
        drop(commands);
        self.done.notify_all();
    }
}
