//! Light tasks beside tokio's current-thread runtime, in one run: prints a Markdown table.
//!
//! ```text
//! cargo run --release --manifest-path bench/tasks/Cargo.toml [-- OPTIONS]
//!   --rounds N     rounds that count, after one that does not (default 9)
//!   --steps N      steps of each measurement (default 1000000)
//!   --sleepers N   sleeping tasks at once (default 1000000)
//!   --quick        3 rounds of 100000 steps and sleepers
//! ```
//!
//! Both run on the same thread of one process, one after the other in each round, so that whatever
//! else the machine does meets both. Only memory is measured in a process of its own for each
//! round: what one runtime leaves behind would be the other's gain.

mod contender;
mod gustnado_side;
mod memory;
mod table;
mod tokio_side;

use std::process::ExitCode;

use contender::{Contender, RING_TASKS};
use table::Row;

/// How much is measured.
struct Extent {
    rounds: usize,
    steps: u64,
    sleepers: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(bytes) = memory::as_child(&arguments) {
        println!("{bytes}");
        return ExitCode::SUCCESS;
    }
    let Some(extent) = extent(&arguments) else {
        eprintln!("options: --rounds N, --steps N, --sleepers N, --quick");
        return ExitCode::FAILURE;
    };
    match measure(&extent) {
        Ok(rows) => {
            print!("{}", table::markdown(&rows, extent.rounds));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn extent(arguments: &[String]) -> Option<Extent> {
    let mut extent = Extent { rounds: 9, steps: 1_000_000, sleepers: 1_000_000 };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        if name == "--quick" {
            extent = Extent { rounds: 3, steps: 100_000, sleepers: 100_000 };
            continue;
        }
        let value: usize = arguments.next()?.parse().ok().filter(|&value| value > 0)?;
        match name.as_str() {
            "--rounds" => extent.rounds = value,
            "--steps" => extent.steps = value as u64,
            "--sleepers" => extent.sleepers = value,
            _ => return None,
        }
    }
    Some(extent)
}

fn measure(extent: &Extent) -> Result<Vec<Row>, String> {
    let contenders = [gustnado_side::CONTENDER, tokio_side::CONTENDER];
    let mut rows = rows(extent);
    // The first round warms up caches and the allocator.
    for round in 0..=extent.rounds {
        for (side, contender) in contenders.iter().enumerate() {
            let figures = figures(contender, extent)?;
            if round > 0 {
                for (row, figure) in rows.iter_mut().zip(figures) {
                    row.figures[side].push(figure);
                }
            }
        }
    }
    Ok(rows)
}

fn rows(extent: &Extent) -> Vec<Row> {
    let steps = extent.steps;
    vec![
        Row::new(format!("a sleeping task, of {} at once", extent.sleepers), "bytes"),
        Row::new(
            format!("the same, detached: its end is told to nobody ({})", extent.sleepers),
            "bytes",
        ),
        Row::new(format!("spawn a task and join it, one after the other ({steps})"), "ns"),
        Row::new(format!("spawn a task and join it, 1,000 at a time ({steps})"), "ns"),
        Row::new(format!("ping-pong, per message ({steps})"), "ns"),
        Row::new(format!("ring of {RING_TASKS} tasks, per message ({steps})"), "ns"),
        Row::new(format!("through a mailbox for 128, per message ({steps})"), "ns"),
    ]
}

/// One round of one contender, in the order of the rows.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn figures(contender: &Contender, extent: &Extent) -> Result<Vec<f64>, String> {
    let mut figures = Vec::new();
    for detached in [false, true] {
        figures.push(memory::bytes_per_sleeper(contender.name, detached, extent.sleepers)?);
    }
    let costs = [
        contender.one_by_one,
        contender.in_batches,
        contender.ping_pong,
        contender.ring,
        contender.stream,
    ];
    for cost in costs {
        let took = cost(extent.steps);
        figures.push(took.as_nanos() as f64 / extent.steps as f64);
    }
    Ok(figures)
}
