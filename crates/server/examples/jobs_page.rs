//! A page that shows what each worker does, as it happens: connections added, removed and live,
//! requests, waits, CPU time.
//!
//! ```text
//! cargo run --release --example jobs_page -- 127.0.0.1:3456
//! ```
//!
//! Open <http://127.0.0.1:3456/jobs>, or read the numbers alone:
//! `curl http://127.0.0.1:3456/jobs.json`.

use std::env;

use gustnado::{Request, Response, Server, stats_page};

const PAGE: &str = r#"<!doctype html><meta charset=utf-8><title>Jobs</title>
<style>body{font:1rem system-ui,sans-serif;margin:2rem}td,th{padding:.2rem .8rem;text-align:right}
</style><h1>Jobs</h1><p id=sum></p><table id=workers></table><script>
const columns = ["worker", "connections_added", "connections_removed", "tasks_added",
  "tasks_ended", "requests", "bytes_sent", "timeouts", "idle_closed", "waits", "cpu_ms"];
const row = (cells, tag) => `<tr>${cells.map(cell => `<${tag}>${cell}`).join("")}`;
async function show() {
  const now = await (await fetch("jobs.json")).json();
  sum.textContent = `${now.scheduler} on ${now.backend}: ${now.connections_open} connections ` +
    `and ${now.tasks_live} tasks live, ${now.requests} requests answered`;
  workers.innerHTML = row(columns.map(name => name.replaceAll("_", " ")), "th") +
    now.by_worker.map(worker => row(columns.map(name => worker[name]), "td")).join("");
}
show();
setInterval(show, 1000);
</script>"#;

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new().get("/jobs", |_: &Request| Response::html(PAGE)).get("/jobs.json", stats_page())
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl http://{address}/jobs.json");
    server().listen(&address)?.run()
}
