//! A running server: started on its CPUs in its own process group, and always stopped, also after a
//! panic or an error.

mod log;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use super::cpus;
use super::process_tree::ProcessTree;
use log::ProcessLog;

/// The environment variable that marks descendants.
const MARK: &str = "CONTEST_MEMBER";
/// Time for processes that outlive the leader.
const ORPHANS: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(10);

/// Describes a start.
#[derive(Clone, Debug)]
pub(super) struct Launch<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [String],
    /// The launcher before it, which ends it together with this process.
    pub(super) launcher: &'a [String],
    /// Its working directory.
    pub(super) folder: &'a Path,
    /// Additional environment variables.
    pub(super) environment: &'a [(String, String)],
    /// Its CPUs; empty: all.
    pub(super) cpus: &'a [u32],
    /// The file for its output.
    pub(super) log: PathBuf,
    /// Time between TERM and KILL.
    pub(super) stop_timeout: Duration,
}

/// A running server, stopped when dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    tree: ProcessTree,
    log: ProcessLog,
    stop_timeout: Duration,
    ended: Option<ExitStatus>,
    stopped: bool,
}

impl ServerProcess {
    /// Starts it.
    ///
    /// # Errors
    /// The program could not be started.
    /// It could not be started at all.
    pub(super) fn start(launch: &Launch<'_>) -> io::Result<Self> {
        let words: Vec<&String> = launch.launcher.iter().chain(launch.command).collect();
        let Some((program, arguments)) = words.split_first() else {
            return Err(io::Error::other("there is no command"));
        };
        let mark = mark();
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(launch.folder)
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        let log = ProcessLog::of(reader, &launch.log)?;
        let child = cpus::on(launch.cpus, || command.spawn())?;
        // The command holds the other end of the pipe, which must close when the server ends.
        drop(command);
        let id = i32::try_from(child.id()).map_err(io::Error::other)?;
        let mut child = child;
        let Some(tree) = ProcessTree::of(id, format!("{MARK}={mark}")) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("its entry below /proc cannot be read"));
        };
        let stop_timeout = launch.stop_timeout;
        Ok(Self { child, tree, log, stop_timeout, ended: None, stopped: false })
    }

    /// Its processes.
    pub(super) fn tree(&self) -> &ProcessTree {
        &self.tree
    }

    /// Describes how it ended, if it has, with its last lines.
    pub(super) fn ended(&mut self) -> Option<String> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        let status = self.ended?;
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("it ended with exit code {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        };
        // Its last output may still be in the pipe.
        std::thread::sleep(TICK * 3);
        Some(match self.log.tail() {
            tail if tail.is_empty() => format!("{how} and said nothing"),
            tail => format!("{how}, saying: {tail}"),
        })
    }

    /// The end of its output.
    pub(super) fn tail(&self) -> String {
        self.log.tail()
    }

    /// Stops it and all its descendants: TERM to the leader, and KILL to those left after its time.
    pub(super) fn stop(&mut self) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        self.tree.look();
        if self.ended.is_none() {
            self.tree.leader().send(Signal::TERM);
            self.wait(self.stop_timeout, Self::has_leader_ended);
        }
        self.wait(ORPHANS, Self::is_all_gone);
        self.tree.look();
        self.tree.known().iter().for_each(|member| member.send(Signal::KILL));
        self.wait(ORPHANS, |server| server.has_leader_ended() && server.is_all_gone());
    }

    fn has_leader_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_some()
    }

    fn is_all_gone(&mut self) -> bool {
        !self.tree.known().iter().any(|member| member.is_alive())
    }

    /// Waits until a condition holds, but not for ever.
    fn wait(&mut self, most: Duration, holds: fn(&mut Self) -> bool) {
        let until = Instant::now() + most;
        while !holds(self) && Instant::now() < until {
            std::thread::sleep(TICK);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a unique text for each start on this machine and in this process.
fn mark() -> String {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    let start = STARTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{start}-{}", std::process::id(), now.as_nanos())
}
