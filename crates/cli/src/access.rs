//! The subcommands `passwd` and `sign`: lines of password files, and signed URLs.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gustnado::{AccessError, HashKind, UrlKeys, hash_password, signed_url_for};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::output::{self, Console};
use crate::{exit, usage_error::UsageError};

/// What is asked.
#[derive(Debug)]
pub(crate) enum AccessAction {
    /// Print the line of a user.
    Passwd { user: String, kind: HashKind },
    /// Print a signed URL.
    Sign { method: String, url: String, keys: PathBuf, lasts: Duration },
}

/// Does it, and returns the exit code.
pub(crate) fn run(action: &AccessAction) -> u8 {
    let outcome = match action {
        AccessAction::Passwd { user, kind } => {
            read_password().and_then(|password| line(hash_password(user, &password, *kind)))
        }
        AccessAction::Sign { method, url, keys, lasts } => {
            let end = SystemTime::now() + *lasts;
            let signed = |keys: UrlKeys| signed_url_for(method, url, keys.first(), end);
            line(UrlKeys::read(keys).and_then(signed))
        }
    };
    match outcome {
        Ok(line) => output::page(&line),
        Err(UsageError { line, code }) => {
            Console::new(false).error(&line);
            code
        }
    }
}

fn line(made: Result<String, AccessError>) -> Result<String, UsageError> {
    let failed = |error: AccessError| UsageError::of_usage(error.to_string());
    made.map(|line| format!("{line}\n")).map_err(failed)
}

/// Reads a password: twice from a terminal, which does not show it, or a line of standard input.
fn read_password() -> Result<String, UsageError> {
    let failed = |error: io::Error| UsageError {
        line: format!("the password cannot be read: {error}; write it to standard input"),
        code: exit::FAILED,
    };
    let input = io::stdin();
    if !input.is_terminal() {
        return read_line().map_err(failed);
    }
    let first = read_hidden("Password: ").map_err(failed)?;
    let second = read_hidden("Again: ").map_err(failed)?;
    if first != second {
        return Err(UsageError::of_usage("expected the same password twice, found two; try again"));
    }
    Ok(first)
}

/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 4096;

fn read_line() -> io::Result<String> {
    let mut text = String::new();
    io::Read::take(io::stdin().lock(), LINE_BYTES_MAX).read_line(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn read_hidden(prompt: &str) -> io::Result<String> {
    let mut screen = io::stderr();
    write!(screen, "{prompt}")?;
    screen.flush()?;
    let shown = tcgetattr(io::stdin())?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
    let text = read_line();
    tcsetattr(io::stdin(), OptionalActions::Now, &shown)?;
    writeln!(screen)?;
    text
}
