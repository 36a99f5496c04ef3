//! A record such as a contest leaves, built in code: made up, and alike each time.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the made-up figures are small and above 0"
)]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::lab::outcome::{
    ConnectionCounts, Errors, GeneratorUsage, Kernel, Latency, ModelSummary, Outcome, OutcomeSecond,
};
use super::lab::record::{
    ContenderRecord, Environment, FORMAT, Fate, Record, RunRecord, Sample, ScenarioRecord, Usage,
};

const PERCENTILES: [&str; 11] =
    ["50", "66", "75", "80", "90", "95", "98", "99", "99.9", "99.99", "100"];

/// Five contenders, of which one is not installed, one fails under many connections and one does
/// other work; a sweep of four and a scenario that holds idle connections; three rounds, cut short.
pub(crate) fn record() -> Record {
    let mut record = empty();
    record.title = String::from("C10k: a static file under 10,000 connections");
    record.about = String::from("The evaluation of 2018 again, with a sweep that it lacked.");
    record.cut = Some("interrupted (Ctrl-C) in round 3".to_owned());
    record.contenders = contenders();
    record.scenarios = scenarios();
    for round in 1..=3 {
        for scenario in &record.scenarios {
            for (place, contender) in record.contenders.iter().enumerate() {
                let is_cut = round == 3 && scenario.model == "hold";
                if place != 3 && !is_cut {
                    record.runs.push(run(scenario, contender, place, round));
                }
            }
        }
    }
    record
}

/// A record without contenders, scenarios and runs.
pub(crate) fn empty() -> Record {
    Record {
        format: FORMAT,
        tool: "gustnado 0.1.0".to_owned(),
        title: String::new(),
        about: String::new(),
        started_unix_s: 1_790_000_000.0,
        took_s: 754.0,
        cut: None,
        environment: environment(),
        method: vec![
            "Rounds are interleaved: each contender once, then each again.".to_owned(),
            "Each server is restarted for each run and warmed for 2 s.".to_owned(),
        ],
        file: "title = \"C10k\"\nrounds = 3\n\n[[contender]]\nname = \"gustnado\"\n".to_owned(),
        reference: "gustnado".to_owned(),
        contenders: Vec::new(),
        scenarios: Vec::new(),
        runs: Vec::new(),
        verdicts: Vec::new(),
    }
}

fn environment() -> Environment {
    let sysctls = [("net.core.somaxconn", "4096"), ("net.ipv4.tcp_max_syn_backlog", "1024")];
    Environment {
        cpu: "AMD EPYC 7763 64-Core Processor".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.8.0-45-generic".to_owned(),
        governor: None,
        system: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        descriptors: (1_048_576, 1_048_576),
        sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        server_cpus: vec![0],
        generator_cpus: vec![1],
        commit: Some("390ba31".to_owned()),
    }
}

fn contenders() -> Vec<ContenderRecord> {
    let one = |name: &str, tuning: &str, command: &str, fate: Fate| ContenderRecord {
        name: name.to_owned(),
        about: format!("{name} serving one folder."),
        tuning: tuning.to_owned(),
        command: command.split(' ').map(str::to_owned).collect(),
        version: (!matches!(fate, Fate::NotInstalled(_))).then(|| format!("{name} 1.2.3")),
        fate,
    };
    let absent = Fate::NotInstalled("no program `caddy` in PATH".to_owned());
    let unequal = Fate::Unequal("1,024 bytes were expected, 1,019 came".to_owned());
    vec![
        one("gustnado", "tuned", "gustnado serve --port 8001 /srv/www", Fate::Ran),
        one("nginx", "untuned", "nginx -p /srv/nginx -c nginx.conf", Fate::Ran),
        one("Python http.server", "untuned", "python3 -m http.server 8003", Fate::Ran),
        one("Caddy", "untuned", "caddy file-server --listen :8004", absent),
        one("lighttpd", "tuned", "lighttpd -D -f lighttpd.conf", unequal),
    ]
}

fn scenarios() -> Vec<ScenarioRecord> {
    let mut all: Vec<ScenarioRecord> = [100, 1000, 4000, 10_000]
        .map(|connections: u64| ScenarioRecord {
            name: format!("c{connections}"),
            title: format!("1 KiB page, {connections} connections"),
            body_bytes: 1024,
            connections,
            keep_alive: true,
            model: "closed".to_owned(),
            sentence: format!(
                "{connections} connections, each sends a request once it has a response, for 10 s."
            ),
            sweep: Some("1 KiB page".to_owned()),
            contenders: Vec::new(),
        })
        .into();
    all.push(ScenarioRecord {
        name: "hold".to_owned(),
        title: "10,000 idle connections, one that sends requests".to_owned(),
        body_bytes: 1024,
        connections: 10_000,
        keep_alive: true,
        model: "hold".to_owned(),
        sentence: "10,000 connections are held idle while another sends 100 requests a second."
            .into(),
        sweep: None,
        contenders: Vec::new(),
    });
    all
}

/// Figures of a made-up server: microseconds of CPU for each request, and bytes for each
/// connection.
const NATURE: [(f64, f64); 5] =
    [(11.0, 420.0), (17.5, 900.0), (410.0, 31_000.0), (1.0, 1.0), (15.0, 1500.0)];

fn run(
    scenario: &ScenarioRecord,
    contender: &ContenderRecord,
    place: usize,
    round: u32,
) -> RunRecord {
    let (cpu_us, connection_bytes) = NATURE[place];
    let connections = scenario.connections as f64;
    let wobble = 1.0 + 0.03 * f64::from(round) * (place as f64 - 1.5) / 2.0;
    let cpu_us = cpu_us * wobble * (1.0 + connections / 60_000.0);
    let (outcome, rate) = outcome(scenario, place, cpu_us, round);
    let fails = place == 2 && scenario.connections == 10_000;
    let lost = fails && scenario.model == "hold";
    let before = 3_000_000.0 + 4_000_000.0 * place as f64;
    let peak = before + connection_bytes * connections;
    let busy_s = rate * 10.0 * cpu_us / 1e6;
    RunRecord {
        contender: contender.name.clone(),
        scenario: scenario.name.clone(),
        round,
        outcome: (!lost).then_some(outcome),
        failure: lost.then(|| "only 1,021 of 10,000 connections could be opened".to_owned()),
        usage: Usage {
            cpu_user_s: busy_s * 0.3,
            cpu_system_s: busy_s * 0.7,
            is_of_window: false,
            steal_share: 0.0,
            memory_before_bytes: before as u64,
            memory_peak_bytes: peak as u64,
            descriptors_peak: scenario.connections + 12,
            threads_peak: 2,
            processes: 1,
            switches_voluntary: 1200,
            switches_forced: 80,
            samples: samples(busy_s, before, peak),
            ..Usage::default()
        },
    }
}

fn samples(cpu_s: f64, before: f64, peak: f64) -> Vec<Sample> {
    let at = |step: u32| {
        let share = f64::from(step) / 50.0;
        let memory = before + (peak - before) * (share * 4.0).min(1.0);
        Sample {
            at_s: share * 10.0,
            cpu_s: cpu_s * share,
            memory_bytes: memory as u64,
            descriptors: 100,
            threads: 2,
        }
    };
    (0..=50).map(at).collect()
}

/// The outcome that the generator would have, and the rate.
fn outcome(scenario: &ScenarioRecord, place: usize, cpu_us: f64, round: u32) -> (Outcome, f64) {
    let fails = place == 2 && scenario.connections == 10_000;
    let held = scenario.model == "hold";
    let rate = if held { 1_100.0 } else { 0.95e6 / cpu_us };
    let base = if held { cpu_us * 8.0 } else { scenario.connections as f64 / rate * 1e6 };
    let latency = latency(base, place, (rate * 10.0) as u64);
    let errors = if fails {
        Errors { timed_out: 113, reset: 20 + u64::from(round), ..Errors::default() }
    } else {
        Errors::default()
    };
    let series = series(scenario, rate, &latency.1, if fails { errors.total() } else { 0 });
    let requests = (rate * 10.0) as u64;
    let outcome = Outcome {
        format: 1,
        tool: "gustnado 0.1.0".to_owned(),
        urls: vec!["http://127.0.0.1:8001/index.html".to_owned()],
        model: ModelSummary {
            name: scenario.model.clone(),
            sentence: scenario.sentence.clone(),
            connections: scenario.connections,
            rate_per_s: None,
            pipeline: 1,
            protocol: "HTTP/1.1".to_owned(),
            keep_alive: true,
            threads: 1,
            io: "uring".to_owned(),
        },
        started_unix_s: 1_790_000_000.0,
        duration_s: 10.0,
        requests,
        requests_in_window: requests,
        requests_late: 0,
        requests_before: 0,
        sent: requests + errors.total(),
        unanswered: 0,
        unsent: 0,
        requests_per_s: rate,
        statuses: BTreeMap::from([(200, requests)]),
        success_share: None,
        bytes_received: requests * 1200,
        bytes_received_per_s: Some(rate * 1200.0),
        bytes_sent: requests * 60,
        connections_opened: scenario.connections,
        connections: Some(connections(scenario.connections)),
        ramp_up_s: 0.1,
        connections_missing: 0,
        connections_unserved: 0,
        service_us: None,
        connect_us: None,
        tls: None,
        first_byte_us: None,
        histogram: latency.0,
        latency_us: latency.1,
        generator: GeneratorUsage { cpu_s: 4.0, cpu_share: 0.4, ..GeneratorUsage::default() },
        kernel: Kernel::default(),
        retransmits: None,
        steal_share: 0.0,
        warnings: if fails { vec!["112 segments were sent again".to_owned()] } else { Vec::new() },
        series,
        steps: Vec::new(),
        held: None,
        websocket: None,
        errors,
    };
    (outcome, rate)
}

/// Ten seconds, of which the sixth has all errors.
fn series(
    scenario: &ScenarioRecord,
    rate: f64,
    latency: &Latency,
    errors: u64,
) -> Vec<OutcomeSecond> {
    let second = |second: u32| OutcomeSecond {
        at_s: f64::from(second),
        requests: (rate * (1.0 + 0.02 * f64::from(second % 3))) as u64,
        errors: if second == 6 { errors } else { 0 },
        connections: scenario.connections,
        p50_us: latency.percentiles["50"],
        p99_us: latency.percentiles["99"] * (1.0 + 0.05 * f64::from(second % 4)),
        max_us: latency.max,
    };
    (1..=10).map(second).collect()
}

/// Connections that were all served and held.
fn connections(asked: u64) -> ConnectionCounts {
    ConnectionCounts { asked, due: asked, opened: asked, served: asked, held: Some(asked) }
}

/// A distribution around `base` microseconds with a tail that grows with the contender's place.
fn latency(base: f64, place: usize, count: u64) -> (String, Latency) {
    let mut all = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).expect("bounds");
    for step in 1..=2000_u32 {
        let share = f64::from(step) / 2001.0;
        let tail = (1.0 / (1.0 - share)).ln();
        let us = base * (0.55 + 0.2 * tail + 0.02 * (place as f64 + 1.0) * tail.powi(3));
        all.record_n(us.max(1.0) as u64, (count / 2000).max(1)).expect("within bounds");
    }
    let percentiles = PERCENTILES.map(|name| {
        let percentile = name.parse().expect("a number");
        (name.to_owned(), all.value_at_percentile(percentile) as f64)
    });
    let mut packed = Vec::new();
    V2DeflateSerializer::new().serialize(&all, &mut packed).expect("memory takes everything");
    let latency = Latency {
        count: all.len(),
        min: all.min() as f64,
        mean: all.mean(),
        sd: all.stdev(),
        max: all.max() as f64,
        percentiles: percentiles.into(),
    };
    (STANDARD.encode(packed), latency)
}
