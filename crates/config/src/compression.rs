//! Settings of content codings: which representations of a file or a response there are.

use gustnado_http::media_type::is_pattern;

use super::fields::{choice, list, number, switch};
use super::tunable::{SettingGroup, Tunable};

/// Whether compressed files that lie beside a file are sent in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precompressed {
    /// No: a file beside another one is a file of its own.
    #[default]
    Off,
    /// `FILE.br`, `FILE.zst` and `FILE.gz`, to clients that accept them, unless they are older than
    /// `FILE`.
    On,
    /// The same, however old they are: where a deployment does not keep the times of files.
    Always,
}

impl Precompressed {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Always];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["off", "on", "always"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Which codings responses are compressed with while they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// None.
    #[default]
    Off,
    /// Zstandard or gzip, whichever the client wants more.
    On,
    /// gzip alone.
    Gzip,
    /// Zstandard alone.
    Zstd,
}

impl Compress {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 4] = [Self::Off, Self::On, Self::Gzip, Self::Zstd];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 4] = ["off", "on", "gzip", "zstd"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Whether a client that has an older version of a file gets the difference to it (RFC 9842).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dictionaries {
    /// Where the server compresses with Zstandard, and former releases are kept
    /// ([`keep_old_assets`](crate::RouteSettings::keep_old_assets)).
    #[default]
    Auto,
    /// Wherever an older version is found, also if the server compresses nothing else.
    On,
    /// Nowhere.
    Off,
}

impl Dictionaries {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["auto", "on", "off"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

pub(super) const COMPRESS: Tunable = Tunable {
    name: "compress",
    group: SettingGroup::Compression,
    default: "off",
    doc: "Compress files and handlers' responses; on is zstd or gzip, as clients want",
    field: choice!(routes.compress, Compress),
};

pub(super) const TYPES: Tunable = Tunable {
    name: "compress-types",
    group: SettingGroup::Compression,
    default: "",
    doc: "Media types that are compressed, in place of text, JSON, XML, SVG and their like",
    field: list!(
        routes.compress_types,
        "a media type such as text/css, text/* or application/*+json",
        is_pattern
    ),
};

pub(super) const BYTES_MIN: Tunable = Tunable {
    name: "compress-bytes-min",
    group: SettingGroup::Compression,
    default: "1k",
    doc: "Smallest content that is compressed, where its length is known",
    field: number!(routes.compress_bytes_min, Bytes, 0..=1 << 40),
};

pub(super) const GZIP_LEVEL: Tunable = Tunable {
    name: "compress-gzip-level",
    group: SettingGroup::Compression,
    default: "6",
    doc: "How much work gzip spends on fewer bytes",
    field: number!(routes.compress_gzip_level, Count, 1..=9),
};

pub(super) const ZSTD_LEVEL: Tunable = Tunable {
    name: "compress-zstd-level",
    group: SettingGroup::Compression,
    default: "3",
    doc: "How much work Zstandard spends on fewer bytes",
    field: number!(routes.compress_zstd_level, Count, 1..=19),
};

pub(super) const COOKIES: Tunable = Tunable {
    name: "compress-cookies",
    group: SettingGroup::Compression,
    default: "false",
    doc: "Compress responses that set cookies, too; their length may tell a secret",
    field: switch!(routes.compress_cookies),
};

pub(super) const PRECOMPRESSED: Tunable = Tunable {
    name: "precompressed",
    group: SettingGroup::Compression,
    default: "off",
    doc: "Send FILE.br, FILE.zst or FILE.gz for FILE; always does if they are older, too",
    field: choice!(routes.precompressed, Precompressed),
};

pub(super) const DICTIONARIES: Tunable = Tunable {
    name: "dictionaries",
    group: SettingGroup::Compression,
    default: "auto",
    doc: "Send hashed files as differences to older ones; auto: with keep-old-assets, zstd",
    field: choice!(routes.dictionaries, Dictionaries),
};
