//! The watch over the configuration file and those that it includes (`--watch-config`).
//!
//! It looks at names every half second, so it sees what any writer does: files that are written in
//! place, files that are replaced, links that are swapped as Kubernetes does, and volumes whose
//! changes the kernel does not report.

use super::reload::{ReloadOrigin, ReloadRequests};
use crate::output::Console;
use gustnado::site::ConfigFiles;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::arguments::ServeOptions;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A change is read when nothing has changed for this time, and after so many looks at the latest:
/// an editor writes in several steps.
const QUIET_FOR: Duration = Duration::from_millis(100);
const LOOKS_MAX: usize = 20;

/// The files that are looked at, which a reload replaces.
#[derive(Clone, Default)]
pub(super) struct WatchedFiles(Arc<Mutex<ConfigFiles>>);

impl WatchedFiles {
    /// Sets the files of a configuration, and of one that was refused since: the mistake may be
    /// mended in any of them.
    pub(super) fn set(&self, options: &ServeOptions) {
        let files = options.watched_files();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Returns what all files look like now.
    pub(super) fn look(&self) -> Vec<Look> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        files.now().into_iter().map(look).collect()
    }
}

/// What a file looks like; `None` if it is not there.
pub(super) type Look = (PathBuf, Option<[i64; 6]>);

fn look(file: PathBuf) -> Look {
    // Links are followed, those of the folders on the way as well.
    let seen = fs::metadata(&file).ok().map(|meta| {
        let (device, inode) = (meta.dev().cast_signed(), meta.ino().cast_signed());
        let size = meta.size().cast_signed();
        let times = [meta.mtime(), meta.mtime_nsec()];
        [device, inode, size, times[0], times[1], meta.ctime_nsec() ^ (meta.ctime() << 30)]
    });
    (file, seen)
}

/// Looks at the files on a thread of its own, which ends with the process.
///
/// - `seen`: what they looked like when they were read.
///
/// # Errors
/// There is no thread for it.
pub(super) fn start(
    files: WatchedFiles,
    mut seen: Vec<Look>,
    requests: ReloadRequests,
    output: Console,
) -> io::Result<()> {
    let mut said = Vec::new();
    let watching = move || {
        loop {
            std::thread::sleep(LOOK_EVERY);
            let mut now = files.look();
            if now == seen {
                continue;
            }
            for _ in 0..LOOKS_MAX {
                std::thread::sleep(QUIET_FOR);
                let later = files.look();
                if later == now {
                    break;
                }
                now = later;
            }
            let reply = requests.ask(ReloadOrigin::Watch);
            if reply.taken {
                said.clear();
            } else if reply.lines != said {
                reply.lines.iter().for_each(|line| output.error(&format!("watch: {line}")));
                said = reply.lines;
            }
            // By the files of the new configuration: but a change since the reload must not be
            // missed, so what was seen before it stays where the file is still one of them.
            let mut after = files.look();
            for (file, look) in &mut after {
                if let Some((_, before)) = now.iter().find(|(known, _)| known == file) {
                    *look = *before;
                }
            }
            seen = after;
        }
    };
    std::thread::Builder::new().name("gust-watch".to_owned()).spawn(watching).map(drop)
}
