//! `gustnado reload`: asks a running server to read its configuration again, and prints the result.

use crate::exit;
use crate::output::{Console, page};
use gustnado::control::ask_reload;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a result is waited for: thousands of folders may have to be opened.
const WITHIN: Duration = Duration::from_mins(1);

/// Asks the server of a control socket; the exit code says whether the configuration was taken.
pub(crate) fn run(socket: Option<PathBuf>) -> u8 {
    let output = Console::new(false);
    let Some(socket) = socket else {
        output.error(
            "reload: expected the control socket of a server, found none; name it with --control, \
             or the configuration file that has the key control",
        );
        return exit::USAGE;
    };
    ask(&socket, output)
}

fn ask(socket: &Path, output: Console) -> u8 {
    match ask_reload(socket, WITHIN) {
        Ok(reply) if reply.taken => {
            reply.lines.iter().for_each(|line| _ = page(&format!("{line}\n")));
            exit::CLEAN
        }
        Ok(reply) => {
            reply.lines.iter().for_each(|line| output.error(line));
            exit::CONFIG
        }
        Err(error) => {
            output.error(&error.to_string());
            exit::FAILED
        }
    }
}
