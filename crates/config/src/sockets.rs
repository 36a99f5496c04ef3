//! Declaration of the settings of sockets that are few enough to stand apart from the table.

use super::fields::number;
use super::listen::mode_of;
use super::text::is_user;
use super::tunable::{Field, SettingGroup, Tunable};

pub(super) const UDS_MODE: Tunable = Tunable {
    name: "uds-mode",
    group: SettingGroup::Address,
    default: "",
    doc: "Permissions of Unix sockets, in octal; without it the umask decides",
    field: Field::Text {
        what: "permissions in octal such as 660",
        allowed: |text| text.is_empty() || mode_of(text).is_some(),
        get: |config| &config.uds_mode,
        set: |config, text| text.clone_into(&mut config.uds_mode),
    },
};

pub(super) const UDS_OWNER: Tunable = Tunable {
    name: "uds-owner",
    group: SettingGroup::Address,
    default: "",
    doc: "User of Unix sockets, NAME or NAME:GROUP; without it the process's",
    field: Field::Text {
        what: "a user such as www-data, or a user and a group such as www-data:web",
        allowed: is_user,
        get: |config| &config.uds_owner,
        set: |config, text| text.clone_into(&mut config.uds_owner),
    },
};

pub(super) const NOTSENT_LOWAT: Tunable = Tunable {
    name: "notsent-lowat",
    group: SettingGroup::Address,
    default: "128k",
    doc: "Bytes not under way yet that the kernel takes for a TCP connection",
    field: number!(notsent_lowat, Bytes, 4_096..=1 << 30, or "off"),
};
