//! Runs a program to its end: version commands, set-up, the load generator. Its time and output are
//! bounded, and its descendants end with it.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cpus;
use super::process_tree::ProcessTree;

/// The longest output that is read: that of a generator with a line for each second.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
const TICK: Duration = Duration::from_millis(5);

/// Describes a program to run.
#[derive(Clone, Debug)]
pub(super) struct Tool<'a> {
    pub(super) command: &'a [String],
    /// Its working directory; `None`: the current one.
    pub(super) folder: Option<&'a Path>,
    pub(super) environment: &'a [(String, String)],
    /// Its CPUs; empty: all.
    pub(super) cpus: &'a [u32],
    /// Its time-out.
    pub(super) most: Duration,
}

/// Its status and output.
#[derive(Debug)]
pub(super) struct ToolOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl ToolOutput {
    /// The first line that is not empty, of either stream.
    pub(super) fn first_line(&self) -> Option<String> {
        let lines = self.stdout.lines().chain(self.stderr.lines());
        let line = lines.map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect())
    }

    /// The last line of standard error: of a traceback, the one with the cause.
    pub(super) fn last_line(&self) -> &str {
        self.stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default()
    }

    /// The end of its complaint, in one line.
    pub(super) fn last_words(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(4);
        lines[from..].join(" | ").chars().take(400).collect()
    }
}

/// Error of a program that did not run to its end.
#[derive(Debug)]
pub(super) enum ToolError {
    /// It could not be started or waited for.
    Io(io::Error),
    /// It exceeded its time-out.
    TimedOut(Duration),
    /// The contest was stopped.
    Interrupted,
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "it could not be run: {error}"),
            Self::TimedOut(most) => write!(f, "it did not end within {} s", most.as_secs_f32()),
            Self::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl Tool<'_> {
    /// Runs it to its end.
    ///
    /// - `stop`: ends it early.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<ToolOutput, ToolError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(ToolError::Io(io::Error::other("there is no command")));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = self.folder {
            command.current_dir(folder);
        }
        let child = cpus::on(self.cpus, || command.spawn()).map_err(ToolError::Io)?;
        let mut running = ToolProcess::of(child);
        let stdout = gather(running.child.stdout.take());
        let stderr = gather(running.child.stderr.take());
        let status = running.wait(self.most, stop)?;
        // Surviving descendants would hold the pipes open.
        running.end();
        Ok(ToolOutput { status, stdout: text(stdout), stderr: text(stderr) })
    }
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Unreadable output counts as none.
            let _ = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        bytes
    })
}

fn text(thread: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
}

struct ToolProcess {
    child: Child,
    family: Option<ProcessTree>,
}

impl ToolProcess {
    fn of(child: Child) -> Self {
        // The environment of a tool carries no mark, so only its group and children are found.
        let mark = "CONTEST_MEMBER=a tool".to_owned();
        let family = i32::try_from(child.id()).ok().and_then(|id| ProcessTree::of(id, mark));
        Self { child, family }
    }

    fn wait(&mut self, most: Duration, stop: &AtomicBool) -> Result<ExitStatus, ToolError> {
        let until = Instant::now() + most;
        loop {
            if let Some(status) = self.child.try_wait().map_err(ToolError::Io)? {
                return Ok(status);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ToolError::Interrupted);
            }
            if Instant::now() > until {
                return Err(ToolError::TimedOut(most));
            }
            std::thread::sleep(TICK);
        }
    }

    fn end(&mut self) {
        if let Some(family) = &mut self.family {
            family.look();
            family.known().iter().for_each(|member| member.send(Signal::KILL));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Finds a program by its name in PATH.
pub(super) fn find(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // Servers are often installed where only root's PATH leads.
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&paths).chain(more).any(|folder| is_program(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, most: Duration) -> Result<ToolOutput, ToolError> {
        let command = ["sh", "-c", script].map(str::to_owned);
        let (environment, cpus) = (&[], &[]);
        let tool = Tool { command: &command, folder: None, environment, cpus, most };
        tool.run(&AtomicBool::new(false))
    }

    #[test]
    fn what_a_program_says_is_kept_with_how_it_ended() {
        let output = shell("echo; echo one; echo two >&2; exit 3", Duration::from_secs(10));
        let output = output.expect("it ends");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.first_line().as_deref(), Some("one"));
        assert_eq!(output.last_words(), "two");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_its_children() {
        let begun = Instant::now();
        let error = shell("sleep 60 & sleep 60", Duration::from_millis(200)).expect_err("too long");
        assert!(matches!(error, ToolError::TimedOut(_)), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_end_asked_for_from_outside_comes_at_once() {
        let command = ["sleep", "60"].map(str::to_owned);
        let most = Duration::from_mins(1);
        let (environment, cpus) = (&[], &[]);
        let tool = Tool { command: &command, folder: None, environment, cpus, most };
        let error = tool.run(&AtomicBool::new(true)).expect_err("interrupted");
        assert!(matches!(error, ToolError::Interrupted), "{error}");
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(find("sh") && find("/bin/sh"));
        assert!(!find("no-such-program-anywhere") && !find("/etc/passwd"));
    }
}
