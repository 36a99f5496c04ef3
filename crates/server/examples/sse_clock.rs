//! A clock that a browser shows as it ticks: server-sent events, one a second.
//!
//! ```text
//! cargo run --release --example sse_clock -- 127.0.0.1:3456 1000
//! curl --no-buffer http://127.0.0.1:3456/clock
//! ```
//!
//! Or open <http://127.0.0.1:3456/>. The second argument is the pause between two ticks in
//! milliseconds.

use std::env;
use std::time::{Duration, SystemTime};

use gustnado::task::{mailbox, sleep, spawn_detached};
use gustnado::{Event, Request, Response, Server, Status};

const PAGE: &str = "<!doctype html><title>Clock</title><h1 id=time></h1><script>
new EventSource('clock').onmessage = tick => time.textContent = tick.data;
</script>";

/// The server, before it listens.
///
/// - `pause`: between two ticks.
pub(crate) fn server(pause: Duration) -> Server {
    Server::new()
        .get("/", |_: &Request| Response::html(PAGE))
        .get("/clock", move |_: &Request| clock(pause))
}

fn clock(pause: Duration) -> Response {
    // One tick may wait to be sent. A client that goes drops the receiver, which ends the task.
    let (ticks, events) = mailbox(1);
    let ticking = async move {
        for number in 0_u64.. {
            let tick = Event::data(&format!("{} UTC", time_of_day())).id(&number.to_string());
            if ticks.send(tick).await.is_err() {
                return;
            }
            sleep(pause).await;
        }
    };
    match spawn_detached(ticking) {
        Ok(()) => Response::events(events),
        Err(_) => Response::new(Status::SERVICE_UNAVAILABLE),
    }
}

fn time_of_day() -> String {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let (hours, minutes) = (since_1970 / 3_600 % 24, since_1970 / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", since_1970 % 60)
}

fn main() -> gustnado::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl --no-buffer http://{address}/clock");
    let pause_ms = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    server(Duration::from_millis(pause_ms)).listen(&address)?.run()
}
