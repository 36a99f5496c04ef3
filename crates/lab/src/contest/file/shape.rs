//! The raw tables of a file. Every key is optional here; `settle` reports those that are missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::duration::Length;
use super::error::{FileError, FileProblem};
use super::keys::without;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawContest {
    pub(super) title: Option<String>,
    pub(super) about: String,
    pub(super) reference: Option<String>,
    pub(super) rounds: Option<u32>,
    pub(super) output: Option<PathBuf>,
    pub(super) fresh: Option<bool>,
    pub(super) time_limit: Option<Length>,
    pub(super) server_cpus: Option<Vec<u32>>,
    pub(super) generator_cpus: Option<Vec<u32>>,
    pub(super) page: RawPage,
    pub(super) contender: Vec<RawContender>,
    pub(super) scenario: Vec<RawScenario>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawPage {
    pub(super) bytes: Option<u64>,
    pub(super) file: Option<PathBuf>,
    pub(super) path: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawContender {
    pub(super) preset: Option<String>,
    pub(super) name: Option<String>,
    pub(super) about: Option<String>,
    pub(super) tuning: Option<String>,
    pub(super) needs: Option<Vec<String>>,
    pub(super) installed_if: Option<Vec<Vec<String>>>,
    pub(super) install: Option<String>,
    pub(super) command: Option<Vec<String>>,
    pub(super) version: Option<Vec<String>>,
    pub(super) set_up: Option<Vec<Vec<String>>>,
    pub(super) files: Option<BTreeMap<String, String>>,
    pub(super) environment: Option<BTreeMap<String, String>>,
    pub(super) url: Option<String>,
    pub(super) unix_socket: Option<String>,
    pub(super) ready_timeout: Option<Length>,
    pub(super) stop_timeout: Option<Length>,
    pub(super) allow_unequal: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) path: Option<String>,
    pub(super) generator: Option<String>,
    pub(super) model: Option<String>,
    pub(super) connections: Option<Connections>,
    pub(super) probes: Option<u64>,
    pub(super) rate: Option<f64>,
    pub(super) requests: Option<u64>,
    pub(super) duration: Option<Length>,
    pub(super) warm_up: Option<Length>,
    pub(super) keep_alive: Option<bool>,
    pub(super) pipeline: Option<u32>,
    pub(super) threads: Option<u32>,
    pub(super) rounds: Option<u32>,
    pub(super) accept_status: Option<String>,
    pub(super) arguments: Vec<String>,
}

/// One number, or a sweep of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Connections {
    One(u64),
    Sweep(Vec<u64>),
}

/// Reads a text whose keys were checked. A value of the wrong type is reported and left out, and
/// the rest is read.
///
/// - `problems`: those found already; all of them are returned.
///
/// # Errors
/// All mistakes, if the rest cannot be read.
pub(super) fn read_whole<T: DeserializeOwned>(
    path: &Path,
    mut text: String,
    mut problems: Vec<FileProblem>,
) -> Result<(T, Vec<FileProblem>), FileError> {
    loop {
        let error = match toml::from_str(&text) {
            Ok(shape) => return Ok((shape, problems)),
            Err(error) => error,
        };
        problems.push(problem(&text, &error));
        let span = error.span().map(|span| line_start(&text, span.start)..span.end);
        let left = span.filter(|span| !span.is_empty()).and_then(|span| without(&text, span));
        match left {
            Some(left) if left != text => text = left,
            _ => return Err(FileError::new(path, problems)),
        }
    }
}

/// The position of a value's key, on the same line.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Describes a wrong value.
fn problem(text: &str, error: &toml::de::Error) -> FileProblem {
    let at = error.span().map_or(0, |span| span.start);
    let line = text[..at].matches('\n').count() + 1;
    let said = error.message().trim().to_owned();
    let said = if said.contains("untagged enum Connections") {
        "connections: expected a number such as 1000, or a list such as [100, 1000]".to_owned()
    } else {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        let key = before.split('=').next().unwrap_or_default().trim();
        format!("{key}: {said}")
    };
    FileProblem { line, text: said }
}
