//! Settings about proxies in front: whose word counts, and how they say it. They stand in the table
//! beside the others.

use super::networks::is_network;
use super::tunable::{Field, SettingGroup, Tunable};

/// The fields in which proxies name the client. Fields of the other kind are ignored: a proxy that
/// does not support them forwards what a client has forged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Port`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedFields {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::XForwarded, Self::Forwarded];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 2] = ["x-forwarded", "forwarded"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

const NETWORKS: &str = "an address such as 192.0.2.1, a network such as 10.0.0.0/8, unix, or * \
                        for all";

pub(super) const FORWARDED_ALLOW_IPS: Tunable = Tunable {
    name: "forwarded-allow-ips",
    group: SettingGroup::Address,
    default: "",
    doc: "Proxies that are trusted to report the client's address; none by default",
    field: Field::List {
        what: NETWORKS,
        allowed: is_network,
        get: |config| &config.forwarded_allow_ips,
        set: |config, texts| config.forwarded_allow_ips = texts,
    },
};

pub(super) const FORWARDED_FIELDS: Tunable = Tunable {
    name: "forwarded-fields",
    group: SettingGroup::Address,
    default: "x-forwarded",
    doc: "The fields in which they report it: X-Forwarded-For and its like, or Forwarded",
    field: Field::Choice {
        names: &ForwardedFields::NAMES,
        get: |config| config.forwarded_fields.as_str(),
        set: |config, place| config.forwarded_fields = ForwardedFields::ALL[place],
    },
};

pub(super) const PROXY_PROTOCOL: Tunable = Tunable {
    name: "proxy-protocol",
    group: SettingGroup::Address,
    default: "false",
    doc: "Every connection must begin with a PROXY header; needs proxy-allow-from",
    field: Field::Switch {
        get: |config| config.proxy_protocol,
        set: |config, on| config.proxy_protocol = on,
    },
};

pub(super) const PROXY_ALLOW_FROM: Tunable = Tunable {
    name: "proxy-allow-from",
    group: SettingGroup::Address,
    default: "",
    doc: "Proxies that may begin connections so, none by default; others get 403",
    field: Field::List {
        what: NETWORKS,
        allowed: is_network,
        get: |config| &config.proxy_allow_from,
        set: |config, texts| config.proxy_allow_from = texts,
    },
};
