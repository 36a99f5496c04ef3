//! Methods for the settings of folders whose methods take another type than their field.

use std::path::PathBuf;

use super::Server;
use super::settings::owned;
use crate::config::Config;

/// Settings that all folders begin with.
impl Server {
    /// Sets [`index`](crate::config::RouteSettings::index): the names of the file that is served
    /// for a folder.
    pub fn index(self, names: &[&str]) -> Self {
        self.tune(|config: &mut Config| config.routes.index = owned(names))
    }

    /// Sets [`try_files`](crate::config::RouteSettings::try_files): where a request's file is
    /// looked for, such as `$uri`, `$uri.html` and `/app.html`.
    pub fn try_files(self, templates: &[&str]) -> Self {
        self.tune(|config: &mut Config| config.routes.try_files = owned(templates))
    }

    /// Sets [`mime`](crate::config::RouteSettings::mime): types of files by extension, such as
    /// `wasm=application/wasm`.
    pub fn mime(self, types: &[&str]) -> Self {
        self.tune(|config: &mut Config| config.routes.mime = owned(types))
    }

    /// Sets [`mime_types`](crate::config::RouteSettings::mime_types): a file with types by
    /// extension.
    pub fn mime_types(self, file: impl Into<PathBuf>) -> Self {
        self.tune(|config: &mut Config| config.routes.mime_types = Some(file.into()))
    }

    /// Sets [`charset`](crate::config::RouteSettings::charset): the charset that text files are
    /// declared with.
    pub fn charset(self, name: &str) -> Self {
        self.tune(|config: &mut Config| name.clone_into(&mut config.routes.charset))
    }
}
