//! `gustnado serve`: starts, prints the banner, waits for signals, drains, and sets the exit code.
//!
//! TERM and INT drain, or end a start; a second one, or QUIT, ends the process at once. HUP reads
//! the configuration file again, in `reload`, as do the control socket and the watch over the file.
//! USR1 reopens the access log. The standard library ignores PIPE, so a broken pipe is an error of
//! its write. XFSZ is caught here, so a file at its size limit is one too.

mod reload;
mod watch;

use crate::arguments::ServeOptions;
use crate::banner::Banner;
use crate::figures::counted;
use crate::output::Console;
use crate::{exit, privileges, root, signals};
use gustnado::config::{Config, Machine, Settings};
use gustnado::control::ControlSocket;
use gustnado::{DrainReport, Running};
use reload::ReloadRequests;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag::register;
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use watch::WatchedFiles;

/// Time that an immediate end waits for listening sockets to close.
const CLOSING_MAX: Duration = Duration::from_millis(50);

/// Serves until a signal, and returns the exit code.
pub(crate) fn run(options: Box<ServeOptions>) -> u8 {
    let settings = &options.settings;
    let config = &settings.config;
    let output = Console::new(config.quiet);
    settings.warnings.iter().for_each(|warning| output.warn(warning));
    if let Some(Err(line)) = config.root.as_deref().map(root::check) {
        output.error(&line);
        return exit::CONFIG;
    }
    // Before the first thread starts, so that no signal meets the default action.
    let mut signals = match signals::caught(&[SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1]) {
        Ok(signals) => signals,
        Err(error) => {
            output.error(&format!("cannot wait for signals: {error}"));
            return exit::FAILED;
        }
    };
    // The flag is never read; it replaces the default action, which would kill the process.
    if let Err(error) = register(SIGXFSZ, Arc::default()) {
        output.error(&format!("cannot catch SIGXFSZ: {error}"));
        return exit::FAILED;
    }
    // What is written while the server starts is a change.
    let reloads = Reloads::default();
    reloads.watched.set(&options);
    let seen = if config.watch_config { Some(reloads.watched.look()) } else { None };
    // Before root's privileges are dropped, and before another server's socket would be replaced.
    let control = match config.control.as_deref().map(ControlSocket::open).transpose() {
        Ok(control) => control,
        Err(error) => {
            output.error(&error.to_string());
            return exit::FAILED;
        }
    };
    let starting = Starting::heed_signals(output);
    let running = options.server().start();
    starting.end();
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            output.error(&options.line(&error));
            return error.exit_code();
        }
    };
    output.say(&banner(&running, &options).text(output.paint()));
    for line in privileges::cannot_later(&options) {
        output.warn(&line);
    }
    if let Err(error) = reloads.begin(control.as_ref(), seen, output) {
        output.error(&format!("no thread for the control socket or the watch: {error}"));
        return exit::FAILED;
    }
    let code = serve(&running, options, &mut signals, (&reloads, control.as_ref()), output);
    drop(control);
    code
}

/// Reloads that other threads ask for.
#[derive(Default)]
struct Reloads {
    requests: ReloadRequests,
    watched: WatchedFiles,
}

impl Reloads {
    /// Starts the threads of the control socket and of the watch, if there are to be some.
    fn begin(
        &self,
        control: Option<&ControlSocket>,
        seen: Option<Vec<watch::Look>>,
        output: Console,
    ) -> io::Result<()> {
        if let Some(control) = control {
            let requests = self.requests.clone();
            control.serve(move || requests.ask(reload::ReloadOrigin::Control))?;
        }
        if let Some(seen) = seen {
            watch::start(self.watched.clone(), seen, self.requests.clone(), output)?;
        }
        Ok(())
    }
}

/// Handles signals during the start, which may last: many workers start, or a port is not free yet.
struct Starting(Option<(Handle, JoinHandle<()>)>);

impl Starting {
    /// Ends the process at the first such signal, from its own thread. There are no connections to
    /// wait for yet, and everything that was started ends with the process.
    fn heed_signals(output: Console) -> Self {
        // On failure, signals are handled once the server has started.
        let Ok(mut signals) = signals::caught(&[SIGTERM, SIGINT, SIGQUIT]) else {
            return Self(None);
        };
        let handle = signals.handle();
        let thread = std::thread::Builder::new().name("gust-start".to_owned());
        let thread = thread.spawn(move || {
            let Some(signal) = signals.forever().next() else { return };
            output.say("ended before it was started");
            std::process::exit(match signal {
                SIGQUIT => exit::by_signal(signal),
                _ => exit::CLEAN.into(),
            });
        });
        Self(thread.ok().map(|thread| (handle, thread)))
    }

    /// Stops handling signals once the server has started or failed.
    fn end(self) {
        let Some((handle, thread)) = self.0 else { return };
        handle.close();
        // It only fails if it panicked, which was printed then.
        let _ = thread.join();
    }
}

fn banner(running: &Running, options: &ServeOptions) -> Banner {
    let config = &options.settings.config;
    let of_file = options
        .site
        .as_ref()
        .map(|site| format!("what {} says: {}", site.path().display(), site.summary()));
    let backend = running.backend();
    let machine = Machine::read();
    let notes = running.notes().iter().cloned().chain(privileges::root_line(config));
    let urls = running.urls();
    Banner {
        network: network_url(&urls),
        urls,
        root: of_file.or_else(|| config.root.as_ref().map(|root| root.display().to_string())),
        backend: backend.to_owned(),
        scheduler: config.scheduler.as_str(),
        workers: machine.workers(config).value,
        connections_max: machine.connections_max(config, backend == "io_uring").value,
        notes: notes.chain(too_many(config, &machine)).collect(),
    }
}

/// The address of this machine for others, if the server listens on every IPv4 interface.
fn network_url(urls: &[String]) -> Option<String> {
    let local = urls.iter().find_map(|url| url.strip_suffix(" (every IPv4 interface)"))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Connecting a UDP socket sends nothing: it looks up the route to an unassigned address.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    let is_of_use = !ip.is_loopback() && !ip.is_unspecified();
    is_of_use.then(|| local.replacen(&Ipv4Addr::LOCALHOST.to_string(), &ip.to_string(), 1))
}

/// Warns if there are more workers than can run at a time.
fn too_many(config: &Config, machine: &Machine) -> Option<String> {
    let workers = machine.workers(config).value;
    let cpus = machine.workers(&Config { workers: 0, ..config.clone() }).value;
    (workers > cpus).then(|| {
        format!(
            "{} on {}: those beyond {cpus} take memory and bring nothing, but where handlers block",
            counted(workers as u64, "worker"),
            counted(cpus as u64, "CPU"),
        )
    })
}

fn serve(
    running: &Running,
    options: Box<ServeOptions>,
    signals: &mut Signals,
    (reloads, control): (&Reloads, Option<&ControlSocket>),
    output: Console,
) -> u8 {
    let mut options = options;
    for signal in signals.forever() {
        match signal {
            SIGHUP => {
                let watch = |options: &ServeOptions| reloads.watched.set(options);
                options = reload::again(running, options, &reloads.requests, watch, output);
            }
            SIGUSR1 => reopen_logs(running, output),
            SIGQUIT => {
                remove(control);
                stop_at_once(running, signal, output)
            }
            _ => break,
        }
    }
    // A client must not wait for a server that is ending.
    remove(control);
    reloads.requests.refuse();
    let report = drain(running, &options.settings, signals, reloads, output);
    finish(&report, &options.settings, output)
}

/// Removes the control socket.
fn remove(control: Option<&ControlSocket>) {
    if let Some(control) = control {
        control.remove();
    }
}

/// USR1: reopens the log after a rotation.
fn reopen_logs(running: &Running, output: Console) {
    if let Err(error) = running.reopen_logs() {
        output.error(&format!("USR1: {error}; the old file is written on"));
    }
}

/// Drains on another thread, while this one prints progress and handles signals.
fn drain(
    running: &Running,
    settings: &Settings,
    signals: &mut Signals,
    reloads: &Reloads,
    output: Console,
) -> DrainReport {
    let deadline = settings.config.timeout_graceful_shutdown;
    let (done, report) = mpsc::channel();
    std::thread::scope(|scope| {
        let open = running.stats().connections_open;
        if open > 0 {
            output.say(&format!(
                "draining: {} open, waiting up to {} s for responses to finish; a second signal \
                 does not",
                counted(open, "connection"),
                deadline.as_secs_f32(),
            ));
        }
        scope.spawn(move || done.send(running.drain(deadline)));
        let started = Instant::now();
        let mut said_s = 0;
        loop {
            match report.recv_timeout(Duration::from_millis(25)) {
                Ok(report) => return report,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("a drain always reports"),
            }
            for signal in signals.pending() {
                match signal {
                    SIGHUP => reloads.requests.refuse(),
                    SIGUSR1 => reopen_logs(running, output),
                    signal => stop_at_once(running, signal, output),
                }
            }
            let waited_s = started.elapsed().as_secs();
            if waited_s > said_s {
                said_s = waited_s;
                let open = running.stats().connections_open;
                output.say(&format!("draining: {} left", counted(open, "connection")));
            }
        }
    })
}

fn finish(report: &DrainReport, settings: &Settings, output: Console) -> u8 {
    let took = report.took.as_secs_f32();
    if report.cut == 0 {
        output.say(&format!("drained in {took:.1} s; no connection was cut"));
        return exit::CLEAN;
    }
    let cut = counted(report.cut as u64, "connection");
    let deadline = settings.config.timeout_graceful_shutdown.as_secs_f32();
    output.error(&format!(
        "drained for {took:.1} s, then {cut} cut off; --timeout-graceful-shutdown above \
         {deadline} s waits longer"
    ));
    exit::CUT
}

/// Ends the process with the exit code of a signal. It waits for no connection.
fn stop_at_once(running: &Running, signal: i32, output: Console) -> ! {
    output.say("stopping at once");
    running.flush_logs();
    // The next server should find its port free: a ring returns sockets only some time after its
    // process has ended.
    running.close_listeners(CLOSING_MAX);
    for endpoint in running.listens_on() {
        if let Some(file) = endpoint.socket_file() {
            let _ = std::fs::remove_file(file);
        }
    }
    std::process::exit(exit::by_signal(signal))
}
