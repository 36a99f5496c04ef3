use super::*;
use crate::outcome::{ConnectionCounts, Errors, HeldConnections, Latency, Outcome, TlsSummary};
use crate::record::{ContenderRecord, Environment, Usage};

/// An outcome as the generator would write it.
fn outcome(requests: u64, p99: f64) -> Outcome {
    let percentiles = [("50", 10.0), ("99", p99), ("99.9", p99 * 2.0)];
    let percentiles = percentiles.map(|(name, value)| (name.to_owned(), value)).into();
    let latency = Latency { count: requests, max: p99 * 3.0, percentiles, ..Latency::default() };
    let json = serde_json::json!({
        "format": 1, "tool": "t", "urls": [], "started_unix_s": 0.0, "duration_s": 1.0,
        "model": {"name": "closed", "sentence": "s", "connections": 10, "pipeline": 1,
                  "keep_alive": true, "threads": 1, "io": "epoll"},
        "requests": requests, "requests_in_window": requests, "sent": requests,
        "requests_per_s": requests,
        "errors": Errors::default(), "statuses": {},
        "bytes_received": 100 * requests, "bytes_sent": 0,
        "connections_opened": 10, "latency_us": latency, "histogram": "",
        "generator": crate::outcome::GeneratorUsage::default(),
        "kernel": crate::outcome::Kernel::default(), "warnings": [], "series": [],
    });
    serde_json::from_value(json).expect("the shape of an outcome")
}

fn run(contender: &str, round: u32, requests: u64, cpu_s: f64) -> RunRecord {
    let usage = Usage {
        cpu_user_s: cpu_s / 2.0,
        cpu_system_s: cpu_s / 2.0,
        memory_before_bytes: 1_000,
        memory_peak_bytes: 1_000 + 20 * 1_024,
        ..Usage::default()
    };
    let outcome = Some(outcome(requests, 100.0));
    let (contender, scenario) = (contender.to_owned(), "page".to_owned());
    RunRecord { contender, scenario, round, outcome, failure: None, usage }
}

fn record(runs: Vec<RunRecord>) -> Record {
    let contender = |name: &str, fate| ContenderRecord {
        name: name.to_owned(),
        about: String::new(),
        tuning: String::new(),
        command: Vec::new(),
        version: None,
        fate,
    };
    Record {
        format: crate::record::FORMAT,
        tool: "t".to_owned(),
        title: "t".to_owned(),
        about: String::new(),
        started_unix_s: 0.0,
        took_s: 0.0,
        cut: None,
        environment: Environment::default(),
        method: Vec::new(),
        file: String::new(),
        reference: "a".to_owned(),
        contenders: vec![
            contender("a", Fate::Ran),
            contender("b", Fate::Ran),
            contender("c", Fate::NotInstalled("apt-get install c".to_owned())),
        ],
        scenarios: vec![ScenarioRecord {
            name: "page".to_owned(),
            title: "Page".to_owned(),
            body_bytes: 1,
            connections: 20,
            keep_alive: true,
            model: "closed".to_owned(),
            sentence: String::new(),
            sweep: None,
            contenders: Vec::new(),
        }],
        runs,
        verdicts: Vec::new(),
    }
}

#[test]
fn a_row_has_the_median_over_rounds_and_the_ratio_within_each() {
    let record = record(vec![
        run("a", 1, 100_000, 1.0),
        run("b", 1, 50_000, 1.0),
        run("a", 2, 80_000, 1.0),
        run("b", 2, 40_000, 1.0),
        run("a", 3, 90_000, 1.0),
        run("b", 3, 45_000, 1.0),
    ]);
    let rows = summarise(&record);
    assert_eq!(rows.iter().map(|row| &*row.contender).collect::<Vec<_>>(), ["a", "b", "c"]);
    let cpu = rows[0].cpu_us_per_request.expect("measured");
    assert!((cpu.median - 1e6 / 90_000.0).abs() < 1e-9);
    assert!((cpu.low - 10.0).abs() < 1e-9 && (cpu.high - 12.5).abs() < 1e-9);
    assert_eq!((cpu.n, cpu.ratio), (3, None));
    let rate = rows[1].requests_per_s.expect("measured").ratio.expect("has a reference");
    assert!((rate.value - 0.5).abs() < 1e-9);
    assert_eq!(rate.verdict, Significance::Less);
    let cpu = rows[1].cpu_us_per_request.expect("measured").ratio.expect("has a reference");
    assert_eq!(cpu.verdict, Significance::More);
    let memory = rows[1].memory_bytes_per_connection.expect("measured");
    assert!((memory.median - 1_024.0).abs() < 1e-9);
    assert_eq!(memory.ratio.expect("has a reference").verdict, Significance::Noise);
    let bytes = rows[1].bytes_per_response.expect("counted");
    assert!((bytes.median - 100.0).abs() < 1e-9);
    assert!(rows[1].failures.expect("counted").ratio.is_none());
    assert_eq!(rows[2].missing.as_deref(), Some("not installed: apt-get install c"));
    assert_eq!(rows[2].rounds, 0);
}

#[test]
fn bytes_of_a_response_are_those_of_the_measured_time() {
    // The outcome has bytes of responses that do not count, too.
    let mut run = run("a", 1, 1_000, 1.0);
    let outcome = run.outcome.as_mut().expect("has one");
    outcome.bytes_received = 150_000;
    outcome.bytes_received_per_s = Some(140_000.0);
    let rows = summarise(&record(vec![run]));
    assert!((rows[0].bytes_per_response.expect("counted").median - 140.0).abs() < 1e-9);
}

#[test]
fn a_difference_within_the_noise_is_called_that() {
    let record = record(vec![
        run("a", 1, 100_000, 1.0),
        run("b", 1, 120_000, 1.0),
        run("a", 2, 100_000, 1.0),
        run("b", 2, 90_000, 1.0),
        run("a", 3, 100_000, 1.0),
        run("b", 3, 110_000, 1.0),
    ]);
    let ratio = summarise(&record)[1].requests_per_s.and_then(|figure| figure.ratio);
    let ratio = ratio.expect("has a reference");
    assert_eq!(ratio.verdict, Significance::Noise);
    let (low, high) = ratio.interval.expect("three rounds");
    assert!(low < 1.0 && high > 1.0);
}

#[test]
fn a_difference_below_the_resolution_is_noise_however_steady_it_is() {
    let rounds = 1..=3;
    let runs = rounds.flat_map(|at| [run("a", at, 100_000, 1.0), run("b", at, 100_500, 1.0)]);
    let ratio = summarise(&record(runs.collect()))[1].requests_per_s.and_then(|of| of.ratio);
    assert_eq!(ratio.expect("has a reference").verdict, Significance::Noise);
}

#[test]
fn one_round_has_no_verdict() {
    let record = record(vec![run("a", 1, 100, 1.0), run("b", 1, 200, 1.0)]);
    let ratio = summarise(&record)[1].requests_per_s.and_then(|figure| figure.ratio);
    assert_eq!(ratio.expect("has a reference").verdict, Significance::Unknown);
}

#[test]
fn a_run_without_an_answer_has_a_rate_and_failures_and_no_latency() {
    let mut broken = run("b", 1, 0, 1.0);
    let found = broken.outcome.as_mut().expect("has one");
    found.errors.reset = 7;
    broken.failure = Some("it died".to_owned());
    let row = &summarise(&record(vec![run("a", 1, 100, 1.0), broken]))[1];
    assert!(row.p99_us.is_none() && row.max_us.is_none() && row.cpu_us_per_request.is_none());
    assert!(row.failures.is_some_and(|figure| (figure.median - 7.0).abs() < 1e-9));
    assert_eq!(row.notes, ["it died"]);
}

#[test]
fn a_contender_whose_runs_all_failed_says_why() {
    let mut dead = run("b", 1, 0, 1.0);
    dead.outcome = None;
    dead.failure = Some("it died".to_owned());
    let row = &summarise(&record(vec![dead]))[1];
    assert_eq!(row.missing.as_deref(), Some("it died"));
}

#[test]
fn two_records_are_compared_by_all_their_rounds() {
    let of = |requests: [u64; 3]| {
        record((1..).zip(requests).map(|(at, requests)| run("a", at, requests, 1.0)).collect())
    };
    let (old, new) = (of([100_000, 101_000, 99_000]), of([80_000, 81_000, 79_000]));
    let ratio = change((&old, &new), "a", "page", Column::Rate).expect("both have it");
    assert_eq!(ratio.verdict, Significance::Less);
    let same = change((&old, &of([100_100, 102_000, 98_500])), "a", "page", Column::Rate);
    assert_eq!(same.expect("both have it").verdict, Significance::Noise);
    assert_eq!(change((&old, &new), "z", "page", Column::Rate), None);
}

type Spoil = fn(&mut Outcome);

/// Connections of which some had a response; all were opened and held.
fn connections(asked: u64, served: u64) -> ConnectionCounts {
    ConnectionCounts { asked, due: asked, opened: asked, served, held: Some(asked) }
}

/// Three rounds of two, of which `b` needs twice as much in each; `spoil` changes `b`'s.
fn three_rounds(spoil: impl Fn(&mut RunRecord)) -> Vec<ContenderFigures> {
    let rounds = (1..=3).flat_map(|round| {
        let mut of_b = run("b", round, 50_000, 1.0);
        spoil(&mut of_b);
        [run("a", round, 100_000, 1.0), of_b]
    });
    summarise(&record(rounds.collect()))
}

fn ratio_of(rows: &[ContenderFigures], column: Column) -> Option<Ratio> {
    rows[1].figure(column).expect("measured").ratio
}

#[test]
fn a_row_that_did_other_work_has_figures_and_no_ratio() {
    assert!(ratio_of(&three_rounds(|_| {}), Column::Rate).is_some());
    let spoils: [(&str, Spoil); 8] = [
        ("21 failures", |of| of.errors.reset = 7),
        ("2 of 10 connections never had a response", |of| of.connections_unserved = 2),
        (
            "1,359 of 10,000 connections had a response while measuring (connection limit or \
             accept stall of the server: the others were open and waited)",
            |of| of.connections = Some(connections(10_000, 1_359)),
        ),
        (
            "99 of 300 connections had a response while measuring (accept stall: the kernel \
             dropped 12 handshakes at its full queue)",
            |of| {
                of.connections = Some(connections(300, 99));
                of.kernel.listen_drops = 12;
            },
        ),
        ("97 of 100 connections were held to the end", |of| {
            of.connections = Some(ConnectionCounts { held: Some(97), ..connections(100, 100) });
        }),
        ("15 of 20 idle connections were held to the end", |of| {
            of.held = Some(HeldConnections {
                asked: 20,
                opened: 18,
                lost: 3,
                ..HeldConnections::default()
            });
        }),
        ("2,000 of 50,000 requests had no response within the measured time", |of| {
            of.requests_per_s = 48_000.0;
        }),
        ("the rate was not reached: 50000.0 of 60000.0 requests per second had a response", |of| {
            of.model.rate_per_s = Some(60_000.0);
        }),
    ];
    for (why, spoil) in spoils {
        let rows = three_rounds(|run| spoil(run.outcome.as_mut().expect("has one")));
        assert_eq!(rows[1].unfit.as_deref(), Some(why));
        for column in Column::ALL {
            let figure = rows[1].figure(column).expect("measured");
            assert_eq!(figure.ratio, None, "{why}: {column:?}");
        }
    }
}

/// The reason of a row of 50,000 responses in a second with 60,000 due, or none.
fn at_a_rate(spoil: Spoil) -> Option<String> {
    let service = Latency { mean: 200_000.0, ..Latency::default() };
    let rows = three_rounds(|run| {
        let of = run.outcome.as_mut().expect("has one");
        (of.model.rate_per_s, of.service_us) = (Some(60_000.0), Some(service.clone()));
        (of.model.connections, of.sent) = (1_000, 51_000);
        spoil(of);
    });
    rows[1].unfit.clone()
}

#[test]
fn long_service_times_do_not_excuse_a_missed_rate() {
    let missed = "the rate was not reached: 50000.0 of 60000.0 requests per second had a response";
    // All of its connections are busy all the time, so that each request takes long.
    assert_eq!(at_a_rate(|of| of.unsent = 9_000).as_deref(), Some(missed));
    assert_eq!(at_a_rate(|_| {}).as_deref(), Some(missed));
    // There are more connections than it is ever sent requests on.
    let many: Spoil = |of| {
        (of.model.connections, of.sent) = (100_000, 60_000);
        of.model.rate_per_s = Some(90_000.0);
    };
    let why = at_a_rate(many).expect("it is far behind");
    assert!(why.contains("the rate was not reached: 50000.0 of 90000.0"), "{why}");
}

#[test]
fn requests_that_are_always_under_way_are_no_missed_rate() {
    let slow: Spoil = |of| {
        (of.model.connections, of.sent) = (100_000, 60_000);
        of.requests_late = 10_000;
        of.requests = 60_000;
    };
    assert_eq!(at_a_rate(slow), None, "it takes 200 ms for each");
    let warm: Spoil = |of| {
        (of.model.connections, of.sent) = (100_000, 60_000);
        (of.requests_late, of.requests_in_window) = (10_000, 50_000);
        of.requests = 50_000;
    };
    assert!(at_a_rate(warm).is_some(), "after a warm-up as many are under way at the begin");
}

#[test]
fn a_hundredth_of_the_connections_may_be_missing() {
    let of = |served: u64, held: u64| {
        let counts = ConnectionCounts { held: Some(held), ..connections(1_000, served) };
        three_rounds(|run| {
            run.outcome.as_mut().expect("has one").connections = Some(counts.clone());
        })[1]
            .unfit
            .is_none()
    };
    assert!(of(1_000, 1_000) && of(990, 990));
    assert!(!of(989, 1_000) && !of(1_000, 989));
}

#[test]
fn handshakes_that_agree_on_something_else_are_other_work() {
    let unfit = |keep_alive: bool, of_b: [&str; 2]| {
        let rounds = (1..=3).flat_map(|round| {
            [("a", ["X25519", "AES-128"]), ("b", of_b)].map(|(name, [group, cipher])| {
                let mut run = run(name, round, 1_000, 1.0);
                let outcome = run.outcome.as_mut().expect("has one");
                outcome.model.keep_alive = keep_alive;
                let (group, cipher) = (group.to_owned(), cipher.to_owned());
                let version = "TLSv1.3".to_owned();
                let tls = TlsSummary { version, cipher, group, handshakes: 9, resumed: 0 };
                outcome.tls = Some(tls);
                run
            })
        });
        let rows = summarise(&record(rounds.collect()));
        assert_eq!(rows[0].unfit, None);
        assert_eq!(ratio_of(&rows, Column::Rate).is_some(), rows[1].unfit.is_none());
        rows[1].unfit.clone()
    };
    assert_eq!(unfit(false, ["X25519", "AES-128"]), None);
    let why = "TLS agreed on X25519MLKEM768 and AES-128, and with a on X25519 and AES-128";
    assert_eq!(unfit(false, ["X25519MLKEM768", "AES-128"]).as_deref(), Some(why));
    assert_eq!(unfit(true, ["X25519MLKEM768", "AES-128"]), None, "there are few handshakes");
    let why = "TLS agreed on AES-256, and with a on AES-128";
    assert_eq!(unfit(true, ["X25519", "AES-256"]).as_deref(), Some(why));
}

#[test]
fn a_round_without_a_result_counts() {
    let rows = three_rounds(|run| {
        if run.round != 2 {
            (run.outcome, run.failure) = (None, Some("it did not start".to_owned()));
        }
    });
    assert_eq!(rows[1].unfit.as_deref(), Some("no result in 2 of 3 rounds"));
    assert_eq!((rows[1].rounds, ratio_of(&rows, Column::Rate)), (1, None));
    assert_eq!(rows[1].notes, ["it did not start (The like in 2 of 3 rounds.)"]);
}

#[test]
fn a_row_is_as_bad_as_its_worst_round() {
    let rows = three_rounds(|run| {
        let served = [1_000, 400, 700][run.round as usize - 1];
        run.outcome.as_mut().expect("has one").connections = Some(connections(1_000, served));
    });
    let why = rows[1].unfit.as_deref().expect("two rounds were not served");
    assert!(why.starts_with("400 of 1,000 connections had a response"), "{why}");
}

#[test]
fn a_response_that_comes_late_is_none_of_the_measured_time() {
    let rows = three_rounds(|run| {
        let found = run.outcome.as_mut().expect("has one");
        (found.requests_per_s, found.requests_late) = (0.0, found.requests);
        found.connections = Some(connections(10, 0));
    });
    let why = rows[1].unfit.as_deref().expect("it answered after the end");
    assert!(why.contains("it answered outside the measured time"), "{why}");
    assert_eq!(ratio_of(&rows, Column::CpuPerRequest), None);
}

#[test]
fn nothing_is_compared_with_a_reference_that_did_other_work() {
    let mut runs: Vec<RunRecord> =
        (1..=3).flat_map(|at| [run("a", at, 100_000, 1.0), run("b", at, 9_000, 1.0)]).collect();
    runs[0].outcome.as_mut().expect("has one").connections = Some(connections(10, 9));
    let rows = summarise(&record(runs));
    assert_eq!(ratio_of(&rows, Column::Rate), None);
    assert_eq!(rows[1].unfit, None, "it has done nothing wrong itself");
}

#[test]
fn a_round_in_which_time_was_stolen_is_void() {
    // In the second round both took three times as long, by no fault of theirs.
    let rows = three_rounds(|run| {
        if run.round == 2 {
            run.usage.steal_share = 0.4;
            run.usage.cpu_user_s *= 9.0;
        }
    });
    let cpu = rows[1].cpu_us_per_request.expect("measured");
    assert_eq!(cpu.n, 2);
    assert!((cpu.high - 20.0).abs() < 1e-9, "{cpu:?}");
    assert_eq!(rows[1].unfit, None);
    let note = "Round 2 is void: the hypervisor took 40.0 % of the machine's CPU time.";
    assert_eq!(rows[1].notes, [note]);
    let all = three_rounds(|run| run.usage.steal_share = 0.4);
    assert_eq!(all[1].unfit.as_deref(), Some("every round is void"));
    assert_eq!((all[1].cpu_us_per_request.expect("better than none").n, all[1].rounds), (3, 3));
}

#[test]
fn after_a_warm_up_cpu_is_divided_by_the_answers_of_the_same_time() {
    let mut warm = run("a", 1, 1_000, 1.0);
    let found = warm.outcome.as_mut().expect("has one");
    // Of 1,000 responses 100 came after the end, and 20 to requests of the warm-up before it.
    (found.requests_per_s, found.requests_in_window) = (920.0, 920);
    let whole = cpu_us_per_request(&warm).expect("answered");
    assert!((whole - 1_000.0).abs() < 1e-9, "without a warm-up all of both counts: {whole}");
    let found = warm.outcome.as_mut().expect("has one");
    found.requests_before = 1_000;
    let whole = cpu_us_per_request(&warm).expect("answered");
    assert!((whole - 500.0).abs() < 1e-9, "the ramp-up, too: {whole}");
    warm.usage.is_of_window = true;
    let window = cpu_us_per_request(&warm).expect("answered");
    assert!((window - 1e6 / 920.0).abs() < 1e-9, "{window}");
}

#[test]
fn a_percentile_is_shown_from_ten_responses_beyond_it() {
    let of = |count: u64| {
        let found = run("a", 1, count, 1.0).outcome.expect("has one");
        ["50", "99", "99.9"].map(|name| found.latency_us.percentile(name).is_some())
    };
    assert_eq!(of(19), [false; 3]);
    assert_eq!(of(20), [true, false, false]);
    assert_eq!(of(999), [true, false, false]);
    assert_eq!(of(1_000), [true, true, false]);
    assert_eq!(of(9_999), [true, true, false]);
    assert_eq!(of(10_000), [true; 3]);
}

#[test]
fn warnings_that_differ_in_their_numbers_only_are_one() {
    let warned = |round, words: &str| {
        let mut run = run("a", round, 100, 1.0);
        run.outcome.as_mut().expect("has one").warnings.push(words.to_owned());
        run
    };
    let record = record(vec![
        warned(1, "It waited 15 % of the time."),
        warned(2, "It waited 7 % of the time."),
        warned(3, "Something else."),
    ]);
    let expected = ["It waited 15 % of the time. (The like in 2 of 3 rounds.)", "Something else."];
    assert_eq!(summarise(&record)[0].notes, expected);
}
