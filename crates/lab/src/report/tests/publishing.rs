//! The table in Markdown, and the pages in which it is published.

use std::fs;
use std::path::{Path, PathBuf};

use super::specimen;
use crate::record::Record;
use crate::report::markdown::{self, PublishError};

/// A whole contest of a clean tree.
fn record() -> Record {
    Record { cut: None, ..specimen::record() }
}

fn page(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("page.md");
    fs::write(&path, text).expect("written");
    path
}

#[test]
fn a_table_names_commit_machine_and_date_and_has_a_row_for_each_contender() {
    let text = markdown::section(&record());
    assert!(text.starts_with("## C10k: a static file under 10,000 connections\n"), "{text}");
    for words in ["commit 390ba31", "2 x AMD EPYC 7763 64-Core Processor, 8 GiB", "21 Sep 2026"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 5, "{text}");
    let cells = |row: &str| row.matches(" | ").count();
    assert!(rows.iter().all(|row| cells(row) == cells(rows[0])), "{text}");
    assert!(rows[2].starts_with("| gustnado | 10.5 µs |"), "{text}");
    assert!(rows[0].contains("bytes per response") && rows[2].contains("| 1,200 |"), "{text}");
    assert!(rows[4].contains("not compared in 2 scenarios: 405 failures"), "{text}");
    assert!(rows[5].contains("not installed") && rows[6].contains("not the same work"), "{text}");
}

#[test]
fn a_table_of_forty_contenders_has_twenty_lines() {
    let mut record = record();
    let first = record.contenders[0].clone();
    for place in 0..40 {
        record.contenders.push(crate::record::ContenderRecord {
            name: format!("another|{place}\n"),
            ..first.clone()
        });
    }
    let text = markdown::section(&record);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 20, "{text}");
    assert!(rows[19].starts_with("| 28 more |"), "{}", rows[19]);
    assert!(rows.iter().any(|row| row.contains("another\\|0")), "{text}");
}

#[test]
fn a_section_is_replaced_and_what_stands_around_it_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = record();
    let path = page(folder.path(), "# Page\n\n## First\n\nkept\n");
    markdown::publish(&record, &path, false).expect("added");
    let mut text = fs::read_to_string(&path).expect("read");
    assert!(text.starts_with("# Page\n\n## First\n\nkept\n\n## C10k: "), "{text}");
    text.push_str("\nA remark.\n\n## Last\n\nkept, too\n");
    fs::write(&path, &text).expect("written");
    record.environment.commit = Some("abcdef0".to_owned());
    markdown::publish(&record, &path, false).expect("replaced");
    let changed = fs::read_to_string(&path).expect("read");
    assert_eq!(changed, text.replace("390ba31", "abcdef0"));
}

#[test]
fn another_machine_and_changed_sources_are_published_only_if_that_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let fresh = record();
    let path = page(folder.path(), "");
    markdown::publish(&fresh, &path, false).expect("added");
    let before = fs::read_to_string(&path).expect("read");
    let refused = |record: &Record| {
        let error = markdown::publish(record, &path, false).expect_err("refused");
        assert_eq!(fs::read_to_string(&path).expect("read"), before, "{error}");
        assert!(error.to_string().contains("--publish"), "{error}");
        error
    };
    let mut other = fresh.clone();
    other.environment.cpus = 64;
    assert!(matches!(
        refused(&other),
        PublishError::OtherMachine { machine: Some(machine), .. } if machine.starts_with("2 x AMD")
    ));
    for commit in [Some("390ba31+".to_owned()), None] {
        let mut changed = fresh.clone();
        changed.environment.commit = commit;
        assert!(matches!(refused(&changed), PublishError::Uncommitted { .. }));
    }
    assert!(matches!(refused(&specimen::record()), PublishError::Cut { .. }));
    // A section that says nothing of its machine, as those made otherwise.
    let text = format!("## {}\n\nold figures\n\n## Next\n", fresh.title);
    let unknown = page(folder.path(), &text);
    let error = markdown::publish(&fresh, &unknown, false).expect_err("refused");
    assert!(error.to_string().contains("of an unknown machine"), "{error}");
    markdown::publish(&other, &unknown, true).expect("forced");
    let forced = fs::read_to_string(&unknown).expect("read");
    assert!(forced.contains("64 x AMD") && !forced.contains("old figures"), "{forced}");
    assert!(forced.ends_with(" -->\n\n## Next\n"), "{forced}");
}
