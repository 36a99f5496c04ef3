//! The destination of lines: a file, standard output or standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::terminal::Window;

/// The bytes that a writable pipe always takes at once (`PIPE_BUF`).
const PIPE_BYTES: usize = 4096;

/// The path of standard error.
const STDERR: &str = "/dev/stderr";

/// An open log. Lines are written whole, one write after the other.
pub(super) struct Output {
    file: File,
    /// Regular files take all bytes; others may have a slow reader.
    is_regular: bool,
    /// The window of lines, if it is a terminal.
    terminal: Option<Window>,
    /// Lines that a terminal did not show, not reported as lost yet.
    left_out: u64,
    /// The rest of a line whose beginning was written.
    torn: Vec<u8>,
}

/// The outcome of writing lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// The reader takes no more for now; the rest of the lines is kept.
    Waits,
    /// Writing failed: so many lines are lost.
    Lost(u64),
}

impl Output {
    /// Opens the file for appending, and creates it if necessary. `-` is standard output, and
    /// [`STDERR`] is standard error, even if its file may not be opened again.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = if path == Path::new("-") {
            unblocked(File::from(io::stdout().as_fd().try_clone_to_owned()?))
        } else if path == Path::new(STDERR) {
            unblocked(File::from(io::stderr().as_fd().try_clone_to_owned()?))
        } else {
            // Non-blocking: a pipe without a reader is then an error and does not block the start.
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o640);
            options.custom_flags(number(OFlags::NONBLOCK)).open(path)?
        };
        let is_regular = file.metadata()?.is_file();
        let terminal = file.is_terminal().then(|| Window::new(Instant::now()));
        Ok(Self { file, is_regular, terminal, left_out: 0, torn: Vec::new() })
    }

    /// Creates an output whose writes may block for ever, as on a frozen disk.
    #[cfg(test)]
    pub(super) fn that_blocks(file: File) -> Self {
        Self { file, is_regular: true, terminal: None, left_out: 0, torn: Vec::new() }
    }

    /// Writes lines, and removes those that were written or lost.
    pub(super) fn write(&mut self, lines: &mut Vec<u8>) -> Written {
        let is_paused = self.terminal.is_some() && !self.has_room();
        let now = Instant::now();
        let cut = self.terminal.as_mut().map(|window| window.cut(lines, is_paused, now));
        self.left_out += cut.unwrap_or(0);
        let lost = match self.write_lines(lines) {
            Written::Waits => return Written::Waits,
            Written::All => std::mem::take(&mut self.left_out),
            Written::Lost(lost) => lost + std::mem::take(&mut self.left_out),
        };
        if lost == 0 { Written::All } else { Written::Lost(lost) }
    }

    fn write_lines(&mut self, lines: &mut Vec<u8>) -> Written {
        let mut torn = std::mem::take(&mut self.torn);
        let (written, outcome) = self.write_bytes(&torn);
        torn.drain(..written);
        self.torn = torn;
        if let Err(error) = outcome {
            return self.stop(lines, 0, &error);
        }
        match self.write_bytes(lines) {
            (_, Ok(())) => {
                lines.clear();
                Written::All
            }
            (written, Err(error)) => self.stop(lines, written, &error),
        }
    }

    /// Keeps the lines that were not written after a write stopped.
    fn stop(&mut self, lines: &mut Vec<u8>, written: usize, error: &io::Error) -> Written {
        // The rest of a torn line is kept apart and written first: other lines must not follow in
        // it.
        let is_torn = written > 0 && lines[written - 1] != b'\n';
        let next = lines[written..].iter().position(|byte| *byte == b'\n');
        let behind = if is_torn { written + next.map_or(0, |end| end + 1) } else { written };
        self.torn.extend_from_slice(&lines[written..behind]);
        lines.drain(..behind);
        if error.kind() == ErrorKind::WouldBlock {
            return Written::Waits;
        }
        let lost = count_lines(lines);
        lines.clear();
        Written::Lost(lost)
    }

    /// Writes bytes. Returns how many were written, and the error that stopped it.
    fn write_bytes(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut at = 0;
        while at < bytes.len() {
            match self.write_step(&bytes[at..]) {
                Ok(0) => return (at, Err(ErrorKind::WriteZero.into())),
                Ok(written) => at += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (at, Err(error)),
            }
        }
        (at, Ok(()))
    }

    fn write_step(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_regular {
            return self.file.write(bytes);
        }
        // Other processes share standard output, so it must not be made non-blocking. A writable
        // pipe takes `PIPE_BUF` bytes without blocking.
        if !self.has_room() {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.file.write(&bytes[..bytes.len().min(PIPE_BYTES)])
    }

    /// Returns whether something can be written now. On an error too: the write will report it.
    fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
    }

    /// Returns whether something is to be written even without more lines: the rest of a line, or
    /// the number of lines that a terminal did not show.
    pub(super) fn owes(&self) -> bool {
        !self.torn.is_empty() || self.terminal.as_ref().is_some_and(Window::owes)
    }
}

fn number(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).expect("flags below 2^31")
}

/// Returns a terminal reopened as non-blocking, and any other file unchanged.
fn unblocked(file: File) -> File {
    unblocked_terminal(&file).unwrap_or(file)
}

/// Reopens `of` as a non-blocking description of its own, if it is a terminal. A writable terminal
/// may still block within a line, and other processes share the inherited description.
pub fn unblocked_terminal(of: impl AsFd) -> Option<File> {
    let of = of.as_fd();
    let flags = number(OFlags::NONBLOCK | OFlags::NOCTTY);
    let again = || {
        let path = format!("/proc/self/fd/{}", of.as_raw_fd());
        OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
    };
    of.is_terminal().then(again).flatten()
}

pub(super) fn count_lines(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_full_disk_loses_lines_and_counts_them() {
        let mut output = Output::open(Path::new("/dev/full")).expect("there is one");
        let mut lines = b"a\nb\nc\n".to_vec();
        assert_eq!(output.write(&mut lines), Written::Lost(3));
        assert!(lines.is_empty() && !output.owes());
    }

    #[test]
    fn a_reader_that_is_slow_gets_whole_lines_in_the_end() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut output =
            Output { file, is_regular: false, terminal: None, left_out: 0, torn: Vec::new() };
        let line = |number: u32| format!("line {number}\n").into_bytes();
        let all: Vec<u8> = (0..20_000).flat_map(line).collect();
        let mut lines = all.clone();
        assert_eq!(output.write(&mut lines), Written::Waits);
        assert!(!lines.is_empty() && lines.starts_with(b"line "));
        let mut read = vec![0; 32 << 10];
        let mut got = Vec::new();
        while output.write(&mut lines) != Written::All {
            let count = reader.read(&mut read).expect("bytes");
            got.extend_from_slice(&read[..count]);
        }
        drop(output);
        reader.read_to_end(&mut got).expect("the rest");
        assert!(got == all, "not a byte is lost or doubled");
    }

    #[test]
    fn a_reader_that_has_gone_loses_lines() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut output =
            Output { file, is_regular: false, terminal: None, left_out: 0, torn: Vec::new() };
        drop(reader);
        assert_eq!(output.write(&mut b"a\nb\n".to_vec()), Written::Lost(2));
    }

    #[test]
    fn a_torn_line_is_finished_before_others_begin() {
        let mut output = Output::open(Path::new("/dev/null")).expect("there is one");
        let mut lines = b"one\ntwo\nthree\n".to_vec();
        let full = io::Error::from(ErrorKind::StorageFull);
        assert_eq!(output.stop(&mut lines, 6, &full), Written::Lost(1));
        assert_eq!((&*output.torn, lines.len()), (&b"o\n"[..], 0));
        assert_eq!(output.write(&mut b"four\n".to_vec()), Written::All);
        assert!(!output.owes());
    }
}
