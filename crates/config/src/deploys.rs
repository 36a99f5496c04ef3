//! Settings that keep pages whole while what is served changes under them.

use super::fields::number;
use super::tunable::{SettingGroup, Tunable};

pub(super) const HASH_BYTES_MAX: Tunable = Tunable {
    name: "hash-bytes-max",
    group: SettingGroup::Folders,
    default: "8m",
    doc: "Largest file whose ETag is made of its bytes, not of its attributes",
    field: number!(routes.hash_bytes_max, Bytes, 1..=1 << 40, or "off"),
};
