//! Terminal output: lines on standard error, pages on standard output, and colour where it is
//! supported. Nothing here fails: a closed stream is ignored.

use crate::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::LazyLock;

/// How long a terminal may take nothing before a line is left out.
const TERMINAL_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// The way to standard error.
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

    /// Whether to paint what is printed.
    pub(crate) fn paint(self) -> Paint {
        Paint(self.colour)
    }

    /// Prints text for a person unless they asked for quiet.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            print(text);
        }
    }

    /// Prints something odd that does not stop the server.
    pub(crate) fn warn(self, line: &str) {
        self.say(&format!("{} {line}", self.paint().yellow("warning:")));
    }

    /// Prints the one line that says what went wrong, quiet or not.
    pub(crate) fn error(self, line: &str) {
        print(&format!("{} {line}", self.paint().red("gustnado:")));
    }
}

/// Writes a line to standard error. A terminal that takes nothing, since it is paused or its other
/// end has stopped reading, is not waited for: the server goes on, and so does its end.
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

/// Prints a page that was asked for on standard output.
pub(crate) fn page(text: &str) -> u8 {
    let _ = stdout().write_all(text.as_bytes());
    exit::CLEAN
}

/// Whether a page on standard output may be painted.
pub(crate) fn page_paint() -> Paint {
    Paint(stdout().is_terminal() && colour_is_welcome())
}

/// A page of help with its headings painted: lines that begin at the edge and end with a colon.
pub(crate) fn with_headings(text: &str, paint: Paint) -> String {
    let line = |line: &str| match line.strip_prefix("Usage:") {
        Some(usage) => format!("{}{usage}\n", paint.bold("Usage:")),
        None if line.ends_with(':') && !line.starts_with(' ') => format!("{}\n", paint.bold(line)),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Colours, or none.
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

/// See <https://no-color.org>: the variable counts when it is there and not empty.
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
