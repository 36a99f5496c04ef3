//! What every capability test stands on: servers on free ports, a client that speaks raw bytes,
//! a deadline for each test.
//!
//! A test is a plain function of a [`Setup`]. [`on_every_server`] runs it on every backend and
//! scheduler, or, where it measures the process it runs in, in a process of its own.
//! Nothing here knows how a server works; only the RFCs and the public API count.
#![expect(dead_code, reason = "each test file uses its own part of the harness")]

pub(crate) mod alive;
pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod echo;
pub(crate) mod folder;
mod gateway;
pub(crate) mod http2;
pub(crate) mod link;
pub(crate) mod process;
mod sealing;
pub(crate) mod server;
pub(crate) mod tcp_table;
pub(crate) mod transport;

pub(crate) use answer::Answer;
pub(crate) use client::Client;
pub(crate) use folder::Folder;
pub(crate) use server::Server;
pub(crate) use transport::TransportKind;

use std::io::Write;
use std::panic;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, Io, SchedulerKind};
use gustnado::site::SiteFile;

/// How long one test may take. Nothing that works comes near it, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long one wait inside a test may take: long enough for a machine that does something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(1);
/// Holds the name of the test in a process that runs one test alone.
const ALONE: &str = "GUSTNADO_TEST_ALONE";

/// The backend and the scheduler a test runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) io: Io,
    pub(crate) scheduler: SchedulerKind,
}

impl Setup {
    /// What a configuration asks for.
    pub(crate) fn of(config: &Config) -> Self {
        Self { io: config.io, scheduler: config.scheduler }
    }

    /// Asserts that what has been started is on the backend that was asked for: on epoll it would
    /// pass a test under the name of `io_uring`.
    ///
    /// - `notes`: what it says about its start.
    pub(crate) fn assert_backend(self, backend: &str, notes: &[String]) {
        let wanted = match self.io {
            Io::Auto => return,
            // (Shared schedulers use epoll, whatever is asked for.)
            Io::Uring if !self.is_shared() => "io_uring",
            _ => "epoll",
        };
        assert_eq!(backend, wanted, "{notes:?}");
    }

    /// The server that a configuration file in the folder's place describes, on this backend.
    pub(crate) fn described(self, folder: &Folder, text: &str) -> gustnado::Server {
        let file = SiteFile::parse(&folder.outside().join("site.toml"), text);
        let file = file.expect("nothing is wrong with it");
        let own = self.config();
        let mut config = Config {
            host: own.host,
            port: own.port,
            workers: own.workers,
            io: own.io,
            scheduler: own.scheduler,
            quiet: own.quiet,
            ..file.settings().config
        };
        TransportKind::chosen().configure(&mut config);
        file.server_with(config)
    }

    /// Two workers on a free port of 127.0.0.1, with the default site.
    pub(crate) fn config(self) -> Config {
        let mut config = Config {
            host: "127.0.0.1".to_owned(),
            port: 0,
            workers: 2,
            io: self.io,
            scheduler: self.scheduler,
            quiet: true,
            ..Config::default()
        };
        TransportKind::chosen().configure(&mut config);
        config
    }

    /// The same with all times so long that only what a test sets can strike.
    pub(crate) fn patient_config(self) -> Config {
        Config {
            header_timeout: LONG,
            body_timeout: LONG,
            body_rate_min: 0,
            write_timeout: LONG,
            write_rate_min: 0,
            timeout_keep_alive: LONG,
            half_close_timeout: LONG,
            defer_accept: false,
            ..self.config()
        }
    }

    /// The same with a folder instead of the default site.
    pub(crate) fn folder_config(self, folder: &Folder) -> Config {
        Config { root: Some(folder.root()), ..self.config() }
    }

    /// A server of the default site.
    pub(crate) fn default_site(self) -> Server {
        Server::start(self.config())
    }

    /// A server of a folder.
    pub(crate) fn files(self, folder: &Folder) -> Server {
        Server::start(self.folder_config(folder))
    }

    /// Whether the running test is skipped, because it means nothing over TLS.
    ///
    /// - `reason`: why it does not.
    pub(crate) fn plain_only(reason: &str) -> bool {
        transport::plain_only(reason)
    }

    /// Whether the running test is skipped, because it means nothing over HTTP/2.
    ///
    /// - `reason`: why it does not.
    pub(crate) fn http1_only(reason: &str) -> bool {
        transport::http1_only(reason)
    }

    /// Whether clients of these tests speak HTTP/2.
    pub(crate) fn is_http2() -> bool {
        TransportKind::chosen() == TransportKind::Http2
    }

    /// The protocol of requests, as logs write it.
    pub(crate) fn protocol() -> &'static str {
        if Self::is_http2() { "HTTP/2.0" } else { "HTTP/1.1" }
    }

    /// Whether ready connections are run by whichever worker is free.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self.scheduler, SchedulerKind::PoolShared | SchedulerKind::QueueShared)
    }

    /// Whether each worker, or all of them, hold a fixed number of slots.
    pub(crate) fn has_slots(self) -> bool {
        matches!(self.scheduler, SchedulerKind::Pool | SchedulerKind::PoolShared)
    }
}

/// Whether a test is skipped: it is for `io_uring`, and there is none here. It never runs on epoll
/// in its place.
fn is_skipped(name: &str, setup: Setup) -> bool {
    static PROBED: LazyLock<Result<(), String>> = LazyLock::new(gustnado::probe_io_uring);
    let (Io::Uring, Err(error)) = (setup.io, &*PROBED) else { return false };
    say_skipped(name, &format!("io_uring cannot be used here ({error})"));
    true
}

fn say_skipped(name: &str, reason: &str) {
    // (Not by `println!`: libtest shows that of tests that fail only.)
    let line = format!("skipped: {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
}

/// Runs a test with a deadline, so that nothing hangs. The test `name` says where, if it does.
pub(crate) fn run_here(name: &str, setup: Setup, test: fn(Setup)) {
    if is_skipped(name, setup) {
        return;
    }
    let (running, done) = mpsc::channel::<()>();
    let thread = thread::Builder::new().name(name.to_owned());
    let body = thread.spawn(move || {
        let _running = running; // dropped at the end of the test, whichever way it ends
        test(setup);
    });
    let body = body.expect("a thread");
    let deadline = TransportKind::chosen().deadline(DEADLINE);
    let waited = done.recv_timeout(deadline);
    assert_ne!(waited, Err(RecvTimeoutError::Timeout), "not done within {deadline:?}: {name}");
    if let Err(failure) = body.join() {
        panic::resume_unwind(failure);
    }
}

/// The same for a test that means nothing over HTTP/2.
///
/// - `reason`: why it does not.
pub(crate) fn run_http1(reason: &str, name: &str, setup: Setup, test: fn(Setup)) {
    if Setup::is_http2() {
        return say_skipped(name, reason);
    }
    run_here(name, setup, test);
}

/// Runs a test in a process of its own: the same binary, told to run nothing else. So its memory,
/// its processor time and its descriptors are no other test's.
pub(crate) fn run_alone(name: &str, setup: Setup, test: fn(Setup)) {
    if is_skipped(name, setup) {
        return;
    }
    let (_, name) = name.split_once("::").expect("the name of this binary comes first");
    if std::env::var(ALONE).is_ok_and(|alone| alone == name) {
        return run_here(name, setup, test);
    }
    let binary = std::env::current_exe().expect("the path of this test binary");
    let output = Command::new(binary)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, name)
        .output()
        .expect("this test binary runs once more");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complained}", output.status);
    assert!(said.contains("1 passed"), "the test {name} was not found:\n{said}");
}

/// Waits until `holds`, looking every few milliseconds.
pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, holds);
}

/// The same, no longer than `time`.
pub(crate) fn wait_within(time: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < time, "waited {time:?} in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Makes tests of the functions named, which stand where the macro is called: each on every
/// combination that exists, epoll with all four schedulers and `io_uring` with the two pinned ones.
/// With `alone:` in front, each in a process of its own. With `http1 "…":` in front, none over
/// HTTP/2, for that reason.
macro_rules! on_every_server {
    (alone: $($test:ident),+ $(,)?) => {
        mod alone {
            use super::*;
            on_every_server!(@each run_alone [$($test)+]);
        }
    };
    (http1 $reason:literal: $($test:ident),+ $(,)?) => {
        on_every_server!(@each [run_http1 $reason] [$($test)+]);
    };
    ($($test:ident),+ $(,)?) => { on_every_server!(@each run_here [$($test)+]); };
    (@each $how:tt $tests:tt) => {
        on_every_server!(@on $how epoll_pool Epoll Pool $tests);
        on_every_server!(@on $how epoll_pool_shared Epoll PoolShared $tests);
        on_every_server!(@on $how epoll_queue Epoll Queue $tests);
        on_every_server!(@on $how epoll_queue_shared Epoll QueueShared $tests);
        on_every_server!(@on $how uring_pool Uring Pool $tests);
        on_every_server!(@on $how uring_queue Uring Queue $tests);
    };
    (@on $how:tt $place:ident $io:ident $scheduler:ident [$($test:ident)+]) => {
        mod $place {
            use crate::harness::Setup;
            use gustnado::config::{Io, SchedulerKind};

            const SETUP: Setup = Setup { io: Io::$io, scheduler: SchedulerKind::$scheduler };

            $(
                #[test]
                fn $test() {
                    let name = concat!(module_path!(), "::", stringify!($test));
                    on_every_server!(@run $how name super::$test);
                }
            )+
        }
    };
    (@run [run_http1 $reason:literal] $name:ident $test:expr) => {
        crate::harness::run_http1($reason, $name, SETUP, $test);
    };
    (@run $how:ident $name:ident $test:expr) => { crate::harness::$how($name, SETUP, $test); };
}
