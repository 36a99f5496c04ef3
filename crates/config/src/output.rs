//! Declaration of the settings of what is told: in responses, on standard error, in logs.

use super::fields::{choice, file_path, switch};
use super::text::is_field_text;
use super::tunable::{Field, SettingGroup, Tunable};
use super::{EarlyHints, ResponseVersion};
use std::path::{Path, PathBuf};

pub(super) const SERVER_NAME: Tunable = Tunable {
    name: "server-name",
    group: SettingGroup::Output,
    default: "gustnado",
    doc: "Value of the Server field; empty leaves the field out",
    field: Field::Text {
        what: "visible ASCII text of at most 64 characters",
        allowed: is_field_text,
        get: |config| &config.server_name,
        set: |config, text| text.clone_into(&mut config.server_name),
    },
};

pub(super) const ANSWER_VERSION: Tunable = Tunable {
    name: "answer-version",
    group: SettingGroup::Output,
    default: "1.1",
    doc: "HTTP version in status lines: the newest, 1.0 to all, or that of the request",
    field: choice!(answer_version, ResponseVersion),
};

pub(super) const EARLY_HINTS: Tunable = Tunable {
    name: "early-hints",
    group: SettingGroup::Output,
    default: "navigations",
    doc: "Which requests of HTTP/1.1 get early hints (103); by HTTP/2 all do, unless never",
    field: choice!(early_hints, EarlyHints),
};

pub(super) const ACCESS_LOG: Tunable = Tunable {
    name: "access-log",
    group: SettingGroup::Output,
    default: "",
    doc: "File that a line for each request is appended to; - is standard output",
    field: file_path!(access_log),
};

pub(super) const ACCESS_LOG_FORMAT: Tunable = Tunable {
    name: "access-log-format",
    group: SettingGroup::Output,
    default: "combined",
    doc: "Format of its lines: common, combined, json, brief, or atoms such as %(h)s",
    field: Field::Text {
        what: "common, combined, json, or a format such as %(h)s %(r)s %(s)s",
        // The start reports what exactly is wrong with one.
        allowed: |text| !text.is_empty(),
        get: |config| &config.access_log_format,
        set: |config, text| text.clone_into(&mut config.access_log_format),
    },
};

pub(super) const LOG_CONNECTION_ERRORS: Tunable = Tunable {
    name: "log-connection-errors",
    group: SettingGroup::Output,
    default: "false",
    doc: "Say on standard error which HTTP/2 connections ended by an error, and why",
    field: switch!(log_connection_errors),
};

pub(super) const CONTROL: Tunable = Tunable {
    name: "control",
    group: SettingGroup::Output,
    default: "",
    doc: "Unix socket by which gustnado reload has the configuration read again: unix:PATH",
    field: Field::Path {
        get: |config| config.control.as_deref(),
        set: |config, path| config.control = path.map(|path| without_scheme(&path)),
    },
};

/// Returns a path without the `unix:` that addresses begin with.
fn without_scheme(path: &Path) -> PathBuf {
    path.to_str().and_then(|text| text.strip_prefix("unix:")).map_or(path.into(), PathBuf::from)
}

pub(super) const WATCH_CONFIG: Tunable = Tunable {
    name: "watch-config",
    group: SettingGroup::Output,
    default: "false",
    doc: "Read the configuration file again when it, or one that it includes, has changed",
    field: switch!(watch_config),
};

pub(super) const QUIET: Tunable = Tunable {
    name: "quiet",
    group: SettingGroup::Output,
    default: "false",
    doc: "Print nothing but errors",
    field: switch!(quiet),
};
