//! Declaration of the settings of addresses: where a server listens, and which proxies it trusts.

use super::ForwardedFields;
use super::fields::{choice, file_path, list, number, switch};
use super::listen::ListenSpec;
use super::networks::{NETWORKS, is_network};
use super::text::{bare, is_host};
use super::tunable::{Field, SettingGroup, Tunable};

fn is_listener(text: &str) -> bool {
    ListenSpec::parse(text).is_ok()
}

pub(super) const LISTEN: Tunable = Tunable {
    name: "listen",
    group: SettingGroup::Address,
    default: "",
    doc: "Where to listen, in place of host, port and uds; for instance 127.0.0.1:80",
    field: list!(
        listen,
        "an address such as 127.0.0.1:80, [::1]:80, unix:/run/site.sock or fd:3, and behind \
         it its own settings such as proxy-protocol",
        is_listener
    ),
};

pub(super) const HOST: Tunable = Tunable {
    name: "host",
    group: SettingGroup::Address,
    default: "127.0.0.1",
    doc: "Name or address to listen on; 0.0.0.0 or :: is every interface",
    field: Field::Text {
        what: "a host name or an IP address",
        allowed: is_host,
        get: |config| &config.host,
        set: |config, text| bare(text).clone_into(&mut config.host),
    },
};

pub(super) const PORT: Tunable = Tunable {
    name: "port",
    group: SettingGroup::Address,
    default: "8080",
    doc: "TCP port to listen on; 0 takes a free one and prints it",
    field: number!(port, Count, 0..=65535),
};

pub(super) const UDS: Tunable = Tunable {
    name: "uds",
    group: SettingGroup::Address,
    default: "",
    doc: "Unix socket to listen on, instead of host and port",
    field: file_path!(uds),
};

pub(super) const BACKLOG: Tunable = Tunable {
    name: "backlog",
    group: SettingGroup::Address,
    default: "4096",
    doc: "Connections the kernel may hold ready until they are accepted",
    field: number!(backlog, Count, 1..=65_535),
};

pub(super) const DEFER_ACCEPT: Tunable = Tunable {
    name: "defer-accept",
    group: SettingGroup::Address,
    default: "true",
    doc: "Accept a TCP connection when its first bytes are here, or after a second",
    field: switch!(defer_accept),
};

pub(super) const FORWARDED_ALLOW_IPS: Tunable = Tunable {
    name: "forwarded-allow-ips",
    group: SettingGroup::Address,
    default: "",
    doc: "Proxies that are trusted to report the client's address; none by default",
    field: list!(forwarded_allow_ips, NETWORKS, is_network),
};

pub(super) const FORWARDED_FIELDS: Tunable = Tunable {
    name: "forwarded-fields",
    group: SettingGroup::Address,
    default: "x-forwarded",
    doc: "The fields in which they report it: X-Forwarded-For and its like, or Forwarded",
    field: choice!(forwarded_fields, ForwardedFields),
};

pub(super) const PROXY_PROTOCOL: Tunable = Tunable {
    name: "proxy-protocol",
    group: SettingGroup::Address,
    default: "false",
    doc: "Every connection must begin with a PROXY header; needs proxy-allow-from",
    field: switch!(proxy_protocol),
};

pub(super) const PROXY_ALLOW_FROM: Tunable = Tunable {
    name: "proxy-allow-from",
    group: SettingGroup::Address,
    default: "",
    doc: "Peers that may send a PROXY header, none by default; others get 403",
    field: list!(proxy_allow_from, NETWORKS, is_network),
};
