//! Settings of request bodies: how long they may be, and where whole ones are kept.

use super::fields::{choice, file_path, number};
use super::tunable::{SettingGroup, Tunable};

/// Where the body of a request is kept for a handler that reads it whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyPolicy {
    /// Nowhere: handlers read it in pieces. One that needs it whole is an error at the start.
    Stream,
    /// In memory.
    Memory,
    /// In memory up to 1 MiB. A longer one is in a temporary file, and so is one for which there is
    /// no memory.
    #[default]
    Spool,
}

impl BodyPolicy {
    /// Every member, in the order of [`Self::NAMES`].
    pub const ALL: [Self; 3] = [Self::Stream, Self::Memory, Self::Spool];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["stream", "memory", "spool"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

pub(super) const LIMIT_BODY_BYTES: Tunable = Tunable {
    name: "limit-body-bytes",
    group: SettingGroup::Limits,
    default: "1m",
    doc: "Largest request body; a larger one gets 413",
    field: number!(limit_body_bytes, Bytes, 0..=1 << 40),
};

pub(super) const BODY_POLICY: Tunable = Tunable {
    name: "body-policy",
    group: SettingGroup::Limits,
    default: "spool",
    doc: "Where whole bodies are kept: memory, or from 1m on in files, or nowhere (stream)",
    field: choice!(body_policy, BodyPolicy),
};

pub(super) const BODY_SPOOL: Tunable = Tunable {
    name: "body-spool",
    group: SettingGroup::Limits,
    default: "",
    doc: "Folder on whose disk long bodies are kept; without one TMPDIR, or else /var/tmp",
    field: file_path!(body_spool),
};

pub(super) const BODY_SPOOL_BYTES: Tunable = Tunable {
    name: "body-spool-bytes",
    group: SettingGroup::Limits,
    default: "4g",
    doc: "Disk that all such bodies may take; beyond it they stay in memory",
    field: number!(body_spool_bytes, Bytes, 0..=1 << 50),
};
