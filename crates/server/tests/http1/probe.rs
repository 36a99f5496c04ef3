//! The 215 cases of `Http11Probe` (<https://www.http-probe.com>), in its state of 17 February 2026,
//! with its verdicts: the requests and the rules are taken from it, the code is not.
//!
//! A case passes, or its row says why it does not. `make probe` prints the score, which
//! `docs/results/arena.md` shows next to the published ones.

#[macro_use]
mod texts {
    /// A GET of `/` with these lines of fields behind `Host`.
    macro_rules! get {
        () => {
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        };
        ($fields:expr) => {
            concat!("GET / HTTP/1.1\r\nHost: h\r\n", $fields, "\r\n\r\n")
        };
    }

    /// A POST to `/` with these lines of fields behind `Host`, and a body.
    macro_rules! post {
        ($fields:expr, $body:expr) => {
            concat!("POST / HTTP/1.1\r\nHost: h\r\n", $fields, "\r\n\r\n", $body)
        };
    }

    /// A POST to `/` whose body comes in chunks.
    macro_rules! chunked {
        ($body:expr) => {
            post!("Transfer-Encoding: chunked", $body)
        };
    }

    /// A request line, and `Host`.
    macro_rules! line {
        ($line:expr) => {
            concat!($line, "\r\nHost: h\r\n\r\n")
        };
    }
}

mod compliance;
mod fields;
mod malformed;
mod published;
mod smuggling;
mod steps;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use gustnado::{Request, Response, Routes, route};

use crate::harness::{Answer, Client, Folder, Server, Setup};

on_every_server!(http1 "its cases are texts of HTTP/1":
    each_case_gets_its_response,
    what_is_not_whole_gets_none,
    a_connection_goes_on_behind_a_body,
    conditions_are_kept,
);

/// What `Http11Probe` says about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// An RFC allows it, and allows something stricter.
    Warn,
    Fail,
}

use Verdict::{Fail, Pass, Warn};

/// Statuses from the first to the last.
type Statuses = &'static [(u16, u16)];

const SUCCESS: (u16, u16) = (200, 299);
const BAD: (u16, u16) = (400, 400);

/// How `Http11Probe` judges a case: by the first status, or by its absence.
#[derive(Clone, Copy)]
struct Rule {
    pass: Statuses,
    warn: Statuses,
    /// Whether silence passes, until `Http11Probe` stops waiting.
    silence: bool,
    /// What else a response that passes must fulfil.
    also: Option<fn(&Answer) -> Verdict>,
}

impl Rule {
    const fn pass(pass: Statuses) -> Self {
        Self { pass, warn: &[], silence: false, also: None }
    }

    const fn warn(mut self, warn: Statuses) -> Self {
        self.warn = warn;
        self
    }

    const fn also(mut self, also: fn(&Answer) -> Verdict) -> Self {
        self.also = Some(also);
        self
    }

    fn judge(&self, answer: &Answer) -> Verdict {
        let holds = |ranges: Statuses| {
            ranges.iter().any(|(first, last)| (*first..=*last).contains(&answer.status))
        };
        match self.also {
            Some(also) if holds(self.pass) => also(answer),
            None if holds(self.pass) => Pass,
            _ if holds(self.warn) => Warn,
            _ => Fail,
        }
    }
}

/// 400 and nothing else.
const REFUSED: Rule = Rule::pass(&[BAD]);
/// 400 is due, and success is allowed.
const STRICT: Rule = REFUSED.warn(&[SUCCESS]);
/// 400, or waiting for the rest.
const WAITS: Rule = Rule { silence: true, ..REFUSED };
const SUCCEEDS: Rule = Rule::pass(&[SUCCESS]);

/// What this server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Status(u16),
    Silence,
}

/// One case: what is sent on a connection of its own, the rule, and what this server does.
struct Case {
    id: &'static str,
    sent: Cow<'static, [u8]>,
    rule: Rule,
    due: Due,
    is_scored: bool,
    /// Where it does not pass: the verdict and the reason.
    not_passed: Option<(Verdict, &'static str)>,
}

impl Case {
    const fn new(id: &'static str, sent: &'static str, rule: Rule, status: u16) -> Self {
        let sent = Cow::Borrowed(sent.as_bytes());
        Self { id, sent, rule, due: Due::Status(status), is_scored: true, not_passed: None }
    }

    /// A case in which the server waits.
    const fn silent(id: &'static str, sent: &'static str) -> Self {
        let mut case = Self::new(id, sent, WAITS, 0);
        case.due = Due::Silence;
        case
    }

    fn made(id: &'static str, sent: Vec<u8>, rule: Rule, status: u16) -> Self {
        Self { sent: Cow::Owned(sent), ..Self::new(id, "", rule, status) }
    }

    /// Shown by `Http11Probe`, and not counted.
    const fn unscored(mut self) -> Self {
        self.is_scored = false;
        self
    }

    const fn warned(mut self, reason: &'static str) -> Self {
        self.not_passed = Some((Warn, reason));
        self
    }

    const fn failed(mut self, reason: &'static str) -> Self {
        self.not_passed = Some((Fail, reason));
        self
    }

    fn verdict(&self) -> Verdict {
        self.not_passed.map_or(Pass, |(verdict, _)| verdict)
    }
}

/// The cases of one request.
fn single() -> Vec<Case> {
    let tables = compliance::CASES.into_iter().chain(smuggling::CASES).chain(malformed::CASES);
    let mut all: Vec<Case> = tables.chain(fields::CASES).collect();
    all.extend(compliance::long());
    all.extend(smuggling::embedded());
    all.extend(malformed::made());
    all.extend(fields::long());
    all
}

/// A page with conditions, an echo, and what was understood of a head.
fn server(setup: Setup) -> (Server, Folder) {
    let folder = Folder::new();
    let page = folder.dated("page.txt", "OK");
    let echo = async |mut request: Request| request.body_mut().bytes(1 << 20).await;
    let root = route().get(move |_: &Request| Response::file(&page)).post(echo);
    let head = |request: &Request| {
        let mut shown = String::new();
        for (name, value) in request.headers() {
            let value = String::from_utf8_lossy(value);
            writeln!(shown, "{name}: {value}").expect("a string takes everything");
        }
        shown
    };
    let cookies = |request: &Request| {
        let mut shown = String::new();
        for (name, value) in request.cookies() {
            writeln!(shown, "{name}={value}").expect("a string takes everything");
        }
        shown
    };
    let routes = Routes::new()
        .route("/", root)
        .route("/echo", route().get(head).post(head))
        .get("/cookie", cookies);
    (Server::routes(setup.patient_config(), routes), folder)
}

/// Reads the response to a case. That to HEAD must have no content.
fn read(client: &mut Client, case: &Case) -> Answer {
    if case.sent.starts_with(b"HEAD") {
        return client.read_head();
    }
    client.try_answer().unwrap_or_else(|end| panic!("{}: {end:?}", case.id))
}

fn each_case_gets_its_response(setup: Setup) {
    let (server, _folder) = server(setup);
    let mut problems = Vec::new();
    for case in single() {
        let Due::Status(due) = case.due else { continue };
        let mut client = server.connect();
        client.send_unless_closed(&case.sent);
        let answer = read(&mut client, &case);
        let found = case.rule.judge(&answer);
        if (answer.status, found) != (due, case.verdict()) {
            let (id, wanted) = (case.id, case.verdict());
            problems.push(format!("{id}: {found:?}, not {wanted:?} with {due}: {answer:?}"));
        }
        // No second response, and no content behind that to HEAD.
        client.expect_as_said(&answer, case.id);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn what_is_not_whole_gets_none(setup: Setup) {
    let (server, _folder) = server(setup);
    let waiting = single().into_iter().filter(|case| case.due == Due::Silence);
    let mut clients: Vec<(Client, Case)> = waiting
        .map(|case| {
            let mut client = server.connect();
            client.send(&case.sent);
            (client, case)
        })
        .collect();
    assert!(clients.len() > 3);
    std::thread::sleep(Duration::from_millis(200));
    for (client, case) in &mut clients {
        client.expect_silence(Duration::from_millis(1));
        assert!(case.rule.silence, "{}: silence fails", case.id);
    }
}

fn a_connection_goes_on_behind_a_body(setup: Setup) {
    let (server, _folder) = server(setup);
    for case in &steps::PAIRS {
        let mut client = server.connect();
        for (sent, due) in case.sent.iter().zip(case.due) {
            let answer = client.ask(sent);
            assert_eq!(answer.status, due, "{}: {answer:?}", case.id);
            assert!(!answer.closes() || due >= 400, "{}: {answer:?}", case.id);
        }
        client.expect_silence(Duration::from_millis(5)); // no third response
    }
}

fn conditions_are_kept(setup: Setup) {
    let (server, _folder) = server(setup);
    for case in &steps::CONDITIONS {
        let mut client = server.connect();
        let first = client.ask(get!());
        let tag = first.expect_field("etag");
        let fields = case.fields.replace("{etag}", tag);
        let fields = fields.replace("{bare}", tag.trim_start_matches("W/").trim_matches('"'));
        let fields = fields.replace("{date}", first.expect_field("last-modified"));
        let answer = client.ask(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n"));
        assert_eq!(answer.status, case.due, "{}: {fields:?}: {answer:?}", case.id);
        if answer.status == 304 {
            assert_eq!(answer.field("etag"), Some(tag), "{}", case.id);
        }
    }
}

/// How many cases passed, are a warning, and failed.
struct Score {
    pass: usize,
    warn: usize,
    fail: usize,
}

/// Counts the verdicts of the cases that `counts`, by name and by whether they are scored.
fn score(verdicts: &[(&'static str, bool, Verdict)], counts: impl Fn(&str, bool) -> bool) -> Score {
    let count = |wanted: Verdict| {
        let counted = verdicts.iter().filter(|(id, is_scored, _)| counts(id, *is_scored));
        counted.filter(|(.., verdict)| *verdict == wanted).count()
    };
    Score { pass: count(Pass), warn: count(Warn), fail: count(Fail) }
}

/// Whether the published scores of others count a case.
fn was_scored(id: &str, is_scored: bool) -> bool {
    published::UNSCORED_SINCE.contains(&id) || is_scored && !published::ADDED.contains(&id)
}

/// Every case: its name, whether it is scored, and its verdict, which the other tests check.
fn verdicts() -> Vec<(&'static str, bool, Verdict)> {
    let single = single().into_iter().map(|case| (case.id, case.is_scored, case.verdict()));
    let pairs = steps::PAIRS.iter().map(|case| (case.id, false, case.verdict));
    let conditions = steps::CONDITIONS.iter().map(|case| (case.id, false, case.verdict()));
    single.chain(pairs).chain(conditions).collect()
}

#[test]
fn all_cases_are_here_once() {
    let verdicts = verdicts();
    let count = |starts: &[&str]| {
        let ids = verdicts.iter().map(|(id, ..)| *id).collect::<BTreeSet<_>>();
        ids.iter().filter(|id| starts.iter().any(|start| id.starts_with(start))).count()
    };
    assert_eq!(verdicts.len(), 215);
    assert_eq!(count(&["COMP-", "RFC"]), 76);
    assert_eq!(count(&["SMUG-"]), 87);
    assert_eq!(count(&["MAL-"]), 26);
    assert_eq!(count(&["COOK-"]), 12);
    assert_eq!(count(&["CAP-"]), 9);
    assert_eq!(count(&["NORM-"]), 5);
    assert_eq!(verdicts.iter().filter(|(_, is_scored, _)| !is_scored).count(), 54);
    assert_eq!(verdicts.iter().filter(|(id, scored, _)| was_scored(id, *scored)).count(), 125);
}

#[test]
fn the_page_states_the_score() {
    let verdicts = verdicts();
    let scores = [
        ("scored", score(&verdicts, |_, is_scored| is_scored)),
        ("unscored", score(&verdicts, |_, is_scored| !is_scored)),
        ("scored on 12 February", score(&verdicts, was_scored)),
    ];
    for case in single() {
        if let Some((verdict, reason)) = case.not_passed {
            println!("{verdict:?}  {}: {reason}", case.id);
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/arena.md");
    let page = fs::read_to_string(page).expect("the page of the results");
    for (which, Score { pass, warn, fail }) in scores {
        let count = pass + warn + fail;
        let line = format!("| gustnado, {which} | {count} | {pass} | {warn} | {fail} |");
        println!("{line}");
        assert!(page.contains(&line), "docs/results/arena.md lacks: {line}");
    }
    let reasons = single().into_iter().filter_map(|case| Some((case.id, case.not_passed?)));
    for (id, (verdict, _)) in reasons.filter(|(_, (verdict, _))| *verdict == Fail) {
        assert!(page.contains(&format!("`{id}`")), "docs/results/arena.md: {verdict:?} of {id}");
    }
}
