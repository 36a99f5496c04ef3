//! Settings of content codings: which representations of a file or a response there are.

use super::fields::choice;
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

pub(super) const PRECOMPRESSED: Tunable = Tunable {
    name: "precompressed",
    group: SettingGroup::Compression,
    default: "off",
    doc: "Send FILE.br, FILE.zst or FILE.gz in place of FILE; always does if they are older, too",
    field: choice!(routes.precompressed, Precompressed),
};
