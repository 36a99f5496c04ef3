//! The workers of a server: starting and ending them, the loop of each, and how many there are.

pub(crate) mod drain_report;
pub(crate) mod driven;
pub(crate) mod elastic;
pub(crate) mod plan;
pub(crate) mod watchdog;
pub(crate) mod worker;
pub(crate) mod workers;

/// Returns the name of a worker's thread.
fn thread_name(worker: usize) -> String {
    format!("gust-{worker}")
}
