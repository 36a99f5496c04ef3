//! Configuration files as plain data: settings, listeners, sites, routes, header fields and pages
//! for errors.
//!
//! [`ConfigFile::read`] reads a file and collects everything that is wrong with it, each with its
//! line. It holds no handlers: the crate `gustnado` makes routes of it.

mod cache;
mod effective;
mod error;
mod hosts;
mod include;
mod interpolate;
mod listeners;
mod methods;
mod parts;
mod read;
mod redirect;
mod rewrite;
mod route;
mod rules;
mod schema;
mod secrets;
mod settings;
mod site_tls;
mod specs;
mod syntax;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::HeaderRule;
use crate::file_settings::FileSettings;
use crate::headers::Headers;
use crate::layers::Settings;
use crate::text::counted;

pub use error::{Problem, SiteError};
pub(crate) use include::files as files_of;
pub use interpolate::Variables;
pub(crate) use read::read_text;
pub use redirect::Template;
pub use rewrite::Rewrite;
pub use route::PLAIN;
pub use schema::schema;
pub use specs::{ErrorPageSpec, RouteAction, RouteSpec, SiteSpec, SiteTls};
pub use value::ValueChecks;

/// The content of a configuration file, checked.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// The settings, a layer between environment and defaults.
    pub settings: FileSettings,
    /// Fields of every response.
    pub headers: Headers,
    /// Rules of header fields for every response.
    pub header_rules: Vec<HeaderRule>,
    /// The site for hosts that have none of their own. Its root is a setting.
    pub main: SiteSpec,
    /// Sites of other hosts.
    pub sites: Vec<SiteSpec>,
    /// The files that it consists of.
    pub files: ConfigFiles,
    /// Values of the environment that are not shown.
    secrets: secrets::HiddenValues,
}

impl ConfigFile {
    /// Reads a configuration file. Relative paths in it are relative to the folder that it is in.
    ///
    /// - `checks`: what is asked of other crates.
    ///
    /// # Errors
    /// [`SiteError`]: everything that is wrong with it, each with its line.
    pub fn read(path: &Path, checks: ValueChecks) -> Result<Self, SiteError> {
        let text = read::read_text(path, usize::MAX).map_err(|why| SiteError::whole(path, why))?;
        Self::parse(path, &text, checks)
    }

    /// Reads the text of a configuration file.
    ///
    /// - `path`: its path: messages begin with it, and relative paths are relative to its
    ///   folder.
    ///
    /// # Errors
    /// As [`ConfigFile::read`].
    pub fn parse(path: &Path, text: &str, checks: ValueChecks) -> Result<Self, SiteError> {
        read::read(path, text, checks, &|name| std::env::var_os(name))
    }

    /// Reads the text of a configuration file with these variables in place of the process's
    /// environment.
    ///
    /// # Errors
    /// As [`ConfigFile::read`].
    pub fn parse_with(
        path: &Path,
        text: &str,
        checks: ValueChecks,
        variables: Variables<'_>,
    ) -> Result<Self, SiteError> {
        read::read(path, text, checks, variables)
    }

    /// Returns a text without values of the environment that are not shown: `${NAME}` stands for
    /// each.
    pub fn shown(&self, text: &str) -> String {
        self.secrets.hidden(text)
    }

    /// Returns how much it holds, in a few words: `3 routes, 1 site`.
    pub fn summary(&self) -> String {
        let of_sites = self.sites.iter().map(|site| site.routes.len()).sum::<usize>();
        let routes = counted(self.main.routes.len() + of_sites, "route");
        let settings = counted(self.settings.settings.len(), "setting");
        format!("{settings}, {routes}, {}", counted(self.sites.len(), "site"))
    }

    /// Returns the settings of the file alone, over the defaults.
    pub fn over_defaults(&self) -> Settings {
        Settings::layered(&[], [], Some(&self.settings))
            .expect("each setting was checked when it was read")
    }

    /// Returns everything in effect as a configuration file, with the origin of each value: it can
    /// be read again, from any folder.
    ///
    /// - `settings`: the result of [`Settings::layered`] with this file, or with none.
    pub fn effective(file: Option<&Self>, settings: &Settings) -> String {
        effective::text(file, settings)
    }
}

/// The files that a configuration consists of.
#[derive(Debug, Clone, Default)]
pub struct ConfigFiles {
    /// Every file that was read: the file itself, and those that it includes.
    read: Vec<Arc<Path>>,
    /// What they include: folders, each with a pattern of files in it.
    patterns: Vec<(PathBuf, String)>,
}

impl ConfigFiles {
    /// Returns every file that belongs to it at present: those that were read, and those that have
    /// come since and that they would include.
    pub fn now(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.read.iter().map(|file| file.to_path_buf()).collect();
        for (folder, pattern) in &self.patterns {
            for file in include::files(folder, pattern).unwrap_or_default() {
                if !all.contains(&file) {
                    all.push(file);
                }
            }
        }
        all
    }

    /// Adds a file.
    pub fn add(&mut self, file: &Arc<Path>) {
        self.read.push(Arc::clone(file));
    }
}
