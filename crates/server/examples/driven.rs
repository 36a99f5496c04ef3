//! A program that has a loop of its own, and serves HTTP from the same thread: it reads lines from
//! its standard input, ticks once a second, and answers requests, some of them later.
//!
//! ```text
//! cargo run --release --example driven -- 127.0.0.1:3456
//! curl http://127.0.0.1:3456/
//! curl http://127.0.0.1:3456/next-line
//! ```
//!
//! A line that is typed answers all who wait for the next one. `quit`, or the end of the input,
//! ends the server in order.

use std::env;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gustnado::driven::{Driven, Wants};
use gustnado::{Replier, Request, Running, Server, reply_later};

/// How long the loop has gone on.
static TURNS: AtomicU64 = AtomicU64::new(0);
/// Who waits for the next line. Only the loop's thread ever locks it.
static WAITING: Mutex<Vec<Replier>> = Mutex::new(Vec::new());

const INPUT: u64 = 1;
const TICK: Duration = Duration::from_secs(1);
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// The server, before it is started.
pub(crate) fn server() -> Server {
    Server::new()
        .get("/", |_: &Request| format!("{} turns so far\n", TURNS.load(Ordering::Relaxed)))
        .get("/next-line", |_: Request| {
            let (replier, reply) = reply_later();
            WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(replier);
            reply
        })
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    let server = server().tune(|config| (config.listen, config.workers) = (vec![address], 1));
    let (running, driven) = server.start_driven()?;
    println!("serving at http://{}", running.addresses()[0]);
    run(&running, &driven).map_err(|error| gustnado::StartError::Worker { error })
}

/// The loop.
fn run(running: &Running, driven: &Driven) -> io::Result<()> {
    let input = io::stdin();
    match driven.watch(input.as_raw_fd(), Wants { read: true, write: false }, INPUT) {
        Ok(()) => {}
        // A plain file is always ready, and cannot be watched.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("standard input is a file: type lines into a pipe or a terminal");
        }
        Err(error) => return Err(error),
    }
    let (mut ready, mut drain, mut tick) = (Vec::new(), None, Instant::now() + TICK);
    loop {
        let left = tick.saturating_duration_since(Instant::now());
        // Around the sleep a program would give up a lock that its other threads wait for.
        driven.turn(Some(left), &mut ready, &mut |sleep| sleep())?;
        TURNS.fetch_add(1, Ordering::Relaxed);
        for found in ready.drain(..) {
            if found.key == INPUT && drain.is_none() && !take_input(&input) {
                driven.unwatch(input.as_raw_fd())?;
                answer("the program has ended\n");
                drain = Some(running.begin_drain(DRAIN_WITHIN));
            }
        }
        if let Some(report) = drain.as_mut().and_then(|drain| drain.step(running)) {
            println!("ended; {} connections were cut", report.cut);
            return Ok(());
        }
        if Instant::now() >= tick {
            println!("{} connections are open", running.stats().connections_open);
            tick += TICK;
        }
    }
}

/// Takes what has been typed. Returns whether more may come.
fn take_input(input: &io::Stdin) -> bool {
    let mut bytes = [0; 1024];
    // Past the buffer of the standard library: what lies there is not to be watched.
    let len = rustix::io::read(input, &mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..len]);
    if len == 0 || text.trim() == "quit" {
        return false;
    }
    answer(&text);
    true
}

/// Answers all who wait.
fn answer(text: &str) {
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    for replier in waiting {
        replier.respond(text.to_owned());
    }
}
