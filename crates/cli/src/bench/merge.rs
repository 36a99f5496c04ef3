//! `gustnado bench merge`: combines several runs into one.

use super::results::print;
use crate::exit;
use crate::output::Console;
use gustnado_lab::output::merge::{Merged, RunFile};
use std::path::{Path, PathBuf};

/// Merges the files and prints the result.
pub(super) fn run(files: &[PathBuf], json: bool, output: Console) -> u8 {
    let merged = files.iter().map(|path| part(path)).collect::<Result<Vec<_>, _>>();
    let merged = merged
        .and_then(|parts| Merged::of(&parts).map_err(|error| format!("merge: {error}")))
        .map(|merged| if json { merged.json() } else { merged.table() })
        .and_then(|text| print(&text));
    match merged {
        Ok(()) => exit::CLEAN,
        Err(line) => {
            output.error(&line);
            exit::FAILED
        }
    }
}

fn part(path: &Path) -> Result<(String, RunFile), String> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let part = RunFile::read(&String::from_utf8_lossy(&text));
    part.map(|part| (name.clone(), part)).map_err(|error| format!("{name}: {error}"))
}
