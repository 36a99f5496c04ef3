//! `gustnado bench` as a user runs it: against a Gustnado server, on loopback.

mod gustnado;

use gustnado::{Ended, PATIENCE, Server, command, ended};
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Runs `gustnado bench` against a server.
fn bench(server: &Server, flags: &[&str]) -> Ended {
    let url = format!("http://{}/", server.address);
    ended(&mut command(&[&["bench"], flags, &[&url]].concat()))
}

#[test]
fn so_many_requests_are_made_and_reported_as_json() {
    let server = Server::start(&[]);
    let found = bench(&server, &["-n", "200", "-c", "10", "-t", "1", "--json"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let object: Value = serde_json::from_str(&found.stdout).expect("one object");
    assert_eq!(object["requests"], 200, "{object:#}");
    assert_eq!(object["format"], 1);
    assert_eq!(object["statuses"]["200"], 200);
    assert_eq!(object["latency_us"]["count"], 200);
    assert_eq!(object["model"]["name"], "closed");
    assert_eq!(object["model"]["connections"], 10);
    assert!(object["generator"]["cpu_s"].as_f64().is_some_and(|cpu| cpu > 0.0), "{object:#}");
}

#[test]
fn a_server_is_loaded_by_http_2_in_clear() {
    let server = Server::start(&["--h2c"]);
    let flags = ["-n", "300", "-c", "3", "-m", "8", "-t", "1", "--h2c", "--check-every", "1"];
    let found = bench(&server, &[&flags[..], &["--json"]].concat());
    assert_eq!(found.code, Some(0), "{found:?}");
    let object: Value = serde_json::from_str(&found.stdout).expect("one object");
    assert_eq!((&object["requests"], &object["statuses"]["200"]), (&300.into(), &300.into()));
    assert_eq!(
        (&object["model"]["protocol"], &object["model"]["pipeline"]),
        (&"HTTP/2".into(), &8.into())
    );
    assert_eq!(object["connections_opened"], 3);
    let table = bench(&server, &flags);
    for part in
        ["Protocol:             HTTP/2\n", "Streams:              8 requests at once on each"]
    {
        assert!(table.stdout.contains(part), "{part:?} in\n{}", table.stdout);
    }
}

/// Writes a certificate and its key into a folder.
fn certificate(folder: &std::path::Path) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a key");
    let files = [("cert.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())];
    files.map(|(name, pem)| {
        let path = folder.join(name);
        std::fs::write(&path, pem).expect("written");
        path.to_string_lossy().into_owned()
    })
}

#[test]
fn the_key_exchange_that_is_named_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cert, key] = certificate(folder.path());
    let server = Server::start(&["--tls-cert", &cert, "--tls-key", &key]);
    let url = format!("{}/", server.address);
    for (group, agreed) in [("secp384r1", "secp384r1"), ("secp256r1,X25519", "secp256r1")] {
        let words = ["bench", "--insecure", "--tls-group", group, "-n", "9", "--json", &url];
        let found = ended(&mut command(&words));
        assert_eq!(found.code, Some(0), "{found:?}");
        let object: Value = serde_json::from_str(&found.stdout).expect("one object");
        assert_eq!(object["tls"]["group"], agreed);
    }
    let found = ended(&mut command(&["bench", "--insecure", "--tls-group", "X25519,x9", &url]));
    assert!(found.stderr.contains("found \"x9\""), "{found:?}");
}

#[test]
fn a_server_is_loaded_by_http_2_that_tls_agrees_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cert, key] = certificate(folder.path());
    for (http2, code) in [("--http2=true", Some(0)), ("--http2=false", Some(1))] {
        let flags = ["--tls-cert", &cert, "--tls-key", &key, http2];
        let server = Server::start(&flags);
        let url = format!("{}/", server.address);
        let words =
            ["bench", "--h2", "--insecure", "-n", "200", "-c", "2", "-m", "8", "--json", &url];
        let found = ended(&mut command(&words));
        assert_eq!(found.code, code, "{found:?}");
        if code == Some(0) {
            let object: Value = serde_json::from_str(&found.stdout).expect("one object");
            assert_eq!((&object["requests"], &object["errors"]["reset"]), (&200.into(), &0.into()));
            assert_eq!(object["tls"]["handshakes"], 2);
        } else {
            assert!(found.stderr.contains("it has not chosen h2 by ALPN"), "{found:?}");
        }
    }
}

#[test]
fn the_table_has_the_words_of_ab() {
    let server = Server::start(&[]);
    let found = bench(&server, &["-n", "100", "-c", "4", "-t", "1"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    for part in [
        "Complete requests:    100\n",
        "Failed requests:      0\n",
        "Concurrency Level:    4 connections, 1 thread",
        "Requests per second:",
        "Percentage of the requests served within a certain time (ms)",
        "   100 %",
    ] {
        assert!(found.stdout.contains(part), "{part:?} in\n{}", found.stdout);
    }
    assert_eq!(found.stderr, "", "there is no terminal, so that there is no progress");
}

#[test]
fn a_bound_that_strikes_exits_99_and_says_what_was_found() {
    let server = Server::start(&[]);
    let flags = ["-n", "50", "-c", "2", "-t", "1", "--fail-if", "p99>10s", "--fail-if"];
    let kept = bench(&server, &[&flags[..], &["errors>0"]].concat());
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let struck = bench(&server, &[&flags[..], &["rps<1000000000"]].concat());
    assert_eq!(struck.code, Some(99), "{struck:?}");
    assert!(struck.stderr.contains("--fail-if rps<1000000000: found "), "{struck:?}");
    assert!(!struck.stderr.contains("p99"), "{struck:?}");
    assert!(struck.stdout.contains("Complete requests:    50\n"), "it is reported all the same");
}

#[test]
fn nothing_but_loopback_is_loaded_unless_it_is_ones_own() {
    for url in ["http://192.0.2.1/", "http://0.0.0.0/", "http://[::ffff:192.0.2.1]/"] {
        let found = ended(&mut command(&["bench", "-n", "1", url]));
        assert_eq!(found.code, Some(2), "{found:?}");
        assert!(found.stderr.contains("add --i-own-this-host"), "{found:?}");
        assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
    }
    let args = ["bench", "-n", "1", "--target", "192.0.2.1:80", "http://127.0.0.1/"];
    let found = ended(&mut command(&args));
    assert_eq!(found.code, Some(2), "{found:?}");
}

#[test]
fn where_nobody_listens_nothing_is_measured() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let url = format!("http://{port}/");
    let found = ended(&mut command(&["bench", "-n", "5", "-c", "1", "-d", "2s", &url]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("nothing was measured"), "{found:?}");
}

#[test]
fn where_the_first_connection_is_refused_one_line_says_so_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let started = Instant::now();
    let found = ended(&mut command(&["bench", &format!("http://{port}/")]));
    assert_eq!((found.code, &*found.stdout), (Some(1), ""), "{found:?}");
    let line = format!("{port} refused the connection; does a server listen there?");
    assert!(found.stderr.contains(&line), "{found:?}");
    assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn too_few_descriptors_are_named_as_the_cause() {
    let server = Server::start(&[]);
    let url = format!("http://{}/", server.address);
    let limited = |connections: &str| {
        let ours = command(&[]);
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""]).arg(ours.get_program());
        limited.args(["bench", "-n", "400", "-t", "2", "-c", connections, &url]);
        ended(&mut limited)
    };
    let refused = limited("200");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let line = "200 connections are too many for a process that may have 64 descriptors";
    assert!(refused.stderr.contains(line) && !refused.stderr.contains("uring"), "{refused:?}");
    let few = limited("30");
    assert_eq!(few.code, Some(0), "{few:?}");
    assert!(few.stdout.contains("Complete requests:    400\n"), "{few:?}");
}

#[test]
fn a_server_that_holds_fewer_than_were_asked_for_is_named_as_the_cause() {
    let server = Server::start(&["--connections-max", "20"]);
    let flags = ["--hold", "60", "-c", "2", "-t", "1", "-d", "300ms", "--connect-timeout", "500ms"];
    // A server that is full for long enough closes idle connections, so there is no ramp-up.
    let others = ["--timeout", "500ms", "--ramp-up-max", "0s"];
    let found = bench(&server, &[&flags[..], &others].concat());
    assert_eq!(found.code, Some(1), "{found:?}");
    let line = "of the 60 connections to hold, and those that send requests wait behind the others";
    assert!(found.stderr.contains(line), "{found:?}");
}

#[test]
fn statuses_that_are_not_2xx_are_named_with_the_flag_that_takes_them() {
    let server = Server::start(&[]);
    let url = format!("http://{}/nothing-here", server.address);
    let found = ended(&mut command(&["bench", "-n", "20", "-c", "2", &url]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(
        found.stderr.contains("had status 404; if that is expected, use --status 404"),
        "{found:?}"
    );
    let taken = ended(&mut command(&["bench", "-n", "20", "-c", "2", "--status", "404", &url]));
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert!(taken.stdout.contains("Complete requests:    20\n"), "{taken:?}");
}

#[test]
fn targets_come_from_a_file() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("targets.txt");
    let url = format!("http://{}", server.address);
    let text = format!("# two\n3:{url}/\nHEAD {url}/nothing-here\n");
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("UTF-8");
    let flags = ["bench", "-n", "40", "-c", "2", "--json", "--accept-status", "200-299,404"];
    let found = ended(&mut command(&[&flags[..], &["--targets", file]].concat()));
    assert_eq!(found.code, Some(0), "{found:?}");
    let object: Value = serde_json::from_str(&found.stdout).expect("one object");
    assert_eq!((&object["statuses"]["200"], &object["statuses"]["404"]), (&30.into(), &10.into()));
    assert_eq!(object["urls"].as_array().map(Vec::len), Some(2), "{object:#}");
}

#[test]
fn a_run_says_how_many_connections_were_served_and_what_share_succeeded() {
    let server = Server::start(&[]);
    let found = bench(&server, &["-c", "8", "-d", "300ms", "-t", "1", "--json"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let object: Value = serde_json::from_str(&found.stdout).expect("one object");
    let connections = &object["connections"];
    for name in ["asked", "due", "opened", "served", "held"] {
        assert_eq!(connections[name], 8, "{name}: {object:#}");
    }
    assert_eq!(object["success_share"], 1.0, "{object:#}");
    assert!(object["requests_before"].as_u64().is_some_and(|count| count >= 8), "{object:#}");
    assert!(object["bytes_received_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{object:#}");
    let page = bench(&server, &["-c", "8", "-d", "300ms", "-t", "1"]).stdout;
    assert!(page.contains("Connections served:   8 of 8 while measuring (after 0."), "{page}");
    assert!(page.contains(" s of ramp-up), 8 held to the end\n"), "{page}");
}

/// Returns the number of requests that a server has counted.
fn requests_to(server: &Server) -> u64 {
    let answer = server.get("/stats.json");
    let (_, object) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let object: Value = serde_json::from_str(object).expect("an object");
    object["requests"].as_u64().expect("a count")
}

#[test]
fn ctrl_c_still_reports() {
    let server = Server::start(&[]);
    let url = format!("http://{}/", server.address);
    let mut command = command(&["bench", "-c", "2", "-t", "1", "-d", "60s", "--json", &url]);
    let started = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Then it measures, and signals are watched.
    while requests_to(&server) < 1_000 {
        assert!(started.elapsed() < PATIENCE, "it sends no request");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = i32::try_from(child.id()).expect("process ids are small");
    let id = rustix::process::Pid::from_raw(id).expect("never 0");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("our child");
    let (mut page, mut said) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut page).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(started.elapsed() < Duration::from_secs(30), "it did not run to its end");
    let object: Value = serde_json::from_str(&page).expect("it reports");
    assert!(object["requests"].as_u64().is_some_and(|requests| requests > 0), "{object:#}");
    assert!(said.contains("stopping"), "{said}");
}

#[test]
fn the_merge_of_two_runs_is_their_sum() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, log, csv) = (path("a.json"), path("b.hgrm"), path("runs.csv"));
    let first = format!("--json={json}");
    let runs = [
        bench(&server, &["-n", "120", "-c", "3", "-t", "1", &first, "--csv-line", &csv]),
        bench(&server, &["-n", "80", "-c", "2", "-t", "1", "--hgrm", &log, "--csv-line", &csv]),
    ];
    assert!(runs.iter().all(|run| run.code == Some(0)), "{runs:?}");
    let merged = ended(&mut command(&["bench", "merge", "--json", &json, &log]));
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let object: Value = serde_json::from_str(&merged.stdout).expect("one object");
    assert_eq!(object["requests"], 200, "{object:#}");
    assert_eq!(object["latency_us"]["count"], 200, "{object:#}");
    let page = ended(&mut command(&["bench", "merge", &json, &log])).stdout;
    assert!(page.contains("Complete requests:    200\n"), "{page}");
    let lines = std::fs::read_to_string(&csv).expect("there are runs");
    assert_eq!(lines.lines().count(), 3, "a header and two runs:\n{lines}");
}

#[test]
fn a_file_that_is_no_run_is_named_with_what_was_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    for text in ["these are notes\n", "{\"a\": 1}", "", "{"] {
        std::fs::write(&path, text).expect("written");
        let name = path.to_str().expect("UTF-8");
        let found = ended(&mut command(&["bench", "merge", name]));
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.stderr.contains("notes.txt: expected what `gustnado bench`"), "{found:?}");
        assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
    }
    let found = ended(&mut command(&["bench", "merge", "/no/such/file"]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("/no/such/file: cannot be read"), "{found:?}");
}

#[test]
fn a_result_that_cannot_be_written_is_said_before_the_load() {
    let started = Instant::now();
    let args = ["bench", "-d", "60s", "--json=/no/such/folder/x.json", "http://127.0.0.1:9/"];
    let found = ended(&mut command(&args));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("/no/such/folder/x.json: cannot be written"), "{found:?}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_full_disk_keeps_nothing_else_back() {
    let server = Server::start(&[]);
    let flags = ["-n", "50", "-c", "2", "-t", "1"];
    for (full, line) in [
        (&["-g", "/dev/full"][..], "bench: the trace /dev/full cannot be written: "),
        (&["--csv=/dev/full"], "/dev/full: could not be written: "),
        (&["--hgrm", "/dev/full"], "/dev/full: could not be written: "),
    ] {
        let found = bench(&server, &[&flags[..], full].concat());
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.stderr.contains(line), "{found:?}");
        assert!(found.stdout.contains("Complete requests:    50\n"), "{found:?}");
    }
    let started = Instant::now();
    let unwritable = bench(&server, &["-d", "60s", "-g", "/no/such/folder/x.tsv"]);
    assert_eq!(unwritable.code, Some(1), "{unwritable:?}");
    assert!(unwritable.stderr.contains("the trace /no/such/folder/x.tsv"), "{unwritable:?}");
    assert!(started.elapsed() < Duration::from_secs(30), "said before the load");
}

#[test]
fn a_wrong_command_line_exits_2() {
    for (args, line) in [
        (&["bench"][..], "expected a URL such as http://127.0.0.1:8080/, found none"),
        (
            &["bench", "--conections", "5"],
            "--conections: no such flag; did you mean --connections?",
        ),
        (&["bench", "--wibble-wobble"], "`gustnado bench --help` lists them all"),
        (&["bench", "-c", "none", "http://127.0.0.1/"], "--connections: expected a whole number"),
        (&["bench", "--rate", "5", "--ramp", "1:2:3", "http://x/"], "does not go together with"),
    ] {
        let found = ended(&mut command(args));
        assert_eq!(found.code, Some(2), "{found:?}");
        assert!(found.stderr.contains(line), "expected {line:?} in {found:?}");
        assert_eq!(found.stderr.lines().count(), 1, "{found:?}");
    }
}
