//! Four servers in one process, one with each scheduler, on four ports in a row.
//!
//! ```text
//! cargo run --release --example four_schedulers -- 3456
//! curl http://127.0.0.1:3456/scheduler     # pool
//! curl http://127.0.0.1:3457/scheduler     # pool-shared
//! curl http://127.0.0.1:3458/scheduler     # queue
//! curl http://127.0.0.1:3459/scheduler     # queue-shared
//! ```
//!
//! The argument is the first port, or 0 for four free ones.

use std::env;
use std::thread;
use std::time::Duration;

use gustnado::config::SchedulerKind;
use gustnado::{Request, Running, Server, blocking, stats_page};

/// Starts all four on ports of 127.0.0.1.
///
/// - `first_port`: that of the first; 0 takes four free ones.
pub(crate) fn start(first_port: u16) -> gustnado::Result<Vec<Running>> {
    let mut servers = Vec::new();
    for (place, scheduler) in (0..).zip(SchedulerKind::ALL) {
        let port = if first_port == 0 { 0 } else { first_port + place };
        servers.push(server(scheduler).listen(&format!("127.0.0.1:{port}"))?);
    }
    Ok(servers)
}

/// One of them, before it listens.
fn server(scheduler: SchedulerKind) -> Server {
    Server::new()
        .quiet(true) // `main` says where each of them is
        .scheduler(scheduler)
        .workers(2)
        .get("/scheduler", move |_: &Request| scheduler.as_str())
        .get(
            "/slow",
            blocking(|_| {
                thread::sleep(Duration::from_millis(100));
                "a thread slept for this\n"
            }),
        )
        .get("/jobs.json", stats_page())
}

fn main() -> gustnado::Result<()> {
    let first_port = env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3_456);
    let mut servers = start(first_port)?;
    for running in &servers {
        println!("{} at http://{}", running.config().scheduler.as_str(), running.addresses()[0]);
    }
    // Until Ctrl-C or TERM; the others end with the process.
    servers.remove(0).run()
}
