//! The `gustnado` command: reads flags and environment into settings, runs what was asked for, and
//! turns the outcome into an exit code.
//!
//! What lives here: arguments, signals, exit codes, everything that is printed. What does not: any
//! decision about HTTP. It uses the library `gustnado`, and the lab for
//! measuring.
#![forbid(unsafe_code)]

mod arguments;
mod banner;
mod bench;
mod check;
mod contest;
mod doctor;
mod exit;
mod output;
mod root;
mod serve;

use arguments::Order;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let order = match arguments::read(std::env::args_os(), std::env::vars_os()) {
        Ok(order) => order,
        Err(refusal) => {
            refusal.line.lines().for_each(|line| Output::new(false).error(line));
            return ExitCode::from(refusal.code);
        }
    };
    ExitCode::from(match order {
        Order::Serve(asked) => serve::run(asked),
        Order::Check(asked) => check::run(&asked),
        Order::Effective(asked) => check::effective(&asked),
        Order::Schema => output::page(&gustnado::site::schema()),
        Order::Doctor(asked) => doctor::run(&asked),
        Order::Bench(job) => bench::run(job),
        Order::Contest(asked) => contest::run(*asked),
        Order::ContestMember(parent, words) => contest::member::run((parent, words)),
        Order::Tuning => output::page(&gustnado::config::reference()),
        Order::Page(text) => output::page(&text),
    })
}
