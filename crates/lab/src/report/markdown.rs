//! A contest in Markdown: a verdict and one table, and the pages in which these are published.
//!
//! A page has a section for each contest. Its heading is the contest's title, and a comment ends it
//! and names the machine. Text between that comment and the next heading is written by hand, and
//! stays when the section is replaced.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::view::View;
use super::{overview, verdict};
use crate::record::Record;

/// Maximum number of lines of the table, heading included.
const LINES_MAX: usize = 20;
/// Maximum length of a remark; the report has it in full.
const REMARK_CHARS_MAX: usize = 60;
const END: &str = "<!-- end of the contest, measured on ";

/// Error of publishing a table.
#[derive(Debug)]
#[non_exhaustive]
pub enum PublishError {
    /// The page could not be read or written.
    Page {
        /// Its path.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The page has results of another machine, or of an unknown one.
    OtherMachine {
        /// Its path.
        path: PathBuf,
        /// The machine of the page, if it is known.
        machine: Option<String>,
    },
    /// The sources that were measured are no commit.
    Uncommitted {
        /// The commit with its mark for changes, if it is known.
        commit: Option<String>,
    },
    /// The contest ended early.
    Cut {
        /// The cause.
        why: String,
    },
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "--publish publishes them all the same";
        match self {
            Self::Page { path, .. } => write!(f, "cannot update {}", path.display()),
            Self::OtherMachine { path, machine } => {
                let path = path.display();
                let machine = machine.as_deref().unwrap_or("an unknown machine");
                write!(f, "{path} has results of {machine}, these are of another one; {REMEDY}")
            }
            Self::Uncommitted { commit: Some(commit) } => {
                write!(f, "the results are of commit {commit}, with changes; {REMEDY}")
            }
            Self::Uncommitted { commit: None } => {
                write!(f, "the results are of an unknown commit; {REMEDY}")
            }
            Self::Cut { why } => write!(f, "the contest ended early ({why}); {REMEDY}"),
        }
    }
}

impl std::error::Error for PublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Page { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Returns a contest's section of a page.
pub fn section(record: &Record) -> String {
    let view = View::of(record);
    let overview = overview::of(&view);
    let mut lines = vec![
        heading(record),
        String::new(),
        format!("{}.", escaped(&overview::conditions(&view))),
        String::new(),
    ];
    for line in verdict::lines(&view) {
        lines.extend([escaped(&line), String::new()]);
    }
    lines.extend([escaped(&overview.caption), String::new()]);
    let headings = overview.headings.iter().map(|name| escaped(name));
    let cells = ["contender".to_owned()].into_iter().chain(headings).chain(["remark".to_owned()]);
    lines.push(row(cells));
    let rules = overview.headings.iter().map(|_| "---:".to_owned());
    lines.push(row(["---".to_owned()].into_iter().chain(rules).chain(["---".to_owned()])));
    let all = overview.rows.len();
    let shown = if all > LINES_MAX - 2 { LINES_MAX - 3 } else { all };
    for one in &overview.rows[..shown] {
        let cells = one.cells.iter().map(|cell| match cell {
            Some(cell) => [cell.figure.as_str(), &cell.ratio].join(" ").trim_end().to_owned(),
            None => "–".to_owned(),
        });
        let remark = [escaped(&shortened(&one.remark))];
        lines.push(row([escaped(&one.name)].into_iter().chain(cells).chain(remark)));
    }
    if shown < all {
        let blank = overview.headings.iter().map(|_| String::new());
        let more = format!("{} more", all - shown);
        lines.push(row([more].into_iter().chain(blank).chain(["in the report".to_owned()])));
    }
    let machine = overview::machine_name(&view).replace("--", "–");
    lines.extend([String::new(), format!("{END}{machine} -->"), String::new()]);
    lines.join("\n")
}

/// Replaces a contest's section of a page, or adds it. A page that does not exist is created.
///
/// - `force`: also publishes what is of another machine than the page, of a tree with changes, or
///   of a contest that ended early.
pub fn publish(record: &Record, page: &Path, force: bool) -> Result<(), PublishError> {
    let failed = |error| PublishError::Page { path: page.to_owned(), error };
    let text = match fs::read_to_string(page) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let found = SectionPlace::of(&text, &heading(record));
    if !force {
        check(record, page, &found)?;
    }
    let (before, after) = (&text[..found.from], &text[found.to..]);
    let section = section(record);
    let gap = if before.is_empty() || before.ends_with("\n\n") {
        ""
    } else if before.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let rest = if after.is_empty() || after.starts_with('\n') { "" } else { "\n" };
    let temporary = page.with_extension("md.new");
    let written = fs::write(&temporary, format!("{before}{gap}{section}{rest}{after}"))
        .and_then(|()| fs::rename(&temporary, page));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

fn check(record: &Record, page: &Path, found: &SectionPlace) -> Result<(), PublishError> {
    if let Some(why) = &record.cut {
        return Err(PublishError::Cut { why: why.clone() });
    }
    let commit = record.environment.commit.clone();
    if commit.as_deref().is_none_or(|commit| commit.ends_with('+')) {
        return Err(PublishError::Uncommitted { commit });
    }
    let here = overview::machine_name(&View::of(record)).replace("--", "–");
    if found.from < found.to && found.machine.as_ref() != Some(&here) {
        let (path, machine) = (page.to_owned(), found.machine.clone());
        return Err(PublishError::OtherMachine { path, machine });
    }
    Ok(())
}

/// The place of a contest's section in a page, in bytes.
struct SectionPlace {
    from: usize,
    to: usize,
    machine: Option<String>,
}

impl SectionPlace {
    /// Returns that of the section with this heading; an empty one at the end if there is none.
    fn of(text: &str, heading: &str) -> Self {
        let end = text.len();
        let mut place = Self { from: end, to: end, machine: None };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let (begin, words) = (at, line.trim_end());
            at += line.len();
            if place.from == end {
                if words == heading {
                    place.from = begin;
                }
                continue;
            }
            if words.starts_with("## ") {
                place.to = begin;
                return place;
            }
            if let Some(rest) = words.strip_prefix(END) {
                place.machine = rest.strip_suffix(" -->").map(str::to_owned);
                place.to = at;
                return place;
            }
        }
        place
    }
}

fn heading(record: &Record) -> String {
    format!("## {}", escaped(&record.title))
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(REMARK_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Text that stays text in a cell or a paragraph.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.trim().chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '<' | '>' => {
                safe.push('\\');
                safe.push(letter);
            }
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}
