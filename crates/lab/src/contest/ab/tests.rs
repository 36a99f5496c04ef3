use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::contest::file::{self, GeneratorKind, ScenarioSpec};
use crate::contest::foreign::{measure, missing};
use crate::contest::tool;

const SAID: &str = "\
This is ApacheBench, Version 2.3 <$Revision: 1903618 $>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/

Concurrency Level:      5
Time taken for tests:   0.500 seconds
Complete requests:      200
Failed requests:        3
   (Connect: 1, Receive: 0, Length: 2, Exceptions: 0)
Non-2xx responses:      7
Total transferred:      70000 bytes
Requests per second:    400.00 [#/sec] (mean)
Time per request:       12.064 [ms] (mean)
Time per request:       2.413 [ms] (mean, across all concurrent requests)

              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       0
Total:          4   12   4.5     12      32
";

fn scenario(more: &str) -> ScenarioSpec {
    let text = format!(
        "[[contender]]\npreset = \"nginx\"\n[[scenario]]\nname = \"a\"\ngenerator = \"ab\"\n\
         connections = 25\n{more}"
    );
    let contest = file::parse(Path::new("c.toml"), &text).expect("it is right");
    contest.scenarios[0].clone()
}

fn run<'a>(scenario: &'a ScenarioSpec, url: &'a str) -> ForeignRun<'a> {
    ForeignRun { scenario, url, cpus: &[] }
}

/// The table that it writes, where each percent is that many milliseconds.
fn table() -> String {
    let lines = (0..=100).map(|percent| format!("{percent},{percent}.125\n"));
    std::iter::once("Percentage served,Time in ms\n".to_owned()).chain(lines).collect()
}

#[test]
fn a_scenario_becomes_a_command_of_ab() {
    let plain = scenario("requests = 100000\nkeep_alive = false\nduration = \"90500ms\"\n");
    assert_eq!(
        arguments(run(&plain, "http://127.0.0.1:1/x")).join(" "),
        "ab -q -r -s 30 -t 91 -n 100000 -c 25 -e /dev/stderr http://127.0.0.1:1/x"
    );
    let kept = scenario("requests = 10\narguments = [\"-B\", \"127.0.0.2\"]\n");
    assert_eq!(
        arguments(run(&kept, "u")).join(" "),
        "ab -q -r -s 30 -t 120 -n 10 -c 10 -e /dev/stderr -k -B 127.0.0.2 u"
    );
}

#[test]
fn only_right_answers_count_and_times_are_microseconds() {
    let found =
        parsed(SAID, &table(), run(&scenario("requests = 200\n"), "u")).expect("all is there");
    assert_eq!(found.tool, "ApacheBench, Version 2.3");
    assert_eq!((found.sent, found.requests, found.bytes_received), (200, 190, 70_000));
    assert_eq!((found.errors.unconnected, found.errors.length, found.errors.status), (1, 2, 7));
    assert!((found.requests_per_s - 380.0).abs() < 1e-9, "{}", found.requests_per_s);
    let latency = found.latency_us;
    let close = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
    assert!(close(latency.percentiles["99"], 99_125.0), "{latency:?}");
    assert!(close(latency.min, 125.0) && close(latency.max, 100_125.0), "{latency:?}");
    assert!(close(latency.mean, 12_064.0) && close(latency.sd, 4_500.0), "{latency:?}");
}

#[test]
fn what_is_missing_in_its_words_is_named() {
    let scenario = scenario("requests = 200\n");
    let error = parsed("Hello", &table(), run(&scenario, "u")).expect_err("nothing is there");
    assert!(error.contains("Complete requests:"), "{error}");
    let error = parsed(SAID, "0,1\n", run(&scenario, "u")).expect_err("no percentiles");
    assert!(error.contains("no line for"), "{error}");
}

#[test]
fn it_loads_a_server_where_it_is_installed() {
    if missing(GeneratorKind::Ab).is_some() || !tool::find("python3") {
        println!("skipped: there is no ab or no python3");
        return;
    }
    let server = "import http.server as h\nclass A(h.BaseHTTPRequestHandler):\n \
                  def do_GET(self):\n  self.send_response(200)\n  self.end_headers()\n  \
                  self.wfile.write(b'x' * 9)\ns = h.ThreadingHTTPServer(('127.0.0.1', 0), A)\n\
                  print(s.server_port, flush=True)\ns.serve_forever()";
    let mut child = std::process::Command::new("python3")
        .args(["-c", server])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("python3 is there");
    let mut line = String::new();
    let output = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a port");
    let url = format!("http://127.0.0.1:{}/", line.trim());
    let scenario = scenario("requests = 60\nkeep_alive = false\n");
    let most = Duration::from_mins(1);
    let run = run(&scenario, &url);
    let found = measure(run, &arguments(run), outcome, (most, &AtomicBool::new(false)));
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    let found = found.expect("it answers");
    assert_eq!((found.requests, found.errors.total()), (60, 0), "{found:?}");
    assert!(found.latency_us.percentiles["50"] > 0.0 && found.started_unix_s > 0.0, "{found:?}");
}
