//! The `gustnado` command; its code is in the library of the same crate.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    // If the system does not report it, the name that it was called by will do.
    let called = words.first().map(PathBuf::from).unwrap_or_default();
    let program = std::env::current_exe().unwrap_or(called);
    ExitCode::from(gustnado_cli::command(words, &program))
}
