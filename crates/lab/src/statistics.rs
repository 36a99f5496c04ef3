//! Statistics: figures with their spread from single measurements, and their significance.
//!
//! A figure is the median over rounds, with minimum and maximum. A ratio to the reference is the
//! geometric mean of the ratios within each round, because what disturbs one round disturbs both
//! contenders in it; its 95 % interval is Student's t over their logarithms. A ratio counts as
//! noise if its interval includes 1 or it is nearer to 1 than [`RESOLUTION`]. Fewer than three
//! rounds have no interval. Void rounds and rows that did other work have no ratio, see `fit`.
//! Everything here is a function of the record.

mod fit;
pub mod reference;
pub(crate) mod spread;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::record::{Fate, Record, RunRecord, ScenarioRecord};
pub(crate) use fit::other_work;
use spread::{Estimate, paired, spread, unpaired};

/// Ratios nearer to 1 than this are noise regardless of their interval: ticks of CPU time and
/// buckets of latencies are not finer.
pub const RESOLUTION: f64 = 0.01;

/// A column of a table, in the order of all tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// Server CPU in microseconds for each successful response.
    CpuPerRequest,
    /// Successful responses per second.
    Rate,
    /// The median latency, in microseconds.
    P50,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The greatest latency.
    Max,
    /// Bytes that the generator received for each response, head and body: those of servers that do
    /// the same work differ by their heads.
    BytesPerResponse,
    /// Server memory in bytes for each connection: peak minus idle.
    MemoryPerConnection,
    /// All errors.
    Failures,
}

impl Column {
    /// All columns, in the order of all tables.
    pub const ALL: [Self; 9] = [
        Self::CpuPerRequest,
        Self::Rate,
        Self::P50,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::BytesPerResponse,
        Self::MemoryPerConnection,
        Self::Failures,
    ];

    /// Its heading: `CPU/request`.
    pub fn title(self) -> &'static str {
        match self {
            Self::CpuPerRequest => "CPU/request",
            Self::Rate => "requests/s",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::BytesPerResponse => "bytes/resp",
            Self::MemoryPerConnection => "memory/conn",
            Self::Failures => "failures",
        }
    }

    /// `µs`, `/s`, `bytes` or empty.
    pub fn unit(self) -> &'static str {
        match self {
            Self::CpuPerRequest | Self::P50 | Self::P99 | Self::P999 | Self::Max => "µs",
            Self::Rate => "/s",
            Self::BytesPerResponse | Self::MemoryPerConnection => "bytes",
            Self::Failures => "",
        }
    }

    /// Returns whether more is better, which holds for the rate alone.
    pub fn more_is_better(self) -> bool {
        self == Self::Rate
    }
}

/// The figures of one contender in one scenario, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContenderFigures {
    /// [`ContenderRecord::name`](crate::record::ContenderRecord::name).
    pub contender: String,
    /// [`ScenarioRecord::name`].
    pub scenario: String,
    /// Rounds with figures.
    pub rounds: u32,
    /// Cause of missing figures, if there are none.
    pub missing: Option<String>,
    /// Why the row is not comparable, if it is not: the contender failed, did not serve or hold
    /// every connection, responded outside the measured time, agreed on other TLS than the
    /// reference, or has no valid round. Such a row has no ratio, wins nothing, and is in no plot.
    pub unfit: Option<String>,
    /// Caveats of these figures, each once: failures of single rounds, and warnings of the
    /// generator.
    pub notes: Vec<String>,
    /// See [`Column::CpuPerRequest`].
    pub cpu_us_per_request: Option<Figure>,
    /// See [`Column::Rate`].
    pub requests_per_s: Option<Figure>,
    /// See [`Column::P50`].
    pub p50_us: Option<Figure>,
    /// See [`Column::P99`].
    pub p99_us: Option<Figure>,
    /// See [`Column::P999`].
    pub p999_us: Option<Figure>,
    /// See [`Column::Max`].
    pub max_us: Option<Figure>,
    /// See [`Column::BytesPerResponse`].
    pub bytes_per_response: Option<Figure>,
    /// See [`Column::MemoryPerConnection`].
    pub memory_bytes_per_connection: Option<Figure>,
    /// See [`Column::Failures`]. It has no ratio.
    pub failures: Option<Figure>,
}

impl ContenderFigures {
    /// The figure of a column.
    pub fn figure(&self, column: Column) -> Option<&Figure> {
        match column {
            Column::CpuPerRequest => self.cpu_us_per_request.as_ref(),
            Column::Rate => self.requests_per_s.as_ref(),
            Column::P50 => self.p50_us.as_ref(),
            Column::P99 => self.p99_us.as_ref(),
            Column::P999 => self.p999_us.as_ref(),
            Column::Max => self.max_us.as_ref(),
            Column::BytesPerResponse => self.bytes_per_response.as_ref(),
            Column::MemoryPerConnection => self.memory_bytes_per_connection.as_ref(),
            Column::Failures => self.failures.as_ref(),
        }
    }
}

/// A figure over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The median over rounds.
    pub median: f64,
    /// The minimum.
    pub low: f64,
    /// The maximum.
    pub high: f64,
    /// Rounds.
    pub n: u32,
    /// The ratio to the reference; `None` for the reference itself, and without anything to
    /// compare.
    pub ratio: Option<Ratio>,
}

/// A ratio with its significance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// The 95 % interval; `None` of one round or two.
    pub interval: Option<(f64, f64)>,
    /// Its significance.
    pub verdict: Significance,
}

impl From<Estimate> for Ratio {
    fn from(of: Estimate) -> Self {
        let verdict = match of.interval {
            None => Significance::Unknown,
            Some(_) if (of.value - 1.0).abs() < RESOLUTION => Significance::Noise,
            Some((_, high)) if high < 1.0 => Significance::Less,
            Some((low, _)) if low > 1.0 => Significance::More,
            Some(_) => Significance::Noise,
        };
        Self { value: of.value, interval: of.interval, verdict }
    }
}

/// Significance of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Significance {
    /// Significantly less.
    Less,
    /// Significantly more.
    More,
    /// Within the noise.
    Noise,
    /// One round or two are too few.
    Unknown,
}

impl Significance {
    /// `less`, `more`, `noise` or `too few rounds`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
            Self::Noise => "noise",
            Self::Unknown => "too few rounds",
        }
    }
}

/// Returns the figures of every contender in every scenario, both in the order of the file. Those
/// without figures, and those that are not comparable, are included.
pub fn summarise(record: &Record) -> Vec<ContenderFigures> {
    let mut rows = Vec::new();
    let reference = reference::choose(record);
    for scenario in &record.scenarios {
        let base = Measured::of(record, reference, scenario);
        let takes_part =
            |name: &String| scenario.contenders.is_empty() || scenario.contenders.contains(name);
        for contender in record.contenders.iter().filter(|one| takes_part(&one.name)) {
            let measured = Measured::of(record, &contender.name, scenario);
            let against = (contender.name != reference).then_some(&base);
            rows.push(row(&contender.fate, scenario, &contender.name, &measured, against));
        }
    }
    rows
}

/// Returns the ratio of a column between two records for one contender in one scenario, over
/// independent rounds: the newer to the older.
pub fn change(
    (old, new): (&Record, &Record),
    contender: &str,
    scenario: &str,
    column: Column,
) -> Option<Ratio> {
    let values = |record: &Record| -> Option<Vec<f64>> {
        let scenario = record.scenarios.iter().find(|one| one.name == scenario)?;
        let measured = Measured::of(record, contender, scenario);
        measured.unfit().is_none().then(|| measured.values(column))
    };
    unpaired(&values(new)?, &values(old)?).map(Ratio::from)
}

/// One figure of one run; `None` if it is undefined, such as latency without a response.
pub fn value(run: &RunRecord, scenario: &ScenarioRecord, column: Column) -> Option<f64> {
    let outcome = run.outcome.as_ref()?;
    let percentile = |name: &str| outcome.latency_us.percentile(name);
    match column {
        Column::CpuPerRequest => cpu_us_per_request(run),
        Column::Rate => Some(outcome.requests_per_s),
        Column::P50 => percentile("50"),
        Column::P99 => percentile("99"),
        Column::P999 => percentile("99.9"),
        Column::Max => (outcome.latency_us.count > 0).then_some(outcome.latency_us.max),
        Column::BytesPerResponse => bytes_per_response(outcome),
        Column::MemoryPerConnection => {
            let held = outcome.held.as_ref().map(|held| held.opened);
            let connections = held.unwrap_or(scenario.connections);
            let usage = &run.usage;
            let grown = usage.memory_peak_bytes.saturating_sub(usage.memory_before_bytes);
            (connections > 0).then(|| number(grown) / number(connections))
        }
        Column::Failures => Some(number(outcome.errors.total())),
    }
}

/// Those of the measured time if the generator tells them apart: what it receives of a response
/// before or after it belongs to none that counts.
fn bytes_per_response(outcome: &Outcome) -> Option<f64> {
    let in_window = outcome.bytes_received_per_s.map(|bytes| (bytes, outcome.requests_per_s));
    let all = (number(outcome.bytes_received), number(outcome.requests));
    let (bytes, responses) = in_window.unwrap_or(all);
    (bytes > 0.0 && responses > 0.0).then(|| bytes / responses)
}

/// Server CPU for each successful response, in microseconds. CPU and responses are counted over the
/// same time: the measured time, or the whole run with its ramp-up and its last responses.
pub fn cpu_us_per_request(run: &RunRecord) -> Option<f64> {
    let outcome = run.outcome.as_ref()?;
    let answers = if run.usage.is_of_window {
        outcome.responses_in_window()
    } else {
        number(outcome.requests + outcome.requests_before)
    };
    let cpu_s = run.usage.cpu_user_s + run.usage.cpu_system_s;
    (answers > 0.0).then(|| cpu_s * 1e6 / answers)
}

/// Pairs the valid rounds of two contenders.
pub fn pairs_of<'a>(
    of: impl Iterator<Item = &'a RunRecord>,
    to: impl Iterator<Item = &'a RunRecord>,
    scenario: &ScenarioRecord,
    column: Column,
) -> Vec<(f64, f64)> {
    let to: Vec<&RunRecord> = to.filter(|run| fit::void(run).is_none()).collect();
    let pair = |run: &RunRecord| {
        let other = to.iter().find(|other| other.round == run.round)?;
        Some((value(run, scenario, column)?, value(other, scenario, column)?))
    };
    of.filter(|run| fit::void(run).is_none()).filter_map(pair).collect()
}

/// The runs of one contender in one scenario that have an outcome.
struct Measured<'a> {
    scenario: &'a ScenarioRecord,
    runs: Vec<&'a RunRecord>,
}

impl<'a> Measured<'a> {
    fn of(record: &'a Record, contender: &str, scenario: &'a ScenarioRecord) -> Self {
        let is_one = |run: &&RunRecord| run.contender == contender && run.scenario == scenario.name;
        Self { scenario, runs: record.runs.iter().filter(is_one).collect() }
    }

    fn values(&self, column: Column) -> Vec<f64> {
        // If all rounds are void, their figures are better than none.
        let all_void = self.runs.iter().all(|run| fit::void(run).is_some());
        let counts = |run: &&&RunRecord| all_void || fit::void(run).is_none();
        let runs = self.runs.iter().filter(counts);
        runs.filter_map(|run| value(run, self.scenario, column)).collect()
    }

    /// Both values of each round that both contenders have.
    fn pairs(&self, other: &Self, column: Column) -> Vec<(f64, f64)> {
        let (of, to) = (self.runs.iter().copied(), other.runs.iter().copied());
        pairs_of(of, to, self.scenario, column)
    }

    fn has_outcome(&self) -> bool {
        self.runs.iter().any(|run| run.outcome.is_some())
    }

    /// See [`ContenderFigures::unfit`].
    fn unfit(&self) -> Option<String> {
        fit::unfit(&self.runs)
    }

    /// The same next to a reference, if it is another one.
    fn unfit_to(&self, base: Option<&Self>) -> Option<String> {
        let handshakes = base.and_then(|base| fit::other_handshakes(&self.runs, &base.runs));
        let why: Vec<String> = self.unfit().into_iter().chain(handshakes).collect();
        (!why.is_empty()).then(|| why.join(", "))
    }

    fn figure(&self, column: Column, base: Option<&Self>) -> Option<Figure> {
        let values = self.values(column);
        let spread = spread(&values)?;
        let is_fit = |base: &&Self| self.unfit_to(Some(base)).is_none() && base.unfit().is_none();
        let compared = base.filter(|_| column != Column::Failures).filter(is_fit);
        let ratio = compared.and_then(|base| paired(&self.pairs(base, column)));
        Some(Figure {
            median: spread.median,
            low: spread.low,
            high: spread.high,
            n: u32::try_from(values.len()).unwrap_or(u32::MAX),
            ratio: ratio.map(Ratio::from),
        })
    }

    /// Each once: sentences that differ in their numbers only are merged, with the number of their
    /// rounds.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<(String, usize)> = Vec::new();
        for run in &self.runs {
            let warnings = run.outcome.iter().flat_map(|outcome| &outcome.warnings);
            let void = fit::void(run);
            for note in void.iter().chain(&run.failure).chain(warnings) {
                match notes.iter_mut().find(|(known, _)| is_alike(known, note)) {
                    Some((_, times)) => *times += 1,
                    None => notes.push((note.clone(), 1)),
                }
            }
        }
        let said = |(note, times)| match times {
            1 => note,
            times => format!("{note} (The like in {times} of {} rounds.)", self.runs.len()),
        };
        notes.into_iter().map(said).collect()
    }
}

/// Returns whether two sentences differ in their numbers only.
fn is_alike(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        let is_number = |c: char| c.is_ascii_digit() || ",.".contains(c);
        text.chars().filter(|c| !is_number(*c)).collect::<String>()
    };
    words(a) == words(b)
}

fn row(
    fate: &Fate,
    scenario: &ScenarioRecord,
    contender: &str,
    measured: &Measured<'_>,
    base: Option<&Measured<'_>>,
) -> ContenderFigures {
    let rounds = measured.runs.iter().filter(|run| run.outcome.is_some()).count();
    let figure = |column| measured.figure(column, base);
    let mut notes = measured.notes();
    let missing = (rounds == 0).then(|| match fate {
        Fate::Ran if notes.is_empty() => "not measured".to_owned(),
        Fate::Ran => notes.remove(0),
        Fate::NotInstalled(why) => format!("not installed: {why}"),
        Fate::Failed(why) => format!("failed: {why}"),
        Fate::Unequal(why) => format!("not the same work: {why}"),
    });
    ContenderFigures {
        contender: contender.to_owned(),
        scenario: scenario.name.clone(),
        rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        missing,
        unfit: measured.unfit_to(base),
        notes,
        cpu_us_per_request: figure(Column::CpuPerRequest),
        requests_per_s: figure(Column::Rate),
        p50_us: figure(Column::P50),
        p99_us: figure(Column::P99),
        p999_us: figure(Column::P999),
        max_us: figure(Column::Max),
        bytes_per_response: figure(Column::BytesPerResponse),
        memory_bytes_per_connection: figure(Column::MemoryPerConnection),
        failures: figure(Column::Failures),
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures are shown to four places at most")]
fn number(count: u64) -> f64 {
    count as f64
}
