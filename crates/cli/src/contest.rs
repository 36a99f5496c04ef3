//! `gustnado contest`: measures servers side by side. This module prints and sets the exit code;
//! the lab runs the contest.

pub(crate) mod arguments;
pub(crate) mod member;
mod progress;

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gustnado_lab::contest::file::{self, ContestSpec};
use gustnado_lab::contest::{self, Tools, compare, presets, reach, store, table};
use gustnado_lab::record::Record;
use gustnado_lab::report::{self, markdown};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::figures::counted;
use crate::output::{Console, page, page_paint};
use crate::usage_error::UsageError;
use crate::{doctor, exit};
use arguments::{ContestOptions, ContestSubcommand, MarkdownOptions};
use progress::ContestProgress;

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(options: ContestSubcommand, program: &Path) -> u8 {
    let output = Console::new(false);
    let done = match options {
        ContestSubcommand::Presets => Ok(page(&presets::list())),
        ContestSubcommand::Preset(name) => show_preset(&name),
        ContestSubcommand::Keys => Ok(page(&file::reference())),
        ContestSubcommand::Compare(old, new) => compare_records(&old, &new),
        ContestSubcommand::Report(path, markdown) => report_again(&path, &markdown),
        ContestSubcommand::Run(options) => run_contest(*options, program, output),
    };
    done.unwrap_or_else(|refusal| {
        refusal.line.lines().for_each(|line| output.error(line));
        refusal.code
    })
}

fn refused(code: u8) -> impl Fn(String) -> UsageError {
    move |line| UsageError { line, code }
}

fn show_preset(name: &str) -> Result<u8, UsageError> {
    let names = || {
        let all = presets::names().join(", ");
        format!("--preset: expected the name of a preset, found {name:?}; there are {all}")
    };
    let text = presets::text(name).ok_or_else(|| refused(exit::USAGE)(names()))?;
    Ok(page(text))
}

fn compare_records(old: &Path, new: &Path) -> Result<u8, UsageError> {
    let read = |path| store::read(path).map_err(|error| error.to_string());
    let both = read(old).and_then(|old| Ok((old, read(new)?)));
    let (old, new) = both.map_err(refused(exit::FAILED))?;
    Ok(page(&compare::text(&old, &new)))
}

fn report_again(path: &Path, markdown: &MarkdownOptions) -> Result<u8, UsageError> {
    let record = store::read(path).map_err(|error| refused(exit::FAILED)(error.to_string()))?;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    leave(&record, folder, markdown, Console::new(false))?;
    Ok(exit::CLEAN)
}

fn run_contest(options: ContestOptions, program: &Path, output: Console) -> Result<u8, UsageError> {
    let (is_check, goes_on) = (options.check, options.goes_on);
    let mut tools = Tools::of(program);
    if !options.generator.is_empty() {
        tools.generator.clone_from(&options.generator);
    }
    let (contest, markdown) = narrowed(options)?;
    let stop = Arc::new(AtomicBool::new(false));
    let signals = listen(&stop, output)
        .map_err(|error| refused(exit::FAILED)(format!("cannot wait for signals: {error}")))?;
    let minutes = contest::estimate(&contest).as_secs().div_ceil(60);
    output.say(&format!(
        "{}: {}, {}, about {}; Ctrl-C ends it and keeps what was measured",
        contest.title,
        counted(contest.contenders.len() as u64, "contender"),
        counted(contest.scenarios.len() as u64, "scenario"),
        counted(minutes, "minute"),
    ));
    let most = contest.scenarios.iter().map(|scenario| scenario.connections).max();
    if let Some(warning) = most.and_then(doctor::no_room) {
        output.warn(&warning);
    }
    let meter = ContestProgress::new(output);
    let result = contest::run(&contest, &tools, goes_on, &stop, &mut |event| meter.show(event));
    meter.clear();
    signals.close();
    let record = result.map_err(|error| refused(exit::FAILED)(error.to_string()))?;
    if is_check {
        page(&table::checks(&record));
    } else {
        leave(&record, &contest.output, &markdown, output)?;
    }
    Ok(verdict(&record, is_check, &stop))
}

fn verdict(record: &Record, is_check: bool, stop: &AtomicBool) -> u8 {
    if stop.load(Ordering::Relaxed) {
        return u8::try_from(exit::by_signal(SIGINT)).unwrap_or(exit::FAILED);
    }
    if record.cut.is_some() || (is_check && !table::is_well(record)) || !reach::is_reached(record) {
        return exit::FAILED;
    }
    exit::CLEAN
}

/// Reads a contest's file, and narrows it as the options say. Returns where its table goes, too.
fn narrowed(options: ContestOptions) -> Result<(ContestSpec, MarkdownOptions), UsageError> {
    let usage = refused(exit::USAGE);
    let contest = file::read(&options.file);
    let mut contest = contest.map_err(|error| refused(exit::CONFIG)(error.to_string()))?;
    if !options.only.is_empty() {
        contest = contest.with_contenders(&options.only).map_err(&usage)?;
    }
    if !options.scenarios.is_empty() {
        contest = contest.with_scenarios(&options.scenarios).map_err(&usage)?;
    }
    if let Some(rounds) = options.rounds {
        contest = contest.with_rounds(rounds);
    }
    if options.quick {
        contest = contest.quick();
    }
    if let Some(output) = options.output {
        contest.output = output;
    }
    if options.check {
        contest = contest.checked();
        // A check must not overwrite a measurement.
        contest.output = contest.output.join("check");
    }
    Ok((contest, options.markdown))
}

/// Makes every signal stop the contest, which stops all its processes before this one ends.
fn listen(stop: &Arc<AtomicBool>, output: Console) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let stop = Arc::clone(stop);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            output.say("ending what was started; what was measured is kept");
            stop.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(handle)
}

/// Prints the table of a record, writes its report, and publishes it where that was asked for.
fn leave(
    record: &Record,
    folder: &Path,
    markdown: &MarkdownOptions,
    output: Console,
) -> Result<(), UsageError> {
    match &markdown.page {
        Some(path) if path == Path::new("-") => {
            page(&markdown::section(record));
        }
        _ => show(record),
    }
    write_report(record, folder, output)?;
    let Some(path) = markdown.page.as_deref().filter(|path| *path != Path::new("-")) else {
        return Ok(());
    };
    markdown::publish(record, path, markdown.publish).map_err(|error| {
        let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
        refused(exit::FAILED)(format!("{error}{cause}; the raw data is kept"))
    })?;
    output.say(&format!("published: {}", path.display()));
    Ok(())
}

fn show(record: &Record) {
    let paint = page_paint();
    page(&table::text(record, &|text| paint.bold(text), columns()));
    if !record.verdicts.is_empty() {
        page(&format!("\n{}\n{}", paint.bold("Figures to reach"), reach::text(record)));
    }
}

/// Maximum width of a line: from the shell, else what every terminal can show.
fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.filter(|columns| *columns > 0).unwrap_or(80)
}

fn write_report(record: &Record, folder: &Path, output: Console) -> Result<(), UsageError> {
    let kept = folder.join(contest::RECORD);
    output.say(&format!("raw data: {}", kept.display()));
    let written = report::write(record, folder)
        .map_err(|error| refused(exit::FAILED)(format!("{error}; the raw data is kept")))?;
    if let Some(index) = written.first() {
        output.say(&format!("report: {}", index.display()));
    }
    Ok(())
}
