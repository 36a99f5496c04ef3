use std::collections::BTreeMap;

use super::*;
use crate::record::{Environment, Usage};

fn record(runs: u32) -> Record {
    let run = |round| RunRecord {
        contender: "a".to_owned(),
        scenario: "s".to_owned(),
        round,
        outcome: None,
        failure: Some("none".to_owned()),
        usage: Usage::default(),
    };
    Record {
        format: FORMAT,
        tool: "gustnado".to_owned(),
        title: "T".to_owned(),
        about: String::new(),
        started_unix_s: 1.5,
        took_s: 2.5,
        cut: None,
        environment: Environment { sysctls: BTreeMap::new(), ..Environment::default() },
        method: Vec::new(),
        file: "title = \"T\"\n".to_owned(),
        reference: "a".to_owned(),
        contenders: Vec::new(),
        scenarios: Vec::new(),
        runs: (1..=runs).map(run).collect(),
        verdicts: Vec::new(),
    }
}

/// Writes a record as a contest does. Returns the bytes of the file after each step.
fn written(record: &Record, path: &Path) -> Vec<u64> {
    let length = || fs::metadata(path).expect("it is there").len();
    let head = Record { runs: Vec::new(), ..record.clone() };
    let mut file = RecordFile::create(path, &head).expect("created");
    let mut lengths = vec![length()];
    for run in &record.runs {
        file.run(record.took_s, run).expect("appended");
        lengths.push(length());
    }
    file.end(record).expect("appended");
    lengths
}

#[test]
fn a_run_costs_a_line_and_the_whole_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r");
    let record = record(50);
    let lengths = written(&record, &path);
    let steps: Vec<u64> = lengths.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step <= steps[0] + 2), "{steps:?}");
    assert_eq!(read(&path).expect("read"), record);
    assert_eq!(fs::read_to_string(&path).expect("read").lines().count(), 52);
}

#[test]
fn a_record_cut_at_any_byte_keeps_every_whole_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r");
    let record = record(3);
    let lengths = written(&record, &path);
    let text = fs::read(&path).expect("read");
    let first = usize::try_from(lengths[0]).expect("small");
    for end in first..text.len() {
        let Ok(found) = parse(&text[..end]) else { panic!("{end}") };
        let whole = lengths[1..].iter().filter(|length| **length <= end as u64).count();
        assert_eq!(found.runs[..], record.runs[..whole], "{end}");
        assert_eq!(found.cut.as_deref(), Some(BROKEN_OFF), "{end}");
    }
}

#[test]
fn a_description_replaces_the_one_before_and_keeps_the_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r");
    let mut record = record(2);
    let mut file = RecordFile::create(&path, &record).expect("created");
    record.title = "changed".to_owned();
    file.describe(&record).expect("appended");
    record.cut = Some("enough".to_owned());
    file.end(&record).expect("appended");
    assert_eq!(read(&path).expect("read"), record);
}

#[test]
fn what_is_no_record_is_refused_with_its_reason() {
    for (text, expected) in [
        ("{\"format\":1,\"tool\":\"gustnado 0.1.0\"}", "expected a record of format 2, found 1"),
        ("{\"contest\":{\"format\":99}}\n", "expected a record of format 2, found 99"),
        ("no JSON", "this is no record of a contest: line 1: "),
        ("", "this is no record of a contest: it is empty"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r");
        fs::write(&path, text).expect("written");
        let error = read(&path).expect_err("no record").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
