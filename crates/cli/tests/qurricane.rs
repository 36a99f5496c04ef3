//! The page for those who come from Qurricane: complete, and true in what it names.

use std::fs;
use std::path::{Path, PathBuf};

use gustnado::config::TUNABLES;

/// Names that the page promises for other changes. The change that brings one removes it here.
const AWAITED: &[&str] = &[];

/// Every option of Qurricane 1.2.4 and topNET 2.1.13, as their setters are called.
const OPTIONS: &[&str] = &[
    "jobsPerThread",
    "minimumThreadsAmount",
    "threadsAmount",
    "poolType",
    "autoscalingThreads",
    "noSlotsAvailableTimeout",
    "scalingMax",
    "autoScalingDown",
    "scalingDownTryPeriodMS",
    "cachingThreads",
    "puttingJobsEquallyToAllThreads",
    "waitingForReadEvents",
    "delayForNoIOReadsInSuite",
    "setSpinCountBeforeSleep",
    "singlePoolPassThreadDelay",
    "acceptDelay",
    "allowingMoreAcceptsThanSlots",
    "blockingReadsAndWrites",
    "requestBufferSize",
    "dataHandlerWriteBufferSize",
    "maxFromContentSizeBufferChunkSize",
    "setMaxGrowningBufferChunkSize",
    "maxResponseBufferFillSize",
    "cachingBuffers",
    "BytesStream",
    "defaultHeaderSizeLimit",
    "maxMessageSize",
    "defaultIdleTime",
    "defaultAcceptIdleTime",
    "limitsHandler",
    "channelReceiveBufferSize",
    "channelSendBufferSize",
    "performance preferences",
    "protocol",
    "headerCharset",
    "urlCharset",
    "tellingConnectionClose",
    "errorHandlingConfig",
    "setGeneralGlobalHandlingHooks",
    "infoLogsFrequency",
    "WaitTypeServer",
    "EventTypeServer",
    "pool-shared",
    "queue-shared",
    "registerHandlerByPath",
    "registerMatchingHandler",
    "setNext",
    "getInstance",
    "getMaxIdle",
    "getMaxIncomingDataSize",
    "getErrorHandler",
    "onWriteFinished",
    "JobsNumHandler",
];

/// One row of a table: Qurricane's, Gustnado's, unit and range, default, notes.
struct ContenderFigures(Vec<String>);

impl ContenderFigures {
    fn ours(&self) -> &str {
        &self.0[1]
    }
}

fn code_base() -> PathBuf {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    cli.ancestors().nth(2).expect("crates/cli/ lies in the code base").to_path_buf()
}

fn page() -> String {
    fs::read_to_string(code_base().join("docs/qurricane.md")).expect("the page")
}

/// The rows of all tables that have five columns.
fn rows(page: &str) -> Vec<ContenderFigures> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()).collect());
    let is_content = |cells: &Vec<String>| {
        cells.len() == 5 && cells[0] != "Qurricane" && !cells[0].starts_with("---")
    };
    cells.filter(is_content).map(ContenderFigures).collect()
}

/// Returns the text in code marks.
fn marked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_option_has_a_row() {
    let page = page();
    let all = rows(&page);
    assert!(all.len() > 90, "{} rows were read", all.len());
    for option in OPTIONS {
        let found = all.iter().any(|row| row.0[0].contains(option));
        assert!(found, "docs/qurricane.md has no row for {option}");
    }
}

#[test]
fn every_row_has_a_counterpart_or_a_reason() {
    for row in rows(&page()) {
        let [theirs, ours, .., note] = &row.0[..] else { panic!("a row of five") };
        let is_known = marked(ours).count() > 0;
        assert!(is_known || (ours == "none" && note.len() > 20), "{theirs}: {ours}: {note}");
    }
}

#[test]
fn every_setting_that_is_named_exists_with_its_default() {
    let page = page();
    for flag in marked(&page).filter(|name| name.starts_with("--")) {
        let name = flag.trim_start_matches("--");
        let exists = TUNABLES.iter().any(|tunable| tunable.name == name);
        assert_ne!(exists, AWAITED.contains(&flag), "{flag}: no setting, or awaited no longer");
    }
    for row in rows(&page) {
        let named: Vec<_> = marked(row.ours()).collect();
        let [flag] = named[..] else { continue };
        let Some(name) = flag.strip_prefix("--") else { continue };
        let Some(tunable) = TUNABLES.iter().find(|tunable| tunable.name == name) else { continue };
        let default = marked(&row.0[3]).next();
        assert_eq!(default, Some(tunable.default), "the default of {flag}");
    }
}

#[test]
fn every_function_that_is_named_exists() {
    let sources = public_sources();
    for name in marked(&page()).filter(|name| name.contains("::")) {
        let exists = sources.iter().any(|source| declares(source, name));
        assert_ne!(exists, AWAITED.contains(&name), "{name}: not there, or awaited no longer");
    }
}

#[test]
fn a_name_that_does_not_exist_is_found_out() {
    let sources = public_sources();
    let is_there = |name| sources.iter().any(|source| declares(source, name));
    assert!(is_there("Route::idle_timeout") && is_there("gustnado::blocking"));
    assert!(is_there("Stats::waits") && is_there("LimitAction::Wait"));
    for name in ["Route::idle", "Stats::wait", "gustnado::nothing", "Nobody::new"] {
        assert!(!is_there(name), "{name}");
    }
}

/// The sources of the crates that programs see, but for the client: it has requests and responses
/// of its own.
fn public_sources() -> Vec<String> {
    // (Of the codec, statuses are all that handlers see.)
    let status = code_base().join("crates/http/src/status.rs");
    let mut found = vec![fs::read_to_string(status).expect("a source")];
    for folder in ["app", "config", "files", "observe", "server", "tasks", "tcp", "web"] {
        gather(&code_base().join("crates").join(folder).join("src"), &mut found);
    }
    found
}

fn gather(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the code base").flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(path).expect("a source"));
        }
    }
}

/// Returns whether a file declares `Type::member` (a function, field, constant or variant of a type
/// that it declares or implements), or `gustnado::function`.
fn declares(source: &str, name: &str) -> bool {
    let (of, member) = name.split_once("::").expect("asked before");
    let is_word_at = |text: &str, word: &str| {
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(letter))
    };
    let has = |starts: &[&str], word: &str| {
        let mut lines = source.lines().map(str::trim_start);
        lines.any(|line| {
            starts
                .iter()
                .any(|start| line.strip_prefix(start).is_some_and(|rest| is_word_at(rest, word)))
        })
    };
    let functions = ["pub fn ", "pub async fn ", "pub const fn "];
    if of == "gustnado" {
        let is_renamed_crate = source.contains(&format!(" as {member};"));
        return has(&functions, member) || has(&["pub mod "], member) || is_renamed_crate;
    }
    let is_of = has(&["pub struct ", "pub enum ", "impl "], of);
    let is_variant = member.starts_with(char::is_uppercase);
    let is_counter = ["Counter", "Gauge"].iter().any(|kind| has(&[&format!("{member}: ")], kind));
    if ["Stats", "WorkerStats"].contains(&of) && is_counter {
        return true;
    }
    // (The macro `settings!` makes them fields.)
    let is_setting = ["Config", "Pace"].contains(&of) && source.contains("settings! {");
    if is_setting
        && source.lines().any(|line| line.trim_start().starts_with(&format!("{member}: ")))
    {
        return true;
    }
    is_of
        && (has(&functions, member)
            || has(&["pub ", "pub const "], member)
            || (is_variant && has(&[""], member)))
}
