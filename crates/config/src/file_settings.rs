//! The settings of a configuration file, each with its line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

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
}

/// A setting of the file.
#[derive(Debug, Clone)]
pub struct FileSetting {
    /// Its declaration's name.
    pub name: &'static str,
    /// Its value; that of a list with commas.
    pub value: OsString,
    /// Its line, from 1.
    pub line: usize,
    /// For a list, each of its texts with its line.
    pub items: Vec<(String, usize)>,
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

    /// Returns the value of a setting, and its line.
    pub fn value(&self, name: &str) -> Option<(&OsStr, usize)> {
        self.get(name).map(|setting| (&*setting.value, setting.line))
    }
}
