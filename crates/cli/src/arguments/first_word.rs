//! A first word that is no subcommand: mostly a folder, else a mistake with a message of its own.

use super::is_command_or_flag;
use crate::lab;
use crate::usage_error::UsageError;
use gustnado::config::nearest;
use std::ffi::OsString;
use std::path::Path;

/// Subcommands of every build; the others are the lab's.
pub(super) const COMMANDS: [&str; 15] = [
    "serve",
    "check",
    "reload",
    "init",
    "import",
    "compress",
    "acme",
    "passwd",
    "sign",
    "doctor",
    "schema",
    "tuning",
    "completions",
    "man",
    "help",
];
/// The message for `run`, which only the Python package has.
pub(super) const RUN: &str = "run is in the Python package: `pip install ./python` in a clone of \
    Gustnado, then `python -m gustnado run main:app`; to serve a folder, `gustnado serve DIR`";

/// Subcommands of other programs, and their counterparts.
const ABSENT: [(&str, &str); 4] = [
    ("completion", "it is `gustnado completions SHELL`"),
    ("version", "it is a flag: `gustnado --version`"),
    ("start", "it is `gustnado serve DIR`"),
    ("stop", "send it TERM, or Ctrl-C: `kill PID`"),
];

/// Returns why a command line cannot mean `gustnado serve …`, if it cannot.
///
/// - `words`: the command line without the program's name.
pub(super) fn refuse(words: &[OsString]) -> Option<UsageError> {
    let word = words.first()?.to_str()?;
    if word == "run" {
        return Some(UsageError::of_usage(RUN.to_owned()));
    }
    let topic = if word == "help" { words.get(1).and_then(|word| word.to_str()) } else { None };
    if let Some(error) = lab::usage_error_of(topic.unwrap_or(word)) {
        return Some(error);
    }
    if is_command_or_flag(word)
        || word.is_empty()
        || word.starts_with('-')
        || Path::new(word).exists()
    {
        return None;
    }
    let rest: Vec<&str> = words[1..].iter().filter_map(|word| word.to_str()).collect();
    if let Some((_, instead)) = ABSENT.iter().find(|(absent, _)| *absent == word) {
        return Some(UsageError::of_usage(format!("{word}: no such command: {instead}")));
    }
    if let Some(line) = not_a_folder(word) {
        return Some(UsageError::of_usage(line));
    }
    let near = nearest(word, COMMANDS.iter().chain(lab::NAMES).copied());
    if let Some(near) = near {
        let meant = [&["gustnado", near], &rest[..]].concat().join(" ");
        return Some(UsageError::of_usage(format!(
            "{word}: no such command and no such folder; did you mean {meant}?"
        )));
    }
    let has_another = rest.first().is_some_and(|next| !next.starts_with('-'));
    (has_another && !word.contains(['/', '.'])).then(|| {
        UsageError::of_usage(format!(
            "{word}: no such command and no such folder; `gustnado --help` lists them"
        ))
    })
}

/// Describes a word that is not a folder, with a suggestion.
pub(super) fn not_a_folder(word: &str) -> Option<String> {
    if Path::new(word).exists() {
        return None;
    }
    let is_port = |text: &str| text.parse::<u16>().is_ok() && !text.starts_with('+');
    if is_port(word) {
        return Some(format!("{word}: no such folder; to listen on that port: --port {word}"));
    }
    if let Some(url) = ["http://", "https://"].iter().find(|scheme| word.starts_with(**scheme)) {
        let what = word.trim_start_matches(url);
        return Some(format!(
            "{word}: a URL is no folder; to load a server: gustnado bench http://{what}"
        ));
    }
    let (before, behind) = word.rsplit_once(':')?;
    if is_port(behind) {
        let flag = if before.is_empty() { "--port " } else { "--listen " };
        let value = if before.is_empty() { behind } else { word };
        return Some(format!("{word}: no such folder; to listen there: {flag}{value}"));
    }
    let is_name = |text: &str| {
        let is_letter = |one: char| one.is_alphanumeric() || "._".contains(one);
        !text.is_empty() && text.chars().all(is_letter) && !text.starts_with(['.', '_'])
    };
    (is_name(before) && is_name(behind)).then(|| format!("{word}: an application in Python? {RUN}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        refuse(&words).map(|error| error.line)
    }

    #[test]
    fn folders_flags_and_commands_pass() {
        for words in [
            &[][..],
            &["src"],
            &["."],
            &["./none"],
            &["no-such-folder-here"],
            &["serve", "srve"],
            &["--port", "80"],
            &["help", "run"],
            &[""],
        ] {
            assert_eq!(said(words), None, "{words:?}");
        }
    }

    #[test]
    fn each_slip_has_its_own_line() {
        for (words, part) in [
            (&["run"][..], "`pip install ./python`"),
            (&["run", "--port", "8000", "main:app"], "python -m gustnado run main:app"),
            (&["srve", "./public"], "did you mean gustnado serve ./public?"),
            (&["srve"], "did you mean gustnado serve?"),
            (&["chekc", "site.toml"], "did you mean gustnado check site.toml?"),
            (&["completion", "bash"], "it is `gustnado completions SHELL`"),
            (&["version"], "gustnado --version"),
            (&["9000"], "--port 9000"),
            (&[":8012"], "--port 8012"),
            (&["127.0.0.1:8012"], "--listen 127.0.0.1:8012"),
            (&["main:app"], "python -m gustnado run main:app"),
            (&["deploy", "./public"], "deploy: no such command and no such folder"),
            (&["http://127.0.0.1:80/"], "gustnado bench http://127.0.0.1:80/"),
        ] {
            let line = said(words).unwrap_or_default();
            assert!(line.contains(part), "{words:?}: {line}");
        }
    }
}
