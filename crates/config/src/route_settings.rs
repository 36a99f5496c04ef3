//! Settings that a site and a route may have of their own, in place of the server's.
//!
//! Flags, variables and the top of a file set the values that all routes begin with
//! ([`Config::routes`]). A `[[site]]` changes them for its routes, and a `[[route]]` for itself.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Config;
use super::access::{AccessSettings, HeaderRule, RouteLimits};
use super::compression::{Compress, Dictionaries, Precompressed};
use super::deploys::{CacheControl, CacheRule};
use super::fields::{choice, switch};
use super::folder_settings::TrailingSlash;
use super::listing::{Archives, Listing};
use super::tunable::{InvalidValue, SettingGroup, Tunable};

settings! { $
    /// Settings that a site and a route may have of their own, in place of the server's.
    #[derive(Clone, Debug, PartialEq, Eq)]
    RouteSettings, each_setting_of_route;
    own {
        /// Names of the file that is served for a folder; the first one that is there counts.
        index: Vec<String>,
        /// Where a request's file is looked for, in order: [`TryFile`](super::TryFile) as text.
        /// Empty is the path itself, as a file or as a folder.
        try_files: Vec<String>,
        /// Types of files by extension, such as `wasm=application/wasm`.
        mime: Vec<String>,
        /// A file with types by extension, as Apache and nginx read it.
        mime_types: Option<PathBuf>,
        /// The charset that text files are declared with; empty declares none.
        charset: String,
        /// Media types that are compressed, such as `text/*`; empty is the built-in list.
        compress_types: Vec<String>,
        /// Names that are never served, such as `*.php`, or paths of the folder: `/admin/*`.
        forbidden: Vec<String>,
        /// Rules for the `Cache-Control` of files; the first that matches counts.
        cache: Vec<CacheRule>,
        /// What routes ask of their clients, and what they tell browsers.
        access: AccessSettings = AccessSettings::blank(),
        /// Limits in place of the server's.
        limits: RouteLimits,
        /// Rules of header fields, in their order.
        header_rules: Vec<HeaderRule>,
    }
    usual {
        /// Whether names that begin with a dot are served.
        hidden: bool,
        /// Listing of folders that have no index.
        listing: Listing = Listing::Auto,
        /// Archives of listed folders that clients may ask for.
        archives: Archives = Archives::Off,
        /// Bytes that all files of an archive may have together; 0 is no limit.
        archive_bytes_max: u64,
        /// The largest file whose entity tag is made of its bytes; 0 is none.
        hash_bytes_max: u64,
        /// The largest file that is kept in memory, in bytes; 0 is none.
        small_file_bytes_max: u64,
        /// Whether the README of a folder is shown below its listing.
        listing_readme: bool,
        /// Whether files may be sent to folders, by PUT and by forms.
        upload: bool,
        /// Whether a file that is sent may replace one.
        upload_overwrite: bool,
        /// Largest file that may be sent, in bytes.
        upload_bytes_max: u64,
        /// Bytes that all files of a folder may have together; 0 is no limit.
        upload_quota: u64,
        /// Whether `about.html` is served at `/about`, and `/about.html` redirected to it.
        clean_urls: bool,
        /// The slash at the end of a path.
        trailing_slash: TrailingSlash = TrailingSlash::Add,
        /// Whether compressed files beside a file are sent in its place.
        precompressed: Precompressed = Precompressed::Off,
        /// Which codings responses are compressed with while they are sent.
        compress: Compress = Compress::Off,
        /// Smallest content that is compressed, in bytes, where its length is known.
        compress_bytes_min: u64,
        /// Level of gzip, 1 to 9.
        compress_gzip_level: u8,
        /// Level of Zstandard, 1 to 19.
        compress_zstd_level: u8,
        /// Whether responses that set cookies are compressed, too.
        compress_cookies: bool,
        /// Whether a client that has an older version of a file gets the difference to it.
        dictionaries: Dictionaries = Dictionaries::Auto,
        /// The page of an application that has paths of its own: what browsers get that open a path
        /// that is no file. Empty is none.
        spa: String,
        /// Whether each file has a `Cache-Control` field by its kind.
        cache_control: CacheControl = CacheControl::Auto,
        /// Folders beneath which a file with a hash in its name never changes.
        immutable_folders: Vec<String>,
        /// How long hashed files of former releases are found; zero is not at all.
        keep_old_assets: Duration,
    }
}

impl Default for RouteSettings {
    /// Returns the table's defaults.
    fn default() -> Self {
        Config::default().routes
    }
}

impl RouteSettings {
    /// Reads the value of a setting that [fits](Tunable::fits_route) a route.
    #[doc(hidden)]
    pub fn set(&mut self, tunable: &Tunable, value: &OsStr) -> Result<(), InvalidValue> {
        if !tunable.is_of_route() {
            let mut config = Config::default();
            tunable.set(&mut config, value)?;
            self.limits.set(tunable.name, &config);
            return Ok(());
        }
        let mut config = Config::blank();
        std::mem::swap(&mut config.routes, self);
        let outcome = tunable.set(&mut config, value);
        std::mem::swap(&mut config.routes, self);
        outcome
    }

    /// Returns whether hashed files are dictionaries for their next version.
    pub fn uses_dictionaries(&self) -> bool {
        let has_zstd = matches!(self.compress, Compress::On | Compress::Zstd);
        match self.dictionaries {
            Dictionaries::Auto => has_zstd && !self.keep_old_assets.is_zero(),
            Dictionaries::On => true,
            Dictionaries::Off => false,
        }
    }
}

type Change = dyn Fn(&mut RouteSettings) + Send + Sync;

/// Changes of a site or a route to the settings that it begins with.
#[derive(Clone, Default)]
pub struct RouteTuning {
    changes: Vec<Arc<Change>>,
}

impl RouteTuning {
    /// Adds a change, after those that are there.
    pub fn add(&mut self, change: impl Fn(&mut RouteSettings) + Send + Sync + 'static) {
        self.changes.push(Arc::new(change));
    }

    /// Puts the changes of what is around before these.
    pub fn within(&mut self, outer: &Self) {
        self.changes.splice(0..0, outer.changes.iter().cloned());
    }

    /// Returns whether these are the very changes of another one, which was cloned: not some that
    /// happen to be alike.
    pub fn is_that_of(&self, other: &Self) -> bool {
        let mut pairs = self.changes.iter().zip(&other.changes);
        self.changes.len() == other.changes.len() && pairs.all(|(one, of)| Arc::ptr_eq(one, of))
    }

    /// Returns whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the settings with all changes.
    pub fn over(&self, settings: &RouteSettings) -> RouteSettings {
        let mut settings = settings.clone();
        self.changes.iter().for_each(|change| change(&mut settings));
        settings
    }
}

impl fmt::Debug for RouteTuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RouteTuning ({} changes)", self.changes.len())
    }
}

pub(super) const HIDDEN: Tunable = Tunable {
    name: "hidden",
    group: SettingGroup::Folders,
    default: "false",
    doc: "Serve names that begin with a dot",
    field: switch!(routes.hidden),
};

pub(super) const LISTING: Tunable = Tunable {
    name: "listing",
    group: SettingGroup::Folders,
    default: "auto",
    doc: "List folders without index.html; auto does at a terminal, on loopback only",
    field: choice!(routes.listing, Listing),
};

#[cfg(test)]
mod tests {
    use super::super::TUNABLES;
    use super::*;

    #[test]
    fn a_route_changes_what_its_site_has_changed() {
        let base = RouteSettings::default();
        let mut site = RouteTuning::default();
        site.add(|settings| settings.hidden = true);
        site.add(|settings| settings.listing = Listing::On);
        let mut route = RouteTuning::default();
        route.add(|settings| settings.listing = Listing::Off);
        let own = route.over(&base);
        assert_eq!((own.hidden, own.listing), (false, Listing::Off));
        route.within(&site);
        let both = route.over(&base);
        assert_eq!((both.hidden, both.listing), (true, Listing::Off));
        assert!(RouteTuning::default().is_empty() && !route.is_empty());
    }

    #[test]
    fn every_setting_of_routes_is_a_field_of_theirs() {
        for tunable in TUNABLES.iter().filter(|tunable| tunable.is_of_route()) {
            let mut config = Config::default();
            let shown = tunable.show(&config);
            config.routes = RouteSettings::blank();
            let written = if shown == "none" { "" } else { &shown };
            config.routes.set(tunable, written.as_ref()).expect("its own default");
            assert_eq!(tunable.show(&config), shown, "{}", tunable.name);
        }
    }

    #[test]
    fn dictionaries_come_with_former_releases_and_zstandard() {
        use {Compress as C, Dictionaries as D};
        for (dictionaries, compress, keep_secs, expected) in [
            (D::Auto, C::Off, 0, false),
            (D::Auto, C::On, 0, false),
            (D::Auto, C::Off, 60, false),
            (D::Auto, C::Gzip, 60, false),
            (D::Auto, C::On, 60, true),
            (D::Auto, C::Zstd, 60, true),
            (D::Off, C::On, 60, false),
            (D::On, C::Off, 0, true),
        ] {
            let keep_old_assets = Duration::from_secs(keep_secs);
            let settings = RouteSettings {
                compress,
                dictionaries,
                keep_old_assets,
                ..RouteSettings::default()
            };
            assert_eq!(settings.uses_dictionaries(), expected, "{settings:?}");
        }
    }
}
