//! Output of a server: its beginning in a file and its end in memory, both bounded.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of the beginning, which the file keeps.
const FILE_BYTES_MAX: usize = 256 << 10;
/// Maximum length of the end, which messages quote.
const TAIL_BYTES_MAX: usize = 1 << 10;

/// The end of a server's output, read by a thread until all writers are gone.
#[derive(Debug)]
pub(super) struct ProcessLog {
    tail: Arc<Mutex<Vec<u8>>>,
}

impl ProcessLog {
    /// Reads `from` to its end.
    ///
    /// - `path`: the file for its beginning, overwritten.
    pub(super) fn of(from: PipeReader, path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        let tail = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&tail);
        std::thread::Builder::new()
            .name("contender's log".to_owned())
            .spawn(move || read(from, file, &kept))?;
        Ok(Self { tail })
    }

    /// The last lines, joined to one.
    pub(super) fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail).into_owned();
        drop(tail);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let from = lines.len().saturating_sub(4);
        let joined: String = lines[from..].join(" | ").chars().take(400).collect();
        joined
    }
}

fn read(mut from: PipeReader, mut file: File, tail: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 16 << 10];
    let mut left = FILE_BYTES_MAX;
    loop {
        let received = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(received) => &buffer[..received],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let kept = received.len().min(left);
        // A full disk costs the log, not the contest, whose record reports it.
        let _ = file.write_all(&received[..kept]);
        left -= kept;
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(received);
        let surplus = tail.len().saturating_sub(TAIL_BYTES_MAX);
        tail.drain(..surplus);
    }
}
