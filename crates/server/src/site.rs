//! Configuration files: settings, listeners, sites, routes, header fields and pages for errors.
//!
//! [`SiteFile::read`] reads a file and collects everything that is wrong with it, each with its
//! line. [`SiteFile::server`] makes a [`Server`] of it. `docs/configuration.md` explains the form
//! by examples, and [`schema()`] describes it for editors.

mod routes;

use std::ffi::OsStr;
use std::path::Path;

use gustnado_config::FileSettings;
use gustnado_config::config_file::{ConfigFile, SiteSpec, ValueChecks};

use crate::config::{Config, RouteSettings, Settings};
use crate::{Server, StartError};
use gustnado_access::Gate;
use gustnado_files::{FileOptions, Files, FilesError, check_mime_types};

pub use gustnado_config::FilePlace;
pub use gustnado_config::config_file::{ConfigFiles, Problem, SiteError, schema};
pub use gustnado_config::nginx::{
    LeftOut, NginxImport, import as import_nginx_text, import_file as import_nginx,
};

/// A configuration file, checked.
#[derive(Debug, Clone)]
pub struct SiteFile {
    file: ConfigFile,
}

impl SiteFile {
    /// Reads a configuration file. Relative paths in it are relative to the folder that it is in.
    ///
    /// # Errors
    /// [`SiteError`]: everything that is wrong with it, each with its line.
    pub fn read(path: &Path) -> Result<Self, SiteError> {
        Ok(Self { file: ConfigFile::read(path, CHECKS)? })
    }

    /// Reads the text of a configuration file.
    ///
    /// - `path`: its path: messages begin with it, and relative paths are relative to its
    ///   folder.
    ///
    /// # Errors
    /// As [`SiteFile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, SiteError> {
        Ok(Self { file: ConfigFile::parse(path, text, CHECKS)? })
    }

    /// Returns the path of the file, as it was given.
    pub fn path(&self) -> &Path {
        &self.file.settings.path
    }

    /// Returns the value of a setting in the file, and its place.
    pub fn setting(&self, name: &str) -> Option<(&OsStr, &FilePlace)> {
        self.file.settings.value(name)
    }

    /// Returns its settings, as [`Settings::layered`] takes them.
    pub fn file_settings(&self) -> &FileSettings {
        &self.file.settings
    }

    /// Returns the place that configures the endpoint of a failed start.
    pub fn place_of(&self, error: &StartError) -> Option<FilePlace> {
        let of = |name: &str| self.file.settings.get(name);
        let Some(listen) = of("listen") else {
            let is_there = error.endpoint().is_some() || matches!(error, StartError::Host { .. });
            let names = ["uds", "port", "host"].into_iter().filter(|_| is_there);
            return names.filter_map(of).map(|setting| setting.place.clone()).next();
        };
        let is_it = |text: &str| match (error, error.endpoint()) {
            (_, Some(failed)) => crate::server::endpoint_of(text).is_ok_and(|one| one == *failed),
            (StartError::Host { host, .. }, _) => text.contains(host.as_str()),
            _ => false,
        };
        let (_, line) = listen.items.iter().find(|(text, _)| is_it(text))?;
        Some(FilePlace { line: *line, ..listen.place.clone() })
    }

    /// Returns the place of the site that has a host.
    ///
    /// - `host`: as the file has it.
    pub fn place_of_site(&self, host: &str) -> Option<&FilePlace> {
        self.spec_of(Some(host)).map(|site| &site.place)
    }

    /// Returns the place of a route.
    ///
    /// - `host`: a host of its site, as the file has it; `None`: it is outside of all sites.
    /// - `path`: as the file has it; that of a folder is without a slash at its end.
    pub fn place_of_route(&self, host: Option<&str>, path: &str) -> Option<&FilePlace> {
        let bare = |path: &str| path.trim_end_matches('/').to_owned();
        let routes = &self.spec_of(host)?.routes;
        let exact = routes.iter().find(|route| route.path == path);
        let found = exact.or_else(|| routes.iter().find(|route| bare(&route.path) == bare(path)));
        found.map(|route| &route.place)
    }

    fn spec_of(&self, host: Option<&str>) -> Option<&SiteSpec> {
        let Some(host) = host else { return Some(&self.file.main) };
        let is_it = |site: &&SiteSpec| site.hosts.iter().any(|known| known == host);
        self.file.sites.iter().find(is_it)
    }

    /// Returns the files that it consists of: itself, and those that it includes.
    pub fn files(&self) -> &ConfigFiles {
        &self.file.files
    }

    /// Returns a text without values of the environment that are not shown: `${NAME}` stands for
    /// each.
    pub fn shown(&self, text: &str) -> String {
        self.file.shown(text)
    }

    /// Returns a summary of its content: `3 routes, 1 site`.
    pub fn summary(&self) -> String {
        self.file.summary()
    }

    /// Returns the hosts of each site, and the file of its certificate if it has one of its own.
    pub fn certificates(&self) -> impl Iterator<Item = (&[String], Option<&Path>)> {
        fn own(site: &SiteSpec) -> Option<&Path> {
            site.tls.as_ref().map(|tls| tls.cert.as_path())
        }
        self.file.sites.iter().map(|site| (&*site.hosts, own(site)))
    }

    /// Returns the settings of the file alone, over the defaults.
    pub fn settings(&self) -> Settings {
        self.file.over_defaults()
    }

    /// Returns the server that the file describes.
    pub fn server(&self) -> Server {
        self.server_with(self.settings().config)
    }

    /// Returns that server with other settings, such as those of the file below flags and
    /// environment: see [`Settings::layered`].
    pub fn server_with(&self, config: Config) -> Server {
        routes::server(&self.file, config)
    }

    /// Returns everything in effect as a configuration file, with the origin of each value: it can
    /// be read again, from any folder.
    ///
    /// - `settings`: the result of [`Settings::layered`] with this file, or with none.
    pub fn effective(file: Option<&Self>, settings: &Settings) -> String {
        ConfigFile::effective(file.map(|file| &file.file), settings)
    }
}

impl Server {
    /// Returns the server of a configuration file: its routes, settings and header fields.
    ///
    /// # Errors
    /// [`SiteError`]: every mistake in the file, with its line.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SiteError> {
        Ok(SiteFile::read(path.as_ref())?.server())
    }
}

/// What is asked of the crates that use the values.
const CHECKS: ValueChecks = ValueChecks { folder: check_folder, settings: check_settings };

/// Returns what is wrong with the settings of a table, and with the files that they name.
fn check_settings(settings: &RouteSettings) -> Vec<(&'static str, String)> {
    let of_access = Gate::mistakes(&settings.access).into_iter();
    let of_access = of_access.map(|error| (error.setting().unwrap_or_default(), error.to_string()));
    let of_types = check_mime_types(settings).err();
    of_access.chain(of_types.map(|error| ("mime-types", error.to_string()))).collect()
}

/// Checks whether a folder can be served; if not, returns why.
fn check_folder(path: &Path) -> Result<(), String> {
    Files::open(path, FileOptions::default()).map(drop).map_err(|error| match &error {
        FilesError::Failed { source, .. } => format!("{error}: {source}; name another one"),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests;
