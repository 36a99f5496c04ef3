//! Workers that a handler holds: a line on standard error, readiness, and with the setting
//! `restart-hung` the end of the process.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{process, thread};

use gustnado_app::app::{AppHandle, ServerShared};
use gustnado_tasks::{HeldWorker, Workers};
use rustix::process::{Signal, getpid, kill_process};

use super::StartError;

/// Time for which a worker may be held before it is reported.
const REPORT_AFTER: Duration = Duration::from_secs(5);
/// Exit code of a process that ends because a handler holds a worker (`EX_SOFTWARE`).
const HUNG_EXIT_CODE: i32 = 70;
/// How long the report may take to list tasks.
const DUMP_WITHIN: Duration = Duration::from_millis(200);
/// How long the process may take to end by itself: the handler may hold a lock that this needs.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Watches the workers of a server.
///
/// - `restart_after`: when the process ends; zero: never.
pub(super) fn watch(
    workers: &Arc<Workers>,
    shared: &Arc<ServerShared>,
    current: &Arc<AppHandle>,
    restart_after: Duration,
) -> Result<(), StartError> {
    // Weak: the watchdog ends with the workers, which belong to the server.
    let server = (Arc::downgrade(workers), Arc::downgrade(shared), Arc::downgrade(current));
    let after =
        if restart_after.is_zero() { REPORT_AFTER } else { REPORT_AFTER.min(restart_after) };
    let report = move |held: &HeldWorker| report(held, &server, restart_after);
    workers.watch(after, report).map_err(|error| StartError::Worker { error })
}

type WatchedServer = (Weak<Workers>, Weak<ServerShared>, Weak<AppHandle>);

fn report(held: &HeldWorker, server: &WatchedServer, restart_after: Duration) {
    let (Some(shared), Some(current)) = (server.1.upgrade(), server.2.upgrade()) else { return };
    if held.is_free {
        shared.note_held(true);
        let (worker, secs) = (held.worker, held.held.as_secs());
        say(&format!("gustnado: worker {worker} is free again after {secs} s"));
        return;
    }
    if !held.is_known {
        shared.note_held(false);
        say(&line(held, current.app().tables.path_of(held.step)));
    }
    if !restart_after.is_zero() && held.held >= restart_after {
        end_process(held, server);
    }
}

/// Returns what is reported of a held worker.
fn line(held: &HeldWorker, route: Option<&str>) -> String {
    let HeldWorker { worker, thread, .. } = held;
    let secs = held.held.as_secs();
    let mut line =
        format!("gustnado: worker {worker} (thread {thread}) has been held for {secs} s by ");
    // Writing to a string cannot fail.
    _ = match (route, &held.task) {
        (Some(path), _) => write!(line, "a handler of the route {path}"),
        (None, Some(task)) => write!(line, "the task {task}"),
        (None, None) => write!(line, "a task"),
    };
    line.push_str(
        ", so its other connections wait; return sooner, await instead of blocking, or use a \
         blocking handler",
    );
    line
}

/// Ends the process with a report, for its supervisor to start it again.
fn end_process(held: &HeldWorker, (workers, shared, _): &WatchedServer) -> ! {
    let (worker, secs) = (held.worker, held.held.as_secs());
    say(&format!(
        "gustnado: worker {worker} has been held for {secs} s, as long as restart-hung allows; the \
         process ends with {HUNG_EXIT_CODE}"
    ));
    // Without an answer to it in time, the process is killed.
    _ = thread::Builder::new().spawn(|| {
        thread::sleep(END_WITHIN);
        _ = kill_process(getpid(), Signal::KILL);
    });
    if let Some(workers) = workers.upgrade() {
        say(workers.dump(DUMP_WITHIN).to_string().trim_end());
    }
    if let Some(shared) = shared.upgrade() {
        shared.logs.finish();
    }
    process::exit(HUNG_EXIT_CODE)
}

/// Writes a line on standard error.
pub(super) fn say(line: &str) {
    // Standard error may be closed; there is nowhere else to say it.
    _ = writeln!(io::stderr(), "{line}");
}
