//! Reloads: reads the configuration file again and serves by it. HUP asks for one, and so do the
//! control socket and the watch over the file, which raise HUP to wake the main thread.

use crate::arguments::ServeOptions;
use crate::output::Console;
use gustnado::control::ReloadReply;
use gustnado::{Reloaded, Running};
use rustix::process::{Signal, getpid, kill_process};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// What asks for a reload besides the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReloadOrigin {
    /// A client of the control socket.
    Control,
    /// The watch over the files.
    Watch,
}

/// A reload that is asked for, and where its result goes.
struct ReloadRequest {
    origin: ReloadOrigin,
    result: SyncSender<ReloadReply>,
}

/// Reloads that are asked for by other threads. Each thread waits for its own, so there are no more
/// than threads.
#[derive(Clone, Default)]
pub(super) struct ReloadRequests(Arc<Mutex<Vec<ReloadRequest>>>);

impl ReloadRequests {
    /// Asks for a reload, and waits for its result: on another thread than the main one.
    pub(super) fn ask(&self, origin: ReloadOrigin) -> ReloadReply {
        let (result, done) = sync_channel(1);
        self.add(ReloadRequest { origin, result });
        // Only this process's own main thread gets it.
        let woken = kill_process(getpid(), Signal::HUP);
        match woken.map(|()| wait(&done)) {
            Ok(Some(reply)) => reply,
            _ => ReloadReply { taken: false, lines: vec!["the server is ending".to_owned()] },
        }
    }

    fn add(&self, request: ReloadRequest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    fn take(&self) -> Vec<ReloadRequest> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses those that wait: the server is ending.
    pub(super) fn refuse(&self) {
        // Its waiting thread sees that the sender is gone.
        drop(self.take());
    }
}

fn wait(done: &Receiver<ReloadReply>) -> Option<ReloadReply> {
    done.recv().ok()
}

/// Answers HUP: reads the file again. A mistake in it is printed, and nothing changes.
///
/// - `before_result`: is called with the options in force before those who asked get their result.
pub(super) fn again(
    running: &Running,
    options: Box<ServeOptions>,
    requests: &ReloadRequests,
    before_result: impl FnOnce(&ServeOptions),
    output: Console,
) -> Box<ServeOptions> {
    // What is asked for from now on may be of a later state of the file, and raises HUP again.
    let asked = requests.take();
    let origin = asked.first().map(|request| request.origin);
    let (options, reply) = reload(running, options, output, name(origin), origin);
    before_result(&options);
    for request in asked {
        // It may have stopped waiting.
        _ = request.result.try_send(reply.clone());
    }
    options
}

fn name(origin: Option<ReloadOrigin>) -> &'static str {
    match origin {
        None => "HUP",
        Some(ReloadOrigin::Control) => "control",
        Some(ReloadOrigin::Watch) => "watch",
    }
}

fn reload(
    running: &Running,
    mut options: Box<ServeOptions>,
    output: Console,
    by: &str,
    origin: Option<ReloadOrigin>,
) -> (Box<ServeOptions>, ReloadReply) {
    let Some(path) = options.file().map(Path::to_owned) else {
        let why = "there is no configuration file to read again; serving goes on (start with \
                   --config FILE to have one)";
        output.say(&format!("{by}: {why}"));
        return (options, ReloadReply { taken: false, lines: vec![why.to_owned()] });
    };
    let refused = |lines: &str| {
        let mut all: Vec<String> = lines.lines().map(str::to_owned).collect();
        let shown = path.display();
        let kept = format!("{shown} was not taken; what was served before is served on");
        // The watch says it once, whatever else is written into the file.
        if origin != Some(ReloadOrigin::Watch) {
            for line in &all {
                output.error(line);
            }
            output.error(&format!("{by}: {kept}"));
        }
        all.push(kept);
        ReloadReply { taken: false, lines: all }
    };
    let new = match options.again() {
        Ok(new) => new,
        Err(refusal) => {
            running.refuse_reload(&refusal.line);
            return (options, refused(&refusal.line));
        }
    };
    match running.reload(new.server()) {
        Ok(reloaded) => {
            new.settings.warnings.iter().for_each(|warning| output.warn(warning));
            let parts = parts(&path, &reloaded);
            output.say(&format!("{by}: {}", parts.join("; ")));
            let warnings =
                new.settings.warnings.iter().map(|warning| format!("warning: {warning}"));
            let lines = parts.into_iter().chain(warnings).collect();
            (new, ReloadReply { taken: true, lines })
        }
        Err(error) => {
            let reply = refused(&new.line(&error));
            (options, reply)
        }
    }
}

/// What changed, and what needs a restart.
fn parts(path: &Path, reloaded: &Reloaded) -> Vec<String> {
    let addresses = |all: &[gustnado::Endpoint]| {
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let mut parts = vec![format!("reloaded {}", path.display())];
    if !reloaded.changed.is_empty() {
        parts.push(format!("changed: {}", reloaded.changed.join(", ")));
    }
    if !reloaded.kept.is_empty() {
        parts.push(format!("needs a restart, and stays: {}", reloaded.kept.join(", ")));
    }
    if !reloaded.opened.is_empty() {
        parts.push(format!("listens on {} now", addresses(&reloaded.opened)));
    }
    if !reloaded.closed.is_empty() {
        parts.push(format!("listens on {} no more", addresses(&reloaded.closed)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_what_changed_and_what_stays() {
        let path = Path::new("site.toml");
        assert_eq!(parts(path, &Reloaded::default()), ["reloaded site.toml"]);
        let reloaded = Reloaded {
            changed: vec!["header-timeout", "hidden"],
            kept: vec!["workers"],
            ..Reloaded::default()
        };
        assert_eq!(
            parts(path, &reloaded),
            [
                "reloaded site.toml",
                "changed: header-timeout, hidden",
                "needs a restart, and stays: workers"
            ]
        );
    }

    #[test]
    fn requests_that_are_refused_stop_waiting() {
        let requests = ReloadRequests::default();
        let (result, done) = sync_channel(1);
        requests.add(ReloadRequest { origin: ReloadOrigin::Control, result });
        requests.refuse();
        assert_eq!(wait(&done), None);
    }
}
