//! Declaration of the settings of HTTP/2.

use super::fields::{duration, number, switch};
use super::numbers::HOUR;
use super::tunable::{SettingGroup, Tunable};

pub(super) const HTTP1: Tunable = Tunable {
    name: "http1",
    group: SettingGroup::Http2,
    default: "true",
    doc: "Serve HTTP/1, too; without it, its requests are refused with 505",
    field: switch!(http1),
};

pub(super) const HTTP2: Tunable = Tunable {
    name: "http2",
    group: SettingGroup::Http2,
    default: "true",
    doc: "Offer HTTP/2 to clients that come by TLS (ALPN)",
    field: switch!(http2),
};

pub(super) const H2C: Tunable = Tunable {
    name: "h2c",
    group: SettingGroup::Http2,
    default: "false",
    doc: "Take HTTP/2 in clear from clients that begin with it (prior knowledge)",
    field: switch!(h2c),
};

pub(super) const STREAMS: Tunable = Tunable {
    name: "h2-streams",
    group: SettingGroup::Http2,
    default: "100",
    doc: "Requests of one connection at once; beyond it, they are refused",
    field: number!(h2_streams, Count, 1..=65_535),
};

pub(super) const WINDOW_BYTES: Tunable = Tunable {
    name: "h2-window-bytes",
    group: SettingGroup::Http2,
    default: "64k",
    doc: "How much of a body may come before any of it is read",
    field: number!(h2_window_bytes, Bytes, 16_384..=1 << 30),
};

pub(super) const WINDOW_BYTES_MAX: Tunable = Tunable {
    name: "h2-window-bytes-max",
    group: SettingGroup::Http2,
    default: "1m",
    doc: "How far that grows while the body is read, if there is memory",
    field: number!(h2_window_bytes_max, Bytes, 16_384..=1 << 30),
};

pub(super) const PING: Tunable = Tunable {
    name: "h2-ping",
    group: SettingGroup::Http2,
    default: "off",
    doc: "Silence after which a client with open requests is sent a PING",
    field: duration!(h2_ping, 1_000..=HOUR, or "off"),
};

pub(super) const PING_TIMEOUT: Tunable = Tunable {
    name: "h2-ping-timeout",
    group: SettingGroup::Http2,
    default: "20s",
    doc: "Time in which something has to come then; otherwise the connection ends",
    field: duration!(h2_ping_timeout, 100..=HOUR),
};

pub(super) const NOTSENT_LOWAT: Tunable = Tunable {
    name: "h2-notsent-lowat",
    group: SettingGroup::Http2,
    default: "16k",
    doc: "Bytes not under way yet that the kernel takes for a client that reads slowly",
    field: number!(h2_notsent_lowat, Bytes, 4_096..=1 << 30, or "off"),
};

pub(super) const GLITCHES: Tunable = Tunable {
    name: "h2-glitches",
    group: SettingGroup::Http2,
    default: "1000",
    doc: "Resets, errors and idle frames of one connection at once; beyond it, it ends",
    field: number!(h2_glitches, Count, 1..=1_000_000, or "unlimited"),
};

pub(super) const GLITCHES_PER_SECOND: Tunable = Tunable {
    name: "h2-glitches-per-second",
    group: SettingGroup::Http2,
    default: "33",
    doc: "How many of them a connection is forgiven each second",
    field: number!(h2_glitches_per_second, Count, 1..=1_000),
};
