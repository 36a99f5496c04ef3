//! Terminal output: lines on standard error, pages on standard output, and colour where it is
//! supported. Nothing here fails: a closed stream is ignored.

use crate::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::LazyLock;

/// Time for which a stopped terminal is waited for before a line is dropped.
const TERMINAL_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    quiet: bool,
    colour: bool,
}

impl Console {
    /// - `quiet`: only errors are printed.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, colour: stderr().is_terminal() && colour_is_welcome() }
    }

    /// Returns whether output has colour.
    pub(crate) fn paint(self) -> Paint {
        Paint(self.colour)
    }

    /// Prints information, unless quiet.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            print(text);
        }
    }

    /// Writes over the last line of a terminal, unless quiet; an empty text clears it.
    pub(crate) fn rewrite(self, text: &str) {
        if !self.quiet && stderr().is_terminal() {
            _ = write!(stderr(), "\r\x1b[K{text}");
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(self, line: &str) {
        self.say(&format!("{} {line}", self.paint().yellow("warning:")));
    }

    /// Prints an error, quiet or not.
    pub(crate) fn error(self, line: &str) {
        print(&format!("{} {line}", self.paint().red("gustnado:")));
    }
}

/// Writes a line to standard error. It does not wait for a terminal that is paused or whose other
/// end has stopped reading, so neither the server nor its end is delayed.
fn print(line: &str) {
    static TERMINAL: LazyLock<Option<File>> =
        LazyLock::new(|| gustnado::unblocked_terminal(stderr()));
    let text = format!("{line}\n");
    match &*TERMINAL {
        Some(terminal) => write_soon(terminal, text.as_bytes()),
        None => _ = stderr().write_all(text.as_bytes()),
    }
}

fn write_soon(mut terminal: &File, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match terminal.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(terminal, PollFlags::OUT)];
                if !matches!(poll(&mut fds, Some(&TERMINAL_WITHIN)), Ok(count) if count > 0) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Prints a requested page on standard output.
pub(crate) fn page(text: &str) -> u8 {
    let _ = stdout().write_all(text.as_bytes());
    exit::CLEAN
}

/// Returns whether a page on standard output has colour.
pub(crate) fn page_paint() -> Paint {
    Paint(stdout().is_terminal() && colour_is_welcome())
}

/// Formats help with coloured headings: lines that begin at the edge and end with a colon.
pub(crate) fn with_headings(text: &str, paint: Paint) -> String {
    let line = |line: &str| match line.strip_prefix("Usage:") {
        Some(usage) => format!("{}{usage}\n", paint.bold("Usage:")),
        None if line.ends_with(':') && !line.starts_with(' ') => format!("{}\n", paint.bold(line)),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// See <https://no-color.org>: the variable counts if it is set and not empty.
fn colour_is_welcome() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_bold_where_colour_is_welcome() {
        let page = "About: this\n\nUsage: gustnado\n\nOptions:\n  -h  Print: help:\n";
        assert_eq!(with_headings(page, Paint(false)), page);
        assert_eq!(
            with_headings(page, Paint(true)),
            "About: this\n\n\x1b[1mUsage:\x1b[0m gustnado\n\n\x1b[1mOptions:\x1b[0m\n  -h  Print: \
             help:\n"
        );
    }

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Paint(false).red("x"), "x");
        assert_eq!(Paint(true).green("x"), "\x1b[32mx\x1b[0m");
    }
}
