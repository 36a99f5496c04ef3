//! `gustnado compress`: writes compressed siblings of a folder's files, which a server with
//! `--precompressed` sends in their place.
//!
//! What lives here: the work of all files, spread over threads, its progress and its summary.
//! `walk` finds the files, `sibling` makes what lies beside one, `stale` removes what no file has
//! anymore, and `manifest` knows what earlier runs have written, so that files of others are left
//! alone.

pub(crate) mod arguments;
mod manifest;
mod sibling;
mod stale;
mod walk;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gustnado_http::content_coding::ContentCoding;

use crate::exit;
use crate::figures::{counted, grouped};
use crate::output::Console;
use arguments::{CompressOptions, ending};
use manifest::Manifest;
use sibling::{Sibling, SiblingOutcome, process};
use walk::{Found, find};

/// How often the progress line is written anew.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Sums of a run.
#[derive(Debug, Default)]
struct CompressTotals {
    written: u64,
    /// Bytes of originals and of what was written of them, by coding.
    bytes: [(u64, u64); ContentCoding::COUNT],
    unchanged: u64,
    not_smaller: u64,
    foreign: u64,
    changed_meanwhile: u64,
    stale: u64,
    failed: u64,
}

/// Compresses a folder. Returns the exit code: 0 unless a file has failed.
pub(crate) fn run(options: &CompressOptions) -> u8 {
    let console = Console::new(options.quiet);
    let found = match find(&options.folder, &options.types) {
        Ok(found) => found,
        Err(error) => {
            console.error(&format!("{}: {error}", options.folder.display()));
            return exit::FAILED;
        }
    };
    for (path, error) in &found.unread {
        console.error(&format!("{}: {error}", path.display()));
    }
    let mut manifest = match Manifest::read(&options.folder) {
        Ok(manifest) => manifest,
        Err(error) => {
            console.error(&format!("{}: {error}", Manifest::path(&options.folder).display()));
            return exit::FAILED;
        }
    };
    let mut totals =
        CompressTotals { failed: found.unread.len() as u64, ..CompressTotals::default() };
    work(options, &found, &mut manifest, &mut totals, console);
    let (stale, failed) = stale::remove(&options.folder, &mut manifest, options.dry_run);
    for (path, error) in &failed {
        console.error(&format!("{}: {error}", path.display()));
    }
    (totals.stale, totals.failed) = (stale, totals.failed + failed.len() as u64);
    if !options.dry_run
        && let Err(error) = manifest.write(&options.folder)
    {
        console.error(&format!("{}: {error}", Manifest::path(&options.folder).display()));
        totals.failed += 1;
    }
    console.say(&summary(options, found.files.len() as u64, &totals));
    if totals.failed == 0 { exit::CLEAN } else { exit::FAILED }
}

/// Makes the siblings of all files, on as many threads as there are processors.
fn work(
    options: &CompressOptions,
    found: &Found,
    manifest: &mut Manifest,
    totals: &mut CompressTotals,
    console: Console,
) {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let known = manifest.clone();
    std::thread::scope(|scope| {
        let (done, outcomes) = mpsc::sync_channel(64);
        for _ in 0..threads.min(found.files.len()) {
            let (done, next, is_over, known) = (done.clone(), &next, &is_over, &known);
            scope.spawn(move || {
                while let Some(file) = found.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for coding in &options.codings {
                        let outcome = process(options, &file.path, *coding, known);
                        if is_over.load(Ordering::Relaxed) || done.send(outcome).is_err() {
                            return;
                        }
                    }
                }
            });
        }
        drop(done);
        let all = found.files.len() * options.codings.len();
        let mut progress = CompressProgress::new(all, console);
        for sibling in outcomes {
            progress.step(&sibling.path);
            let is_full =
                matches!(&sibling.outcome, SiblingOutcome::Failed(error) if is_no_space(error));
            add(sibling, manifest, totals, console);
            if is_full {
                // Each further file would fail as well.
                is_over.store(true, Ordering::Relaxed);
            }
        }
        progress.end();
    });
}

fn is_no_space(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

fn add(sibling: Sibling, manifest: &mut Manifest, totals: &mut CompressTotals, console: Console) {
    match sibling.outcome {
        SiblingOutcome::Written { from, to, entry } => {
            totals.written += 1;
            let (sum_from, sum_to) = &mut totals.bytes[sibling.coding as usize];
            (*sum_from, *sum_to) = (*sum_from + from, *sum_to + to);
            manifest.insert(sibling.relative, entry);
        }
        SiblingOutcome::NotSmaller(entry) => {
            totals.not_smaller += 1;
            manifest.insert(sibling.relative, entry);
        }
        SiblingOutcome::Unchanged(entry) => {
            totals.unchanged += 1;
            if let Some(entry) = entry {
                manifest.insert(sibling.relative, entry);
            }
        }
        SiblingOutcome::Foreign => totals.foreign += 1,
        SiblingOutcome::ChangedMeanwhile => totals.changed_meanwhile += 1,
        SiblingOutcome::Failed(error) => {
            totals.failed += 1;
            console.error(&format!("{}: {error}", sibling.path.display()));
        }
    }
}

/// A line on a terminal that says how far the work is.
struct CompressProgress {
    all: usize,
    done: usize,
    shown: Option<Instant>,
    console: Console,
}

impl CompressProgress {
    fn new(all: usize, console: Console) -> Self {
        Self { all, done: 0, shown: None, console }
    }

    fn step(&mut self, path: &Path) {
        self.done += 1;
        if self.shown.is_none_or(|shown| shown.elapsed() >= PROGRESS_EVERY) {
            self.shown = Some(Instant::now());
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.console.rewrite(&format!("{} of {}: {name}", self.done, self.all));
        }
    }

    fn end(self) {
        if self.shown.is_some() {
            self.console.rewrite("");
        }
    }
}

/// Formats the outcome of a run.
fn summary(options: &CompressOptions, files: u64, totals: &CompressTotals) -> String {
    let verb = if options.dry_run { "would be written" } else { "written" };
    let mut lines = vec![format!(
        "{} of {} {verb}",
        counted(totals.written, "sibling"),
        counted(files, "file"),
    )];
    for coding in &options.codings {
        let (from, to) = totals.bytes[*coding as usize];
        if let Some(percent) = (to * 100).checked_div(from) {
            let (from, to) = (grouped(from), grouped(to));
            lines.push(format!("  {}: {from} bytes became {to} ({percent} %)", ending(*coding)));
        }
    }
    for (count, what) in [
        (totals.unchanged, "up to date"),
        (totals.not_smaller, "left out: not smaller than the file"),
        (totals.foreign, "left alone: not written by this command; --overwrite replaces them"),
        (totals.changed_meanwhile, "left out: the file changed meanwhile; run it again"),
        (
            totals.stale,
            "removed: made of other bytes than the file has, for other --codings or --types",
        ),
        (totals.failed, "failed"),
    ] {
        if count > 0 {
            lines.push(format!("  {} {what}", grouped(count)));
        }
    }
    if totals.written > 0 && !options.dry_run {
        lines.push("Serve them with --precompressed=on".to_owned());
    }
    lines.join("\n")
}
