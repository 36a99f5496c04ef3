//! Configuration files: settings, listeners, sites, routes, header fields and pages for errors.
//!
//! [`SiteFile::read`] reads a file and says everything that is wrong with it, each with its line.
//! What it holds becomes a [`Server`] with [`SiteFile::server`]. `docs/configuration.md` explains
//! the form by examples, and [`schema()`] describes it for editors.

mod effective;
mod error;
mod hosts;
mod parts;
mod read;
mod redirect;
mod route;
mod routes;
mod schema;
mod syntax;
mod value;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gustnado_http::method::Method;
use gustnado_http::status::Status;

use crate::config::{Config, Settings};
use crate::fields::Fields;
use crate::files::StaticPage;
use crate::{Server, StartError};
use redirect::Template;

pub use error::{Problem, SiteError};
pub use schema::schema;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What a configuration file says, checked.
#[derive(Debug, Clone)]
pub struct SiteFile {
    path: PathBuf,
    settings: Vec<Setting>,
    /// Fields of every answer.
    headers: Fields,
    /// What is served for hosts that have no site of their own. Its root is a setting.
    main: Site,
    sites: Vec<Site>,
}

/// A setting of the file.
#[derive(Debug, Clone)]
struct Setting {
    name: &'static str,
    value: OsString,
    line: usize,
    /// For a list, the line of each of its texts.
    items: Vec<(String, usize)>,
}

/// What is served for some hosts.
#[derive(Debug, Clone, Default)]
struct Site {
    line: usize,
    hosts: Vec<String>,
    root: Option<PathBuf>,
    headers: Fields,
    routes: Vec<RouteSaid>,
    pages: Vec<PageSaid>,
}

/// What answers a path.
#[derive(Debug, Clone)]
struct RouteSaid {
    line: usize,
    path: String,
    does: Does,
    /// None is all of them.
    methods: Vec<Method>,
    merge_slashes: bool,
    /// `None`: as the setting has it.
    listing: Option<bool>,
    headers: Fields,
}

#[derive(Debug, Clone)]
enum Does {
    Folder(PathBuf),
    Redirect { to: Template, status: Status },
    Answer { text: String, status: Status, content_type: String },
}

#[derive(Debug, Clone)]
struct PageSaid {
    line: usize,
    file: PathBuf,
    page: StaticPage,
}

impl SiteFile {
    /// Reads a configuration file. Relative paths in it are relative to the folder that it is in.
    ///
    /// # Errors
    /// [`SiteError`]: everything that is wrong with it, each with its line.
    pub fn read(path: &Path) -> Result<Self, SiteError> {
        let failed = |error| SiteError::unreadable(path, &error);
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        let mut file = file.take(FILE_BYTES_MAX + 1);
        file.read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(SiteError::too_large(path, FILE_BYTES_MAX));
        }
        Self::parse(path, &text)
    }

    /// Reads the text of a configuration file.
    ///
    /// - `path`: where it stands: messages begin with it, and relative paths are relative to its
    ///   folder.
    ///
    /// # Errors
    /// As [`SiteFile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, SiteError> {
        read::read(path, text)
    }

    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says about a setting, and in which line.
    pub fn setting(&self, name: &str) -> Option<(&OsStr, usize)> {
        let found = self.settings.iter().find(|setting| setting.name == name)?;
        Some((&found.value, found.line))
    }

    /// The line that has a server listen where that has failed.
    pub fn line_of(&self, error: &StartError) -> Option<usize> {
        let of = |name: &str| self.settings.iter().find(|setting| setting.name == name);
        let Some(listen) = of("listen") else {
            let is_there = error.endpoint().is_some() || matches!(error, StartError::Host { .. });
            let names = ["uds", "port", "host"].into_iter().filter(|_| is_there);
            return names.filter_map(of).map(|setting| setting.line).next();
        };
        let is_it = |text: &str| match (error, error.endpoint()) {
            (_, Some(failed)) => crate::server::endpoint(text).is_ok_and(|one| one == *failed),
            (StartError::Host { host, .. }, _) => text.contains(host.as_str()),
            _ => false,
        };
        listen.items.iter().find(|(text, _)| is_it(text)).map(|(_, line)| *line)
    }

    /// How much it says, in a few words: `3 routes, 1 site`.
    pub fn summary(&self) -> String {
        let counted = |count: usize, noun: &str| {
            format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
        };
        let of_sites = self.sites.iter().map(|site| site.routes.len()).sum::<usize>();
        let routes = counted(self.main.routes.len() + of_sites, "route");
        let settings = counted(self.settings.len(), "setting");
        format!("{settings}, {routes}, {}", counted(self.sites.len(), "site"))
    }

    /// The settings of the file alone, over the defaults.
    pub fn settings(&self) -> Settings {
        Settings::layered(&[], [], Some(self)).expect("each setting was checked when it was read")
    }

    /// The server that the file describes.
    pub fn server(&self) -> Server {
        self.server_with(self.settings().config)
    }

    /// The same with other settings: those of the file below flags and environment, see
    /// [`Settings::layered`].
    pub fn server_with(&self, config: Config) -> Server {
        routes::server(self, config)
    }

    /// Everything in effect as a configuration file, with the origin of each value: it can be read
    /// again, from any folder.
    ///
    /// - `settings`: as [`Settings::layered`] has made them of this file, or of none.
    pub fn effective(file: Option<&Self>, settings: &Settings) -> String {
        effective::text(file, settings)
    }
}

#[cfg(test)]
mod tests;
