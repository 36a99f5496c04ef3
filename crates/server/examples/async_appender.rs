//! An answer that another thread writes, line by line. Nobody waits for it meanwhile: the worker
//! serves others.
//!
//! ```text
//! cargo run --release --example async_appender -- 127.0.0.1:3456 1000
//! curl --no-buffer http://127.0.0.1:3456/appender
//! ```
//!
//! The second argument is the pause between two lines in milliseconds.

use std::env;
use std::thread;
use std::time::Duration;

use gustnado::{Request, Response, Server};

/// The server, before it listens.
///
/// - `pause`: between two lines.
pub(crate) fn server(pause: Duration) -> Server {
    Server::new().get("/appender", move |_: &Request| {
        let (appender, response) = Response::append(3);
        thread::spawn(move || {
            for line in ["first", "second", "third"] {
                // An error says that the client has gone.
                if appender.blocking_append(format!("the {line} line\n"), None).is_err() {
                    return;
                }
                thread::sleep(pause);
            }
            // The answer ends here, with its writer.
        });
        response
    })
}

fn main() -> gustnado::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl --no-buffer http://{address}/appender");
    let pause_ms = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    server(Duration::from_millis(pause_ms)).listen(&address)?.run()
}
