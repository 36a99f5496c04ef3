//! The limit on open files of the calling shell, which later commands inherit.

use rustix::process::{Pid, Resource, Rlimit, getpid, prlimit};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// Enough for 100,000 connections in one process, and some.
pub(super) const FILES_GOAL: u64 = 131_072;

/// The calling shell with its original limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shell {
    /// Its process id.
    pid: i32,
    /// Its start time in the kernel's ticks, since process ids are reused.
    started: u64,
    pub(super) soft: u64,
    pub(super) hard: u64,
}

impl Shell {
    /// Finds the shell that called this process, directly or by way of `sudo`.
    pub(super) fn find() -> Option<Self> {
        let mut process = ShellProcess::read(getpid().as_raw_nonzero().get())?;
        // The depth is bounded for any table of processes.
        for _ in 0..8 {
            process = ShellProcess::read(process.parent)?;
            if !["sudo", "doas"].contains(&&*process.name) {
                break;
            }
        }
        let (soft, hard) = process.files()?;
        Some(Self { pid: process.pid, started: process.started, soft, hard })
            .filter(|shell| shell.pid > 1)
    }

    /// Returns whether its limits are too low for a contest.
    pub(super) fn is_short(&self) -> bool {
        self.soft < FILES_GOAL
    }

    /// Raises its limits; `self` keeps the original ones.
    ///
    /// # Errors
    /// No permission, or `fs.nr_open` is lower.
    pub(super) fn raise(&self) -> io::Result<()> {
        self.limit(FILES_GOAL, self.hard.max(FILES_GOAL))
    }

    /// Restores its original limits. A shell that has ended needs none.
    ///
    /// # Errors
    /// No permission.
    pub(super) fn restore(&self) -> io::Result<()> {
        match ShellProcess::read(self.pid) {
            Some(process) if process.started == self.started => self.limit(self.soft, self.hard),
            _ => Ok(()),
        }
    }

    fn limit(&self, soft: u64, hard: u64) -> io::Result<()> {
        let pid = Pid::from_raw(self.pid);
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(soft), maximum: Some(hard) })?;
        Ok(())
    }
}

/// Fields of a process.
struct ShellProcess {
    pid: i32,
    name: String,
    parent: i32,
    started: u64,
}

impl ShellProcess {
    fn read(pid: i32) -> Option<Self> {
        Self::of(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses a line of `proc_pid_stat(5)`. The name in parentheses may contain some.
    fn of(pid: i32, stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, name: name.to_owned(), parent, started })
    }

    /// Its soft and hard limit on open files.
    fn files(&self) -> Option<(u64, u64)> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.pid)).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let mut numbers = line.split_whitespace();
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "77 (a ) (b) S 12 77 77 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let process = ShellProcess::of(77, stat).expect("a line of stat");
        assert_eq!((&*process.name, process.parent, process.started), ("a ) (b", 12, 4_711));
        assert!(ShellProcess::of(1, "").is_none());
    }

    #[test]
    fn the_caller_of_this_test_has_limits() {
        let shell = Shell::find().expect("a shell has called");
        assert!(shell.soft <= shell.hard);
    }

    #[test]
    fn limits_that_stay_as_they_are_may_be_set() {
        let own = ShellProcess::read(getpid().as_raw_nonzero().get()).expect("it runs");
        let (soft, hard) = own.files().expect("it has limits");
        let shell = Shell { pid: own.pid, started: own.started, soft, hard };
        shell.restore().expect("nothing changes");
        assert_eq!(own.files(), Some((soft, hard)));
        let other = Shell { started: own.started + 1, soft: 1, ..shell };
        other.restore().expect("that one has ended");
        assert_eq!(own.files(), Some((soft, hard)), "another process is not touched");
    }
}
