//! Declaration of the settings of counters: pages and lines about the server.

use super::fields::{duration, list};
use super::networks::is_network;
use super::numbers::HOUR;
use super::tunable::{Field, SettingGroup, Tunable};

pub(super) const STATS_INTERVAL: Tunable = Tunable {
    name: "stats-interval",
    group: SettingGroup::Output,
    default: "off",
    doc: "How often a line of statistics is written to standard error",
    field: duration!(stats_interval, 10..=HOUR, or "off"),
};

pub(super) const METRICS_PATH: Tunable = Tunable {
    name: "metrics-path",
    group: SettingGroup::Output,
    default: "",
    doc: "Path of a page with all counters for Prometheus, such as /metrics",
    field: Field::Text {
        what: PATH,
        allowed: is_page_path,
        get: |config| &config.metrics_path,
        set: |config, text| text.clone_into(&mut config.metrics_path),
    },
};

pub(super) const STATS_PATH: Tunable = Tunable {
    name: "stats-path",
    group: SettingGroup::Output,
    default: "",
    doc: "Path of a page with all counters in JSON, such as /stats",
    field: Field::Text {
        what: PATH,
        allowed: is_page_path,
        get: |config| &config.stats_path,
        set: |config, text| text.clone_into(&mut config.stats_path),
    },
};

pub(super) const METRICS_ALLOW_FROM: Tunable = Tunable {
    name: "metrics-allow-from",
    group: SettingGroup::Output,
    default: "127.0.0.0/8,::1,unix",
    doc: "Clients that get these two pages; others get 403",
    field: list!(
        metrics_allow_from,
        "addresses or networks such as 10.0.0.0/8, `unix` or `*`",
        is_network
    ),
};

const PATH: &str = "text that begins with a slash, such as /metrics";

/// Returns whether a text is empty, or a path without named parts.
fn is_page_path(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_graphic() && !b"{}?#\\".contains(&byte);
    text.is_empty() || text.len() > 1 && text.starts_with('/') && text.bytes().all(letter)
}
