//! Every key of a contest's file, declared once: reading, checks, defaults and the reference in
//! `docs/contest.md` derive from these tables.

use std::time::Duration;

use super::drafts::{PageDraft, ScenarioDraft};
use super::keys::{Fallback, FileKey, Takes};
use super::{
    BodySpec, CODING_WORDS, CODINGS, ContenderSpec, ContestSpec, CountKind, GeneratorKind,
    MessageSpec, ModelSpec, ReachSpec,
};

use Fallback::{Depends, None, Value};

/// Declares keys, each as name, default, kind and meaning.
macro_rules! keys {
    ($($name:literal, $fallback:expr, $takes:expr, $doc:literal;)+) => {
        &[$(FileKey { name: $name, fallback: $fallback, takes: $takes, doc: $doc }),+]
    };
}

const MILLISECOND: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_mins(1);
const FIVE_MINUTES: Duration = Duration::from_mins(5);
const TEN_MINUTES: Duration = Duration::from_mins(10);
const HOUR: Duration = Duration::from_hours(1);
const WEEK: Duration = Duration::from_hours(7 * 24);
const TUNING: &[&str] = &["tuned", "untuned"];
const FACTOR: std::ops::RangeInclusive<f64> = 0.0..=1e12;

/// The keys of the file itself.
pub(super) static CONTEST: &[FileKey<ContestSpec>] = keys![
    "title", Depends("the file's name"), Takes::Text(|contest, text| contest.title = text),
        "The title at the top of the page.";
    "about", Value("\"\""), Takes::Text(|contest, text| text.trim().clone_into(&mut contest.about)),
        "The text below the title.";
    "reference", Depends("the first contender"),
        Takes::Text(|contest, text| contest.reference = text),
        "Ratios are to this contender.";
    "rounds", Value("3"), Takes::Number(1..=100, |contest, rounds| contest.rounds = small(rounds)),
        "How often everything is measured. Five and more make narrow intervals.";
    "output", Depends("`contest-` and the file's name"),
        Takes::Text(|contest, text| contest.output = text.into()),
        "The folder that gets everything.";
    "fresh", Value("true"), Takes::Switch(|contest, fresh| contest.fresh = fresh),
        "A server is restarted for each run. `false`: once for all rounds of a scenario.";
    "time_limit", Value("\"2h\""),
        Takes::Length(MINUTE..=WEEK, |contest, most| contest.time_limit = most),
        "After that it ends, and keeps what was measured.";
    "server_cpus", Depends("the first half"),
        Takes::Numbers(0..=65_535, |contest, cpus| contest.server_cpus = Some(all_small(&cpus))),
        "The CPUs of the servers, such as `[0, 1]`.";
    "generator_cpus", Depends("the others"),
        Takes::Numbers(0..=65_535, |contest, cpus| contest.generator_cpus = Some(all_small(&cpus))),
        "The CPUs of the load generator.";
    "size_tolerance", Value("0.03"),
        Takes::Fraction(0.0..=1.0, |contest, share| contest.size_tolerance = share),
        "By which share a response in a content coding may be longer than the first one, which is \
         the reference's where it takes part. What it decodes to may not differ at all.";
    "set_up", None, Takes::Commands(|contest, commands| contest.set_up = commands),
        "Commands that run once before everything, in the folder of the file. If one fails, there \
         is no contest.";
    "page", None, Takes::Tables, "The requested content, see below.";
    "contender", None, Takes::Tables, "The servers, see below.";
    "scenario", None, Takes::Tables, "The loads, see below.";
];

/// The keys of `[page]`.
pub(super) static PAGE: &[FileKey<PageDraft>] = keys![
    "bytes", Depends("4096 if nothing else is given"),
        Takes::Number(0..=1 << 30, |page, bytes| page.bytes = Some(bytes)),
        "A page of that many bytes, made by the contest, the same each time.";
    "file", None, Takes::Text(|page, file| page.file = Some(file)),
        "This file; the path is relative to the contest's file.";
    "path", None, Takes::Text(|page, path| page.path = Some(path)),
        "What each contender provides at this path. The reference's response is the correct one.";
];

/// The keys of `[[contender]]`, and of a preset.
pub(super) static CONTENDER: &[FileKey<ContenderSpec>] = keys![
    // It is read before the others, which take precedence over the preset's.
    "preset", None, Takes::Text(|_, _| ()),
        "A known contender; every other key then takes precedence over the preset's.";
    "name", Depends("the preset's"), Takes::Text(|one, text| one.name = text),
        "Its name in tables, unique.";
    "about", Value("\"\""), Takes::Text(|one, text| one.about = text), "What it is.";
    "tuning", None,
        Takes::Choice(TUNING, |one, at| TUNING[at].clone_into(&mut one.tuning)),
        "Whether it is set up for speed, or as it is installed.";
    "needs", Depends("the command's program"), Takes::Texts(|one, needs| one.needs = needs),
        "Programs that must be there, or other files by their whole path.";
    "installed_if", None, Takes::Commands(|one, commands| one.installed_if = commands),
        "Commands that succeed where it is installed: \
         `[[\"python3\", \"-c\", \"import tornado\"]]`.";
    "install", Value("\"\""), Takes::Text(|one, text| one.install = text),
        "What to do if it is not installed.";
    "command", Depends("the preset's"), Takes::Texts(|one, words| one.command = words),
        "The command that starts it, in the foreground: a program and its arguments, without a \
         shell.";
    "version", None, Takes::Texts(|one, words| one.version = words),
        "The command that prints its version.";
    "set_up", None, Takes::Commands(|one, commands| one.set_up = commands),
        "Commands that run once before its first start, such as a compiler: \
         `[[\"go\", \"build\", \"x.go\"]]`.";
    "files", None, Takes::Map(|one, files| one.files.extend(files)),
        "Files that are written into its folder before each start: `\"x.conf\" = \"...\"`.";
    "environment", None, Takes::Map(|one, more| one.environment.extend(more)),
        "Variables, added to those of this process.";
    "url", Value("\"http://127.0.0.1:{port}/{page}\""), Takes::Text(|one, text| one.url = text),
        "Where the page is.";
    "unix_socket", None, Takes::Text(|one, text| one.unix_socket = Some(text)),
        "The Unix socket that it listens on, such as `{work}/s`. The URL then only names what is \
         requested.";
    "ready_timeout", Value("\"10s\""),
        Takes::Length(Duration::ZERO..=FIVE_MINUTES, |one, length| one.ready_timeout = length),
        "How long starting may take.";
    "stop_timeout", Value("\"5s\""),
        Takes::Length(Duration::ZERO..=FIVE_MINUTES, |one, length| one.stop_timeout = length),
        "How long it has after TERM before KILL.";
    "cpus", Depends("those of the servers"),
        Takes::Number(1..=1_024, |one, cpus| one.cpus = Some(cpus)),
        "The value of `{cpus}`: how many workers it starts.";
    "allow_unequal", None, Takes::Text(|one, why| one.allow_unequal = Some(why)),
        "Why it may take part although its response differs. The page says so.";
];

/// The keys of `[[scenario]]`.
pub(super) static SCENARIO: &[FileKey<ScenarioDraft>] = keys![
    "name", None, Takes::Text(|draft, text| draft.spec.name = text), "A short unique name.";
    "title", Depends("the name"), Takes::Text(|draft, text| draft.spec.title = text),
        "Its title.";
    "contenders", Depends("all"), Takes::Texts(|draft, names| draft.spec.contenders = names),
        "The names of the contenders that take part in it.";
    "generator", Value("\"gustnado\""),
        Takes::Choice(GeneratorKind::WORDS, |draft, at| {
            draft.spec.generator = GeneratorKind::ALL[at];
        }),
        "The load generator: `gustnado bench`, or another one (below).";
    "model", Value("\"closed\""),
        Takes::Choice(ModelSpec::WORDS, |draft, at| draft.spec.model = ModelSpec::ALL[at]),
        "`closed`: each connection sends a request as soon as it has the response to the last one. \
         `open`: at a fixed rate, and latency counts from when a request was due. `hold`: idle \
         connections are held while others send requests. `churn`: a new connection for each \
         request.";
    "connections", Value("100"),
        Takes::Sweep(1..=1_000_000, |draft, numbers| draft.sweep = numbers),
        "How many at once; for `hold`, how many idle ones. A list makes a sweep, a point for each.";
    "duration", Depends("`\"10s\"`"),
        Takes::Length(MILLISECOND..=HOUR, |draft, length| draft.spec.duration = length),
        "How long.";
    "requests", None,
        Takes::Number(1..=1_000_000_000, |draft, most| draft.spec.requests = Some(most)),
        "End after this many instead, within two minutes unless `duration` says otherwise.";
    "rate", None, Takes::Fraction(1e-3..=1e8, |draft, rate| draft.spec.rate = Some(rate)),
        "Requests per second; `open` needs it, `hold` may have it.";
    "probes", Value("1"), Takes::Number(1..=10_000, |draft, probes| draft.spec.probes = probes),
        "For `hold`: connections that send requests among the idle ones.";
    "warm_up", Value("0"),
        Takes::Length(Duration::ZERO..=TEN_MINUTES, |draft, length| draft.spec.warm_up = length),
        "The same load before, that does not count. For another generator it is made by `gustnado \
         bench`, over kept connections.";
    "keep_alive", Depends("`true`, for `churn` `false`"),
        Takes::Switch(|draft, kept| draft.spec.keep_alive = kept),
        "`false`: each connection carries one request.";
    "http2", Value("false"), Takes::Switch(|draft, http2| draft.spec.http2 = http2),
        "`true`: requests are of HTTP/2, which https URLs agree on by ALPN, and others by prior \
         knowledge. For `gustnado` and `h2load`. In clear a contender speaks HTTP/1.1, too: its \
         response is compared by that.";
    "pipeline", Value("1"),
        Takes::Number(1..=1_024, |draft, depth| draft.spec.pipeline = small(depth)),
        "Requests under way at once on each connection.";
    "streams", Depends("`pipeline`"),
        Takes::Number(1..=1_024, |draft, depth| draft.spec.pipeline = small(depth)),
        "The same by its name in HTTP/2.";
    "bytes", Depends("the contest's page"),
        Takes::Number(0..=1 << 30, |draft, bytes| draft.bytes = Some(bytes)),
        "A page of another length for this scenario.";
    "path", Depends("the contest's page"), Takes::Text(|draft, path| draft.path = Some(path)),
        "What each contender provides at this path, in place of the contest's page.";
    "coding", None,
        Takes::Choice(CODING_WORDS, |draft, at| draft.spec.coding = Some(CODINGS[at])),
        "Requests accept this content coding and no other, and every response has to be in it.";
    "websocket", None,
        Takes::Choice(MessageSpec::WORDS, |draft, at| draft.websocket = Some(at == 1)),
        "The requests are messages over WebSockets that open at `path`: the server sends each \
         back, or to all. `bytes` is the length of a message, 64 if it is left out.";
    "send", None, Takes::Text(|draft, text| draft.send = Some(BodySpec::Text(text))),
        "Each request is a POST of this text to `path`, as JSON.";
    "send_bytes", None,
        Takes::Number(0..=1 << 30, |draft, bytes| draft.send = Some(BodySpec::Bytes(bytes))),
        "The same with that many bytes.";
    "threads", Depends("as many as it has CPUs"),
        Takes::Number(1..=1_024, |draft, threads| draft.spec.threads = Some(small(threads))),
        "Threads of the generator.";
    "rounds", Depends("the contest's"),
        Takes::Number(1..=100, |draft, rounds| draft.spec.rounds = small(rounds)),
        "Rounds of this one.";
    "accept_status", Value("\"2xx\""),
        Takes::Text(|draft, text| draft.accept_status = Some(text)),
        "Statuses of successful responses, such as `\"200-399,404\"`. Redirects are not followed.";
    "arguments", None, Takes::Texts(|draft, words| draft.spec.arguments = words),
        "More arguments for the generator. The words below are filled in.";
    "count", None,
        Takes::Choices(CountKind::WORDS, |draft, all| {
            draft.spec.counts = all.into_iter().map(|at| CountKind::ALL[at]).collect();
        }),
        "What is counted besides, exactly: instructions (by callgrind) and system calls (by \
         strace) for each request.";
    "count_requests", Value("20_000"),
        Takes::Number(100..=10_000_000, |draft, most| draft.spec.count_requests = most),
        "How many requests are sent for a count. Counting instructions takes a tenth of them and \
         then all, in a server of its own each time, which runs some fifty times slower.";
    "reach", None, Takes::Tables, "Figures to reach, see below.";
];

/// The keys of `reach`.
pub(super) static REACH: &[FileKey<ReachSpec>] = keys![
    "of", Depends("the first contender"), Takes::Text(|reach, text| reach.of = text),
        "The contender that is judged.";
    "to", None, Takes::Text(|reach, text| reach.to = Some(text)),
        "The contender that it is compared with: then the limits are factors of that one's \
         figures.";
    "cpu", None, Takes::Fraction(FACTOR, |reach, most| reach.cpu = Some(most)),
        "Most CPU per request, in microseconds or as a factor.";
    "memory", None, Takes::Fraction(FACTOR, |reach, most| reach.memory = Some(most)),
        "Most memory for each connection, in bytes or as a factor.";
    "rate", None, Takes::Fraction(FACTOR, |reach, least| reach.rate = Some(least)),
        "Least requests per second, or least factor.";
    "instructions", None, Takes::Fraction(FACTOR, |reach, most| reach.instructions = Some(most)),
        "Most instructions for each request, or greatest factor. The scenario has to count them.";
    "system_calls", None, Takes::Fraction(FACTOR, |reach, most| reach.system_calls = Some(most)),
        "Most system calls for each request, or greatest factor. The scenario has to count them.";
];

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn all_small(numbers: &[u64]) -> Vec<u32> {
    numbers.iter().map(|number| small(*number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::file::keys::set_defaults;

    #[test]
    fn every_default_is_a_value_that_its_key_takes() {
        let (mut contest, mut contender) = (ContestSpec::default(), ContenderSpec::default());
        let mut scenario = ScenarioDraft::default();
        set_defaults(CONTEST, &mut contest);
        set_defaults(CONTENDER, &mut contender);
        set_defaults(SCENARIO, &mut scenario);
        set_defaults(PAGE, &mut PageDraft::default());
        set_defaults(REACH, &mut ReachSpec::default());
        assert_eq!((contest.rounds, contest.fresh), (3, true));
        assert_eq!(contender.ready_timeout, Duration::from_secs(10));
        assert_eq!((scenario.sweep, scenario.spec.probes), (vec![100], 1));
    }

    #[test]
    fn words_and_variants_are_in_one_order() {
        for (word, kind) in GeneratorKind::WORDS.iter().zip(GeneratorKind::ALL) {
            assert_eq!(*word, kind.word());
        }
        for (word, model) in ModelSpec::WORDS.iter().zip(ModelSpec::ALL) {
            assert_eq!(*word, model.word());
        }
        for (word, coding) in CODING_WORDS.iter().zip(CODINGS) {
            assert_eq!(*word, coding.name());
        }
        for (word, count) in CountKind::WORDS.iter().zip(CountKind::ALL) {
            assert_eq!(*word, count.word());
        }
    }
}
