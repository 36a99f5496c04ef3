//! The help of `serve`: which settings come first, under which headings, and examples.

use gustnado::config::SettingGroup;

/// The settings used most, in this order. They are at the top of help, without a heading.
pub(super) const FIRST: [&str; 10] = [
    "root",
    "port",
    "host",
    "listen",
    "uds",
    "listing",
    "hidden",
    "access-log",
    "quiet",
    "workers",
];
/// Headings of the other settings, the most used first.
pub(super) const GROUPS: [SettingGroup; 14] = [
    SettingGroup::Files,
    SettingGroup::Folders,
    SettingGroup::Compression,
    SettingGroup::Access,
    SettingGroup::Output,
    SettingGroup::Limits,
    SettingGroup::Time,
    SettingGroup::Tls,
    SettingGroup::Acme,
    SettingGroup::Http2,
    SettingGroup::WebSocket,
    SettingGroup::Address,
    SettingGroup::Engine,
    SettingGroup::Pace,
];

/// The help of `serve`: usage, then all settings.
pub(super) const SERVE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Examples:
  gustnado serve ./public                      on http://127.0.0.1:8080/
  gustnado serve ./public -p 8000 --listing    another port; folders without index are listed
  gustnado serve ./public --host 0.0.0.0       for other machines too
  gustnado serve ./public --access-log a.log   a line for each request
  gustnado serve ./public --tls-cert cert.pem --tls-key key.pem    by HTTPS
  gustnado serve ./public --listen http://[::]:80,https://[::]:443 --acme example.org
  gustnado serve --config site.toml            several folders, hosts, redirects, header fields

{all-args}{after-help}";

/// Names that a flag has on other servers, and that mean the same here.
pub(super) fn aliases(name: &str) -> &'static [&'static str] {
    match name {
        "tls-cert" => &["certfile", "ssl-certfile"],
        "tls-key" => &["keyfile", "ssl-keyfile"],
        _ => &[],
    }
}
