//! `gustnado contest-member PARENT COMMAND…`: becomes a server of a contest. The kernel ends it
//! when the contest's process ends, even by KILL.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::exit;
use crate::output::Console;

/// Executes the command. Returns only on failure.
///
/// - `parent`: the contest; if it has ended already, nothing is started.
pub(crate) fn run((parent, words): (i32, Vec<OsString>)) -> u8 {
    let output = Console::new(false);
    let Some((program, arguments)) = words.split_first() else {
        output.error("contest-member: expected a command, found none");
        return exit::USAGE;
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        output.error(&format!("contest-member: the kernel would not end this in time: {error}"));
        return exit::FAILED;
    }
    // A parent that ended before the line above sends no signal any more.
    if getppid() != Pid::from_raw(parent) {
        output.error("contest-member: the contest is gone");
        return exit::FAILED;
    }
    let error = Command::new(program).args(arguments).exec();
    output.error(&format!("{}: {error}", program.to_string_lossy()));
    exit::FAILED
}
