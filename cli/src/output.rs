//! What a person sees: lines on standard error, pages on standard output, colour where it is
//! welcome. A closed stream is no reason to stop, so that nothing here can fail.

use crate::exit;
use std::io::{IsTerminal, Write, stderr, stdout};

pub(crate) use gustnado_lab::figures::{counted, grouped};

/// The way to standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    quiet: bool,
    colour: bool,
}

impl Output {
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
            let _ = writeln!(stderr(), "{text}");
        }
    }

    /// Prints something odd that does not stop the server.
    pub(crate) fn warn(self, line: &str) {
        self.say(&format!("{} {line}", self.paint().yellow("warning:")));
    }

    /// Prints the one line that says what went wrong, quiet or not.
    pub(crate) fn error(self, line: &str) {
        let _ = writeln!(stderr(), "{} {line}", self.paint().red("gustnado:"));
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
    fn numbers_are_set_apart_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(counted(1, "worker"), "1 worker");
        assert_eq!(counted(20_000, "connection"), "20,000 connections");
    }

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Paint(false).red("x"), "x");
        assert_eq!(Paint(true).green("x"), "\x1b[32mx\x1b[0m");
    }
}
