//! The settings of a configuration file, each with its line.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::deploys::CacheRule;
use super::route_settings::RouteSettings;
use super::table::TUNABLES;
use super::tunable::Tunable;

/// The settings of a configuration file, as text.
#[derive(Debug, Clone)]
pub struct FileSettings {
    /// The file, as it was named.
    pub path: PathBuf,
    /// All of them, in the order of the table of settings.
    pub settings: Vec<FileSetting>,
    /// Rules for the `Cache-Control` of files.
    pub cache: Vec<CacheRule>,
}

/// A setting of the file.
#[derive(Debug, Clone)]
pub struct FileSetting {
    /// Its declaration's name.
    pub name: &'static str,
    /// Its value; that of a list with commas.
    pub value: OsString,
    /// Its line, and the file that has it.
    pub place: FilePlace,
    /// For a list, each of its texts with its line.
    pub items: Vec<(String, usize)>,
    /// Variables of the environment whose values are in it.
    pub variables: Vec<String>,
}

impl FileSetting {
    /// Returns its declaration.
    pub(crate) fn tunable(&self) -> &'static Tunable {
        TUNABLES.iter().find(|tunable| tunable.name == self.name).expect("it was read by its name")
    }

    /// Sets it for a site or a route.
    #[doc(hidden)]
    pub fn tune(&self, settings: &mut RouteSettings) {
        settings.set(self.tunable(), &self.value).expect("it was checked when it was read");
    }
}

impl FileSettings {
    /// Returns the setting of that name, if the file has it.
    pub fn get(&self, name: &str) -> Option<&FileSetting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// Returns the value of a setting, and its place.
    pub fn value(&self, name: &str) -> Option<(&OsStr, &FilePlace)> {
        self.get(name).map(|setting| (&*setting.value, &setting.place))
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// The line, from 1.
    pub line: usize,
}

impl Default for FilePlace {
    fn default() -> Self {
        Self { file: Path::new("").into(), line: 0 }
    }
}

impl FilePlace {
    /// Returns the place as a message about a line of `file` names it: `line 3`, or with the name
    /// of the file if that is another one.
    pub(crate) fn seen_from(&self, file: &Path) -> String {
        if *self.file == *file { format!("line {}", self.line) } else { self.to_string() }
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}
