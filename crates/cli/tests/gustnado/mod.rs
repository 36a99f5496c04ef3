//! The real command as a child process: started with nothing of this environment's settings, read
//! line by line, waited for with a bound, and ended when the test ends.
#![expect(dead_code, reason = "each test file uses its own part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than anything here takes, so that only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The command, without a setting from outside.
pub(crate) fn command(args: &[&str]) -> Command {
    cleaned(Command::new(env!("CARGO_BIN_EXE_gustnado")), args)
}

/// The same on a free port, with a limit of the shell's `ulimit` on it.
pub(crate) fn limited(limit: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_gustnado");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh", program]);
    command.args(["--port", "0"]);
    cleaned(command, args)
}

/// A line for the shell, which finds the command as its users do.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_gustnado"));
    let mut places = program.parent().expect("it lies in a folder").as_os_str().to_owned();
    places.push(":");
    places.push(std::env::var_os("PATH").unwrap_or_default());
    command.env("PATH", places);
    cleaned(command, &["-ec", line])
}

fn cleaned(mut command: Command, args: &[&str]) -> Command {
    command.args(args).env("NO_COLOR", "1").env_remove("PORT").stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GUSTNADO_") {
            command.env_remove(name);
        }
    }
    command
}

/// Output and exit code of a command that has ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command that should end by itself.
pub(crate) fn ended(command: &mut Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut guard = Guard(child);
    let mut stdout = guard.0.stdout.take().expect("piped");
    let mut stderr = guard.0.stderr.take().expect("piped");
    let read = |pipe: &mut dyn Read| {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("what is printed is UTF-8");
        text
    };
    let (out, err, status) = std::thread::scope(|scope| {
        let out = scope.spawn(move || read(&mut stdout));
        let err = scope.spawn(move || read(&mut stderr));
        let status = guard.wait();
        (out.join().expect("read"), err.join().expect("read"), status)
    });
    Ended { code: status.code(), stdout: out, stderr: err }
}

/// A child that does not outlive its test.
struct Guard(Child);

impl Guard {
    /// Waits for the end; past the bound the child is ended, so that nothing waits for its pipes.
    fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.0.try_wait().expect("it is our child") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.0.kill().expect("it is our child");
        self.0.wait().expect("it is our child");
        panic!("it did not end within {PATIENCE:?}");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that listens.
pub(crate) struct Server {
    child: Guard,
    lines: Receiver<String>,
    /// Every line that was read from standard error so far.
    pub(crate) seen: Vec<String>,
    /// `127.0.0.1:40123`, or the path of a Unix socket.
    pub(crate) address: String,
}

impl Server {
    /// Starts the command on a free port and waits until it says where it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_by(command(args).args(["--port", "0"]))
    }

    /// Starts a command that will say where it listens.
    pub(crate) fn start_by(command: &mut Command) -> Self {
        let (mut server, listens) = Self::spawn(command);
        let line = server.line_with(listens);
        server.set_address(&line);
        server
    }

    /// The same for one that may end instead: `None`, then.
    pub(crate) fn try_start_by(command: &mut Command) -> Option<Self> {
        let (mut server, listens) = Self::spawn(command);
        let line = server.lines.iter().find(|line| line.contains(listens))?;
        server.set_address(&line);
        Some(server)
    }

    fn spawn(command: &mut Command) -> (Self, &'static str) {
        let mut child =
            command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("starts");
        let stderr = child.stderr.take().expect("piped");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            // The receiver is gone once the test is over.
            let _ = lines.into_iter().try_for_each(|line| send.send(line));
        });
        let server = Self { child: Guard(child), lines, seen: Vec::new(), address: String::new() };
        (server, " listens on ")
    }

    fn set_address(&mut self, line: &str) {
        let place = line.split(" listens on ").nth(1).unwrap_or_default();
        let place = place.trim_start_matches("http://").trim_start_matches("unix:");
        place.trim_end_matches('/').clone_into(&mut self.address);
    }

    /// The next line on standard error that holds `part`.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let Ok(line) = self.lines.recv_timeout(left) else {
                break;
            };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
        panic!("no line with {part:?} among {:#?}", self.seen);
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
        stream.set_write_timeout(Some(PATIENCE)).expect("a bound");
        stream
    }

    /// Sends one request on a connection of its own, and returns the whole response.
    pub(crate) fn get(&self, path: &str) -> String {
        self.get_with(path, "Host: x\r\nConnection: close\r\n")
    }

    /// Does the same with these header fields, one of which has to close the connection.
    pub(crate) fn get_with(&self, path: &str, fields: &str) -> String {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.0.id()).expect("process ids are small");
        let id = rustix::process::Pid::from_raw(id).expect("never 0");
        rustix::process::kill_process(id, signal).expect("it is our child");
    }

    /// Waits for the end and returns the exit code; all that was printed is then in `seen`.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let status = self.child.wait();
        // The pipe's other end is closed now, so that this ends.
        self.seen.extend(self.lines.iter());
        status.code()
    }
}
