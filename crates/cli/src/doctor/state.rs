//! The file in which `--apply` saves old values for `--restore`.

use super::shell::Shell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;

/// Values from before the first change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedState {
    format: u32,
    /// Kernel settings with their original values.
    pub(super) settings: BTreeMap<String, String>,
    /// The shell with its original limits, if they were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shell: Option<Shell>,
}

impl SavedState {
    /// Reads the file; without one, the state is empty.
    ///
    /// # Errors
    /// A line that names the file and what was expected.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let fail = |why: String| {
            let path = path.display();
            format!("{path}: expected the state that `gustnado doctor --apply` keeps; {why}")
        };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { format: FORMAT, ..Self::default() });
            }
            text => text.map_err(|error| fail(error.to_string()))?,
        };
        let state: Self = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if state.format != FORMAT {
            return Err(fail(format!("format {} is not known", state.format)));
        }
        Ok(state)
    }

    /// Returns whether there is nothing to restore.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.shell.is_none()
    }

    /// Writes the file atomically; an empty state has no file.
    ///
    /// # Errors
    /// A line that names the file.
    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let line = |error: io::Error| {
            format!("{}: old values cannot be kept there: {error}", path.display())
        };
        if self.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(line(error)),
                _ => Ok(()),
            };
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(line)?;
        }
        let text = serde_json::to_string_pretty(self).expect("its keys are text");
        let temporary = path.with_extension("json.new");
        fs::write(&temporary, text + "\n").map_err(line)?;
        fs::rename(&temporary, path).map_err(line)
    }
}

/// The user's state folder: `$XDG_STATE_HOME`, else `~/.local/state`.
///
/// - `variable`: looks up an environment variable.
pub(super) fn usual_path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| value.starts_with('/'));
    let folder = match (set("XDG_STATE_HOME"), set("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(&home).join(".local/state"),
        (None, None) => return None,
    };
    Some(folder.join("gustnado/doctor.json"))
}
