use super::options::{Destination, ProgressOutput};
use super::progress::{after_bar, line, share};
use super::*;
use crate::usage_error::UsageError;
use gustnado_lab::load::{LoadPhase, LoadProgress};
use gustnado_lab::plan::{
    BackendChoice, HttpVersion, LoadModel, RateStage, SlowClients, WebSocketLoad,
};
use std::time::Duration;

const URL: &str = "http://127.0.0.1:8080/";

fn subcommand(words: &[&str]) -> Result<BenchSubcommand, UsageError> {
    let words = std::iter::once("bench").chain(words.iter().copied());
    let matches = command().try_get_matches_from(words).expect("the flags are known");
    read(&matches)
}

fn options(words: &[&str]) -> BenchOptions {
    match subcommand(&[words, &[URL]].concat()) {
        Ok(BenchSubcommand::Load(options)) => *options,
        other => panic!("expected a load, got {other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    let error = subcommand(words).expect_err("not understood");
    assert_eq!(error.code, exit::USAGE);
    error.line
}

#[test]
fn without_flags_fifty_connections_ask_for_ten_seconds() {
    let options = options(&[]);
    let plan = &options.plan;
    assert_eq!(plan.connections, 50);
    assert_eq!(plan.end.after, Some(Duration::from_secs(10)));
    assert_eq!(plan.end.requests, None);
    assert_eq!(plan.load, LoadModel::Closed);
    assert!(
        plan.keep_alive
            && plan.http == HttpVersion::Http11
            && plan.threads.is_none()
            && plan.io.is_none()
    );
    assert_eq!(plan.requests[0].method, "GET");
    assert!(!options.permitted);
    assert_eq!((options.progress, options.json.clone()), (ProgressOutput::OnTerminals, None));
}

#[test]
fn the_habits_of_ab_wrk_and_hey_are_understood() {
    let plan = options(&["-k", "-c", "100", "-n", "300_000"]).plan;
    assert_eq!((plan.connections, plan.end.requests), (100, Some(300_000)));
    assert_eq!(plan.end.after, None);
    let plan = options(&["-t2", "-c", "10", "-d", "500ms"]).plan;
    assert_eq!((plan.threads, plan.end.after), (Some(2), Some(Duration::from_millis(500))));
    let plan = options(&["-z", "5m", "-q", "12.5"]).plan;
    assert_eq!(plan.load, LoadModel::Open { rate_per_s: 12.5 });
    assert_eq!(plan.end.after, Some(Duration::from_mins(5)));
    assert_eq!(options(&["-n", "3"]).plan.connections, 3, "more would only stand about");
    assert_eq!(options(&["-n", "3", "-c", "9"]).plan.connections, 9, "unless they are asked for");
}

#[test]
fn each_model_has_its_flags() {
    let ramp = options(&["--ramp", "100:2k:20:0.5"]).plan;
    let expected = LoadModel::rising((100.0, 2_000.0), 20, Duration::from_millis(500));
    assert_eq!(ramp.load, expected);
    let stages = options(&["--stages", "10s:100,500ms:1.5k"]).plan;
    let stage = |rate_per_s, ms| RateStage { rate_per_s, length: Duration::from_millis(ms) };
    let expected = vec![stage(100.0, 10_000), stage(1_500.0, 500)];
    assert_eq!(stages.load, LoadModel::Ramp { stages: expected });
    assert_eq!(stages.end, ramp.end);
    assert_eq!(
        ramp.end,
        gustnado_lab::plan::StopCondition::default(),
        "its steps say how long it is"
    );
    let hold = options(&["--hold", "1000", "--rate", "10"]).plan;
    assert_eq!(hold.load, LoadModel::Hold { idle: 1_000, rate_per_s: Some(10.0) });
    assert!(!options(&["--churn"]).plan.keep_alive);
    assert!(!options(&["--no-keep-alive"]).plan.keep_alive);
    assert!(options(&["--churn", "-k"]).plan.keep_alive, "the last one counts");
    assert_eq!(options(&["--pipeline", "16"]).plan.pipeline, 16);
    assert_eq!(options(&["-m", "32"]).plan.pipeline, 32);
    let plan = options(&["--h2c", "--streams", "8"]).plan;
    assert_eq!((plan.http, plan.pipeline), (HttpVersion::Http2, 8));
    assert_eq!(options(&["--http1.0"]).plan.http, HttpVersion::Http10);
    let load = WebSocketLoad { bytes: 64, is_binary: false, is_broadcast: false };
    assert_eq!(options(&["--ws"]).plan.websocket, Some(load));
    let load = WebSocketLoad { bytes: 1_000, is_binary: true, is_broadcast: true };
    let words = ["--ws", "--ws-bytes", "1k", "--ws-binary", "--ws-broadcast"];
    assert_eq!(options(&words).plan.websocket, Some(load));
    let slowness = SlowClients { read_bytes_per_s: Some(65_536), send_bytes_per_s: Some(10) };
    assert_eq!(options(&["--slow-read", "64k/s", "--slow-send=10"]).plan.slowness, slowness);
    assert_eq!(options(&["--io", "uring"]).plan.io, Some(BackendChoice::Uring));
    assert_eq!(options(&["--source", "127.0.0.0/30"]).plan.sources.len(), 2);
    assert_eq!(options(&["--warm-up", "2"]).plan.warm_up, Duration::from_secs(2));
    assert_eq!(options(&[]).plan.ramp_up_max, Duration::from_secs(10));
    assert_eq!(options(&["--ramp-up-max", "0s"]).plan.ramp_up_max, Duration::ZERO);
}

#[test]
fn large_numbers_are_taken_as_people_write_them() {
    for (text, number) in [
        ("10000", 10_000),
        ("10_000", 10_000),
        ("10k", 10_000),
        ("1e6", 1_000_000),
        ("1.5M", 1_500_000),
        ("2.5e1", 25),
    ] {
        assert_eq!(options(&["-n", text]).plan.end.requests, Some(number), "{text}");
    }
    for (text, rate_per_s) in [("10k", 1e4), ("1.5m", 1.5e6), ("1_000", 1e3), ("0.5", 0.5)] {
        assert_eq!(options(&["--rate", text]).plan.load, LoadModel::Open { rate_per_s }, "{text}");
    }
    for text in ["k", "1.5", "1.5e0", "1e", "e6", "1e30", "-1k", "1.0001k", "1kk"] {
        assert!(refused(&[URL, &format!("-n={text}")]).starts_with("--requests: "), "{text}");
    }
}

#[test]
fn statuses_that_are_right_are_named_or_a_class() {
    assert_eq!(options(&[]).plan.statuses, []);
    let plan = options(&["--status", "200,302", "--status=4xx"]).plan;
    assert_eq!(plan.statuses, [(200, 200), (302, 302), (400, 499)]);
    let plan = options(&["--accept-status", "200-399,404"]).plan;
    assert_eq!(plan.statuses, [(200, 399), (404, 404)]);
    let plan = options(&["--unix-socket", "/tmp/x.sock"]).plan;
    assert_eq!(plan.unix_socket, Some("/tmp/x.sock".into()));
}

#[test]
fn requests_have_weights_methods_fields_and_bodies() {
    let Ok(BenchSubcommand::Load(options)) = subcommand(&[
        "3:http://127.0.0.1/a",
        "http://127.0.0.1/b?c=http://d",
        "-b",
        "x=1",
        "-H",
        "Accept: text/html",
        "--header=X-One:1",
        "--target",
        "127.0.0.2:81",
    ]) else {
        panic!("a load")
    };
    let asks = &options.plan.requests;
    let weights: Vec<_> = asks.iter().map(|ask| (ask.weight, &*ask.url)).collect();
    assert_eq!(weights, [(3, "http://127.0.0.1/a"), (1, "http://127.0.0.1/b?c=http://d")]);
    let fields = [("Accept", "text/html"), ("X-One", "1")];
    assert_eq!(asks[1].fields, fields.map(|(name, value)| (name.into(), value.into())));
    assert_eq!((&*asks[0].method, &*asks[0].body), ("POST", &b"x=1"[..]));
    assert_eq!(asks[0].targets, ["127.0.0.2:81".parse().expect("an address")]);
}

#[test]
fn targets_of_a_file_are_requested_with_those_of_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("targets.txt");
    std::fs::write(&path, "2:http://127.0.0.1/a\nget http://127.0.0.1/b\n").expect("written");
    let plan = options(&["-b", "x=1", "--targets", &path.to_string_lossy()]).plan;
    let found: Vec<_> =
        plan.requests.iter().map(|of| (&*of.method, of.weight, &*of.url, of.body.len())).collect();
    let expected = [
        ("POST", 1, URL, 3),
        ("POST", 2, "http://127.0.0.1/a", 3),
        ("GET", 1, "http://127.0.0.1/b", 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn results_go_where_they_are_sent() {
    let options = options(&["--json", "--csv=a.csv", "--hgrm", "a.hgrm", "-g", "a.tsv"]);
    assert_eq!(options.json, Some(Destination::Standard));
    assert_eq!(options.csv, Some(Destination::File("a.csv".into())));
    assert_eq!(options.hgrm, Some("a.hgrm".into()));
    assert_eq!(options.plan.trace, Some("a.tsv".into()));
    assert_eq!(options.plan.requests[0].url, URL, "--json takes no word behind it");
}

#[test]
fn each_mistake_is_one_line_with_what_was_expected() {
    for (words, part) in [
        (&[][..], "bench: expected a URL such as http://127.0.0.1:8080/, found none"),
        (&["localhost:8080"], "did you mean http://localhost:8080?"),
        (&["unix:./x.sock"], "did you mean --unix-socket ./x.sock http://localhost/?"),
        (&[URL, "--status", "100"], "--status: expected statuses from 200 to 599"),
        (&[URL, "--status", "9xx"], "--status: expected statuses from 200 to 599"),
        (&["0:http://x/"], "a weight is a whole number from 1 on"),
        (&[URL, "-c", "0"], "--connections: expected a whole number from 1 to 1000000"),
        (&[URL, "-n", "many"], "--requests: expected a whole number"),
        (&[URL, "-d", "soon"], "--duration: expected a duration such as 30s, 5m or 500ms"),
        (&[URL, "-d", "0"], "--duration: expected more than nothing"),
        (&[URL, "--rate", "-5"], "--rate: expected requests per second such as 500 or 0.5"),
        (&[URL, "--ramp", "1:2"], "--ramp: expected FROM:TO:STEPS[:SECONDS]"),
        (&[URL, "--ramp", "1:2:1"], "there are 2 to 1000 steps"),
        (&[URL, "--ramp", "2:1:3"], "the first rate is the smaller one"),
        (&[URL, "--stages", "10s"], "--stages: expected TIME:RATE,… such as 10s:100,30s:1000"),
        (&[URL, "--stages", "10s:x"], "--stages: expected requests per second"),
        (&[URL, "--stages", "1ms:1"], "a stage lasts 0.1 seconds or more"),
        (&[URL, "--stages", "1s:1", "-d", "5s"], "--stages: it is as long as its steps"),
        (&[URL, "--status", "399-200"], "--status: expected statuses from 200 to 599"),
        (&["--targets", "/no/such"], "--targets: /no/such cannot be read"),
        (&[URL, "--ramp", "1:2:3:0"], "a step lasts 0.1 seconds or more"),
        (&[URL, "--ramp", "1:2:3", "-n", "5"], "--ramp: it is as long as its steps"),
        (&[URL, "--io", "urin"], "did you mean uring?"),
        (&[URL, "-m", "POST"], "--streams: expected a whole number from 1 to 1024"),
        (&[URL, "-m", "POST"], "found \"POST\"; the method is -X"),
        (&[URL, "--h2"], "--h2: expected https URLs, found http://127.0.0.1:8080/; for others say"),
        (&["https://127.0.0.1/", "--h2c"], "--h2c: expected http URLs"),
        (
            &["ws://127.0.0.1/"],
            "expected URLs of http, found ws://127.0.0.1/; for messages say --ws",
        ),
        (&[URL, "--ws", "--ws-broadcast", "--ws-bytes", "27"], "they have 28 bytes at least"),
        (&[URL, "--ws", "--ws-bytes", "17m"], "--ws-bytes: expected a whole number from 0 to"),
        (&[URL, "-X", "G T"], "--method: expected a method such as GET or POST"),
        (&[URL, "-H", "no colon"], "--header: expected a field such as"),
        (&[URL, "-H", "A: b\r\nC: d"], "--header: expected a field such as"),
        (&[URL, "--body-file", "/no/such"], "--body-file: /no/such cannot be read"),
        (&[URL, "--target", "localhost"], "--target: expected an address and a port"),
        (&[URL, "--slow-read", "0"], "--slow-read: expected at least 1 byte per second"),
        (&[URL, "--slow-send", "x"], "--slow-send: expected bytes per second"),
        (&[URL, "--fail-if", "p99>5"], "--fail-if: \"p99>5\", character 6: expected a unit"),
        (&[URL, "--fail-if", "eror_rate>5%"], "did you mean error_rate?"),
        (&[URL, "--json", "--csv"], "--csv: --json goes to standard output, too"),
        (&["merge"], "merge: expected files that --json or --hgrm wrote, found none"),
    ] {
        let line = refused(words);
        assert!(line.contains(part), "{words:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn progress_is_a_line_and_a_share_of_what_is_nearer_to_its_end() {
    let progress = LoadProgress {
        elapsed: Duration::from_millis(4_200),
        of: Some(Duration::from_secs(10)),
        requests: 12_345,
        asked: None,
        errors: 3,
        connections: 50,
        requests_per_s: 2_939.4,
        p50_us: 301.0,
        p99_us: 1_200.0,
        phase: LoadPhase::Measuring,
    };
    assert_eq!(
        line(&progress),
        "measuring  4.2 of 10.0 s  12,345 requests  2,939/s  p50 0.301 ms  p99 1.200 ms  3 errors  \
         50 connections"
    );
    assert_eq!(
        after_bar(&progress),
        "5.8 s left  2,939/s  p50 0.301 p99 1.200 ms  3 errors  50 connections"
    );
    let ending = LoadProgress { phase: LoadPhase::Ending, ..progress.clone() };
    assert!(after_bar(&ending).starts_with("ending  5.8 s left"), "{}", after_bar(&ending));
    assert_eq!(share(&progress), (4_200, 10_000));
    let counted = LoadProgress { asked: Some(20_000), ..progress.clone() };
    assert_eq!(share(&counted), (12_345, 20_000));
    let only = LoadProgress { of: None, ..counted };
    assert_eq!(share(&only), (12_345, 20_000));
    assert!(line(&only).contains("4.2 s  12,345 of 20,000 requests"), "{}", line(&only));
    // 12,345 of 20,000 took 4.2 s.
    assert!(after_bar(&only).starts_with("2.6 s left"), "{}", after_bar(&only));
    assert_eq!(share(&LoadProgress { asked: None, ..only.clone() }), (0, 1));
    let fresh =
        LoadProgress { requests: 1, p50_us: 0.0, p99_us: 0.0, asked: None, errors: 1, ..only };
    let expected = "4.2 s  2,939/s  p50 - p99 - ms  1 error  50 connections";
    assert_eq!(after_bar(&fresh), expected, "before the first answer there is no latency");
    assert!(line(&fresh).contains("  1 request  "), "{}", line(&fresh));
}
