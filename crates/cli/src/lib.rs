//! The `gustnado` command: reads flags and environment into settings, runs a subcommand, and turns
//! its outcome into an exit code.
//!
//! It holds arguments, signals, exit codes, and everything that is printed, but no decision about
//! HTTP. It uses the library `gustnado` and, with the cargo feature `lab`, the lab.
#![forbid(unsafe_code)]

mod access;
#[cfg(feature = "acme")]
mod acme;
mod arguments;
mod banner;
#[cfg(feature = "lab")]
mod bench;
mod certificates;
mod check;
mod compress;
#[cfg(feature = "lab")]
mod contest;
mod doctor;
mod exit;
mod explain;
mod figures;
mod import;
mod init;
mod kernel_memory;
#[cfg(feature = "lab")]
mod lab;
mod memory;
#[cfg(not(feature = "acme"))]
mod no_acme;
#[cfg(not(feature = "lab"))]
mod no_lab;
mod online;
mod output;
mod privileges;
mod reload;
mod root;
mod serve;
mod signals;
mod usage_error;
mod written;

use std::ffi::OsString;
use std::path::Path;

use arguments::Subcommand;
#[cfg(not(feature = "acme"))]
use no_acme as acme;
#[cfg(not(feature = "lab"))]
use no_lab as lab;
use output::Console;

/// Runs a command line and returns the exit code.
///
/// - `words`: the command line, with the program's name before it.
/// - `program`: the path of the program, which starts itself for some subcommands.
pub fn command(words: impl IntoIterator<Item = OsString>, program: &Path) -> u8 {
    let subcommand = match arguments::read(words, std::env::vars_os()) {
        Ok(subcommand) => subcommand,
        Err(usage_error) => {
            usage_error.line.lines().for_each(|line| Console::new(false).error(line));
            return usage_error.code;
        }
    };
    match subcommand {
        Subcommand::Serve(options) => serve::run(options),
        Subcommand::Check(options) => check::run(&options),
        Subcommand::CheckOnline(options) => online::run(&options),
        Subcommand::Explain(options, explain) => explain::run(&options, &explain),
        Subcommand::Access(action) => access::run(&action),
        Subcommand::Acme(action, options) => acme::run(action, &options),
        Subcommand::Effective(options) => check::effective(&options),
        Subcommand::Reload(socket) => reload::run(socket),
        Subcommand::Compress(options) => compress::run(&options),
        Subcommand::Init(options) => init::run(&options),
        Subcommand::Import(options) => import::run(&options),
        Subcommand::Schema => output::page(&gustnado::site::schema()),
        Subcommand::Doctor(options) => doctor::run(&options),
        Subcommand::Lab(subcommand) => lab::run(subcommand, program),
        Subcommand::Tuning => output::page(&gustnado::config::reference()),
        Subcommand::Counters => output::page(&gustnado::counters_reference()),
        Subcommand::Raw(text) => output::page(&text),
        Subcommand::Page(text) => output::page(&output::with_headings(&text, output::page_paint())),
    }
}
