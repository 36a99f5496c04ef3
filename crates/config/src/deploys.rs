//! Settings that keep pages whole while what is served changes under them.

use super::fields::{choice, duration, list, number};
use super::numbers::DAY;
use super::tunable::{Field, SettingGroup, Tunable};

/// Whether each file has a `Cache-Control` field by its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheControl {
    /// With a page for an application ([`spa`](field@crate::RouteSettings::spa)).
    #[default]
    Auto,
    /// Always.
    On,
    /// Never, but for rules of the configuration file.
    Off,
}

impl CacheControl {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["auto", "on", "off"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A rule of the configuration file for the `Cache-Control` of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// The pattern of the files' paths below the folder, see
    /// [`path_matches`](crate::path_matches).
    pub path: String,
    /// The value of the field.
    pub value: String,
}

impl CacheRule {
    /// Creates a rule of a pattern and a value.
    pub fn new(path: &str, value: &str) -> Self {
        Self { path: path.to_owned(), value: value.to_owned() }
    }
}

pub(super) const HASH_BYTES_MAX: Tunable = Tunable {
    name: "hash-bytes-max",
    group: SettingGroup::Folders,
    default: "8m",
    doc: "Largest file whose ETag is made of its bytes, not of its attributes",
    field: number!(routes.hash_bytes_max, Bytes, 1..=1 << 40, or "off"),
};

pub(super) const SMALL_FILE_BYTES_MAX: Tunable = Tunable {
    name: "small-file-bytes-max",
    group: SettingGroup::Folders,
    default: "8191",
    doc: "Largest file that is kept in memory; others are held open and sent by the kernel",
    field: number!(routes.small_file_bytes_max, Bytes, 1..=64 << 10, or "off"),
};

pub(super) const SPA: Tunable = Tunable {
    name: "spa",
    group: SettingGroup::Folders,
    default: "",
    doc: "Page for navigations to paths that are no files; index.html if no file is named",
    field: Field::Text {
        what: "the name of a page in the folder, or true for index.html",
        allowed: is_page,
        get: |config| &config.routes.spa,
        set: |config, text| text.clone_into(&mut config.routes.spa),
    },
};

pub(super) const CACHE_CONTROL: Tunable = Tunable {
    name: "cache-control",
    group: SettingGroup::Folders,
    default: "auto",
    doc: "Send Cache-Control by the kind of file; auto does with spa",
    field: choice!(routes.cache_control, CacheControl),
};

pub(super) const IMMUTABLE_FOLDERS: Tunable = Tunable {
    name: "immutable-folders",
    group: SettingGroup::Folders,
    default: "assets,static,_next/static,_app/immutable,build",
    doc: "Folders beneath which a file with a hash in its name never changes",
    field: list!(
        routes.immutable_folders,
        "a folder below the served one, such as assets or _next/static",
        is_folder
    ),
};

pub(super) const KEEP_OLD_ASSETS: Tunable = Tunable {
    name: "keep-old-assets",
    group: SettingGroup::Folders,
    default: "off",
    doc: "How long hashed files of former releases are found after a swap of the link",
    field: duration!(routes.keep_old_assets, 1_000..=30 * DAY, or "off"),
};

/// Returns whether a text is a path below a folder, as it is on the disk.
fn is_below(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name != "." && name != "..";
    text.split('/').all(is_name) && !text.contains(['\\', '\0']) && text.len() < 1_024
}

fn is_page(text: &str) -> bool {
    text.is_empty() || is_below(text)
}

fn is_folder(text: &str) -> bool {
    is_below(text.trim_matches('/'))
}
