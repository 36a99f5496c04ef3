//! The `gustnado` command: reads flags and environment into settings, runs what was asked for, and
//! turns the outcome into an exit code.
//!
//! What lives here: arguments, signals, exit codes, everything that is printed. What does not: any
//! decision about HTTP. It uses the library `gustnado`, and the lab for
//! measuring.
//!
//! It is a library so that the Python package has the same command.
#![forbid(unsafe_code)]

mod arguments;
mod banner;
mod bench;
mod check;
mod contest;
mod doctor;
mod exit;
mod output;
mod refusal;
mod root;
mod serve;

use std::ffi::OsString;
use std::path::Path;

use arguments::Order;
use output::Output;

/// Does what a command line asks for, and returns the exit code.
///
/// - `words`: the command line, with the program's name before it.
/// - `program`: where the program is, which starts itself for some of its work.
pub fn command(words: impl IntoIterator<Item = OsString>, program: &Path) -> u8 {
    let order = match arguments::read(words, std::env::vars_os()) {
        Ok(order) => order,
        Err(refusal) => {
            refusal.line.lines().for_each(|line| Output::new(false).error(line));
            return refusal.code;
        }
    };
    match order {
        Order::Serve(asked) => serve::run(asked),
        Order::Check(asked) => check::run(&asked),
        Order::Effective(asked) => check::effective(&asked),
        Order::Schema => output::page(&gustnado::site::schema()),
        Order::Doctor(asked) => doctor::run(&asked),
        Order::Bench(job) => bench::run(job),
        Order::Contest(asked) => contest::run(*asked, program),
        Order::ContestMember(parent, words) => contest::member::run((parent, words)),
        Order::Tuning => output::page(&gustnado::config::reference()),
        Order::Counters => output::page(&gustnado::counters_reference()),
        Order::Page(text) => output::page(&output::with_headings(&text, output::page_paint())),
    }
}
