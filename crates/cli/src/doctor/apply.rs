//! `gustnado doctor --apply` and `--restore`: shows, saves, changes and restores settings.

use super::options::DoctorOptions;
use super::settings::KernelSettings;
use super::shell::{FILES_GOAL, Shell};
use super::state::{SavedState, usual_path};
use super::wanted::{self, SettingChange};
use crate::exit;
use crate::figures::counted;
use crate::output::{Console, page};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

/// Shows the changes that contests need, and applies them.
pub(super) fn apply(options: &DoctorOptions, output: Console) -> u8 {
    match changed(options, output) {
        Ok(code) => code,
        Err(line) => fail(&line, output),
    }
}

/// Restores the old values.
pub(super) fn restore(options: &DoctorOptions, output: Console) -> u8 {
    let put_back = || {
        let path = state_path(options)?;
        let mut state = SavedState::read(&path)?;
        if state.is_empty() {
            let path = path.display();
            return Err(format!("{path}: not there, so that there is nothing to put back"));
        }
        let failed = put_back(options, &mut state);
        state.write(&path)?;
        Ok(if failed == 0 { None } else { Some((failed, path)) })
    };
    match put_back() {
        Ok(None) => exit::CLEAN,
        Ok(Some((failed, path))) => {
            let failed = counted(failed, "setting");
            let keeps = format!("{} keeps them for another try", path.display());
            fail(&format!("{failed} could not be put back; {keeps}{}", as_root(options)), output)
        }
        Err(line) => fail(&line, output),
    }
}

fn fail(line: &str, output: Console) -> u8 {
    output.error(&format!("doctor: {line}"));
    exit::FAILED
}

fn changed(options: &DoctorOptions, output: Console) -> Result<u8, String> {
    let settings = KernelSettings(options.settings.clone());
    let changes = wanted::changes(&settings);
    let shell = Shell::find().filter(|shell| options.is_machine() && shell.is_short());
    if changes.is_empty() && shell.is_none() {
        return Ok(page("Nothing needs to be changed for contests on this machine.\n"));
    }
    page(&plan(&changes, shell.as_ref()));
    if options.is_machine() && !rustix::process::geteuid().is_root() {
        return Err("it takes root to change them: sudo gustnado doctor --apply".to_owned());
    }
    if !agreed(options) {
        output.say("nothing was changed; `gustnado doctor --apply --yes` changes it");
        return Ok(exit::CLEAN);
    }
    let path = state_path(options)?;
    let before = SavedState::read(&path)?;
    // The old values are on disk before the first new one is set. An earlier state is kept.
    let mut kept = before.clone();
    for change in &changes {
        kept.settings.entry(change.key.to_owned()).or_insert_with(|| change.old.clone());
    }
    kept.shell = before.shell.clone().or_else(|| shell.clone());
    kept.write(&path)?;
    let failed = set(&settings, &changes, shell.as_ref(), (&before, &mut kept));
    kept.write(&path)?;
    if !kept.is_empty() {
        let path = path.display();
        let restore = match &options.state {
            Some(state) => format!("gustnado doctor --restore --state {}", state.display()),
            None => "gustnado doctor --restore".to_owned(),
        };
        page(&format!("Until the next start; `{restore}` puts back what {path} keeps.\n"));
    }
    match failed {
        0 => Ok(exit::CLEAN),
        failed => Err(format!("{} could not be changed", counted(failed, "setting"))),
    }
}

/// Applies changes and prints their results. A failed one is removed from the state, unless it was
/// there `before`.
fn set(
    settings: &KernelSettings,
    changes: &[SettingChange],
    shell: Option<&Shell>,
    (before, kept): (&SavedState, &mut SavedState),
) -> u64 {
    let mut failed = 0;
    for change in changes {
        let done = settings.write(change.key, &change.new);
        if !told("set", &format!("{} to {}", change.key, change.new), &done) {
            failed += 1;
            if !before.settings.contains_key(change.key) {
                kept.settings.remove(change.key);
            }
        }
    }
    if let Some(shell) = shell {
        let done = shell.raise();
        if !told("set", &format!("open files of the calling shell to {FILES_GOAL}"), &done) {
            failed += 1;
            kept.shell.clone_from(&before.shell);
        }
    }
    failed
}

/// Restores everything; what failed stays in the state.
fn put_back(options: &DoctorOptions, state: &mut SavedState) -> u64 {
    let settings = KernelSettings(options.settings.clone());
    state.settings.retain(|key, old| {
        let done = settings.write(key, old);
        !told("put back", &format!("{key} to {old}"), &done)
    });
    if let Some(shell) = state.shell.take_if(|_| options.is_machine()) {
        let done = shell.restore();
        let what = format!("open files of the calling shell to {}, {}", shell.soft, shell.hard);
        if !told("put back", &what, &done) {
            state.shell = Some(shell);
        }
    }
    state.settings.len() as u64 + u64::from(state.shell.is_some())
}

/// Prints the result of one change; returns whether it succeeded.
fn told(verb: &str, what: &str, done: &io::Result<()>) -> bool {
    match done {
        Ok(()) => page(&format!("{verb}  {what}\n")),
        Err(error) => page(&format!("failed  {what}: {error}\n")),
    };
    done.is_ok()
}

fn plan(changes: &[SettingChange], shell: Option<&Shell>) -> String {
    let mut rows: Vec<[String; 3]> = changes
        .iter()
        .map(|change| {
            let values = format!("{} -> {}", change.old, change.new);
            [change.key.to_owned(), values, change.why.to_owned()]
        })
        .collect();
    rows.extend(shell.map(|shell| {
        let values = format!("{} -> {FILES_GOAL}", shell.soft);
        let why = "what is started from the calling shell inherits it";
        ["open files (ulimit -n)".to_owned(), values, why.to_owned()]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let (first, second) = (width(0), width(1));
    let mut text = "For contests of 10,000 connections and more on this machine:\n\n".to_owned();
    for [key, values, why] in &rows {
        writeln!(text, "  {key:first$}  {values:second$}  {why}").expect("memory takes all");
    }
    text.push('\n');
    text
}

/// Returns whether to go on: by `--yes`, or by the reply at a terminal.
fn agreed(options: &DoctorOptions) -> bool {
    if options.yes || !stdin().is_terminal() {
        return options.yes;
    }
    let _ = write!(stderr(), "Change them? [y/N] ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

fn state_path(options: &DoctorOptions) -> Result<PathBuf, String> {
    let usual = || usual_path(|name| std::env::var(name).ok());
    let none =
        || "neither XDG_STATE_HOME nor HOME says where to keep old values; give --state FILE";
    options.state.clone().or_else(usual).ok_or_else(|| none().to_owned())
}

fn as_root(options: &DoctorOptions) -> String {
    if !options.is_machine() || rustix::process::geteuid().is_root() {
        return String::new();
    }
    let state = options.state.as_deref().map(Path::display);
    let state = state.map(|path| format!(" --state {path}")).unwrap_or_default();
    format!("; it takes root: sudo gustnado doctor --restore{state}")
}
