//! Values of directives as values of settings.

use super::syntax::Directive;
use crate::Config;
use crate::table::TUNABLES;
use crate::tunable::Tunable;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingValue {
    Text(String),
    List(Vec<String>),
}

/// What becomes of a directive.
pub(super) enum Taken {
    /// It is no setting of routes.
    Not,
    Yes,
    /// It is left out, or means something else here.
    Noted(&'static str),
    /// Nothing of its scope may be served.
    Closed(String),
}

/// Why a directive is left out.
pub(super) const NO_SUCH_VALUE: &str = "its setting takes no such value: left out";

/// Directives that are settings, with their names and kinds of values.
const SETTINGS: &[(&str, &str, ValueKind)] = &[
    ("client_max_body_size", "limit-body-bytes", ValueKind::Bytes),
    ("keepalive_timeout", "timeout-keep-alive", ValueKind::Time),
    ("keepalive_requests", "max-requests-per-connection", ValueKind::Number),
    ("client_header_timeout", "header-timeout", ValueKind::Time),
    ("client_body_timeout", "body-timeout", ValueKind::Time),
    ("send_timeout", "write-timeout", ValueKind::Time),
    ("worker_processes", "workers", ValueKind::Number),
    ("ssl_protocols", "tls-version-min", ValueKind::Protocols),
];

#[derive(Clone, Copy)]
enum ValueKind {
    Bytes,
    Time,
    Number,
    /// Versions of TLS, of which the lowest is a setting.
    Protocols,
}

/// Returns the setting that a directive is, and its value, if that is valid.
pub(super) fn setting_of(one: &Directive) -> Option<(&'static str, Option<String>)> {
    let (_, name, kind) = SETTINGS.iter().find(|(known, ..)| *known == one.name)?;
    let text = one.args.first().map(String::as_str).unwrap_or_default();
    let value = match kind {
        ValueKind::Time => seconds(text).map(|seconds| format!("{seconds}s")),
        // No limit, which there is none of here.
        ValueKind::Bytes if text == "0" => Some("1t".to_owned()),
        ValueKind::Bytes => Some(text.to_ascii_lowercase()),
        ValueKind::Number => Some(text.to_owned()),
        ValueKind::Protocols => {
            let has = |version: &str| one.args.iter().any(|arg| arg == version);
            let lowest = if has("TLSv1.2") { "1.2" } else { "1.3" };
            (has("TLSv1.2") || has("TLSv1.3")).then(|| lowest.to_owned())
        }
    };
    Some((name, value.filter(|value| is_valid(name, value))))
}

/// Returns whether a setting takes a value.
pub(super) fn is_valid(name: &str, value: &str) -> bool {
    tunable(name).is_some_and(|one| one.set(&mut Config::default(), value.as_ref()).is_ok())
}

/// Returns the default of a setting.
pub(super) fn default_of(name: &str) -> &'static str {
    tunable(name).map_or("", |tunable| tunable.default)
}

fn tunable(name: &str) -> Option<&'static Tunable> {
    TUNABLES.iter().find(|tunable| tunable.name == name)
}

/// Returns the seconds of a time such as `30d`, `1h30m` or `600`.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let units = [
        ("y", 31_536_000),
        ("M", 2_592_000),
        ("w", 604_800),
        ("d", 86_400),
        ("h", 3_600),
        ("m", 60),
        ("s", 1),
    ];
    let (mut sum, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let (suffix, factor) = match units.iter().find(|(unit, _)| rest.starts_with(unit)) {
            Some((unit, factor)) => (*unit, *factor),
            None if rest.is_empty() => ("", 1),
            None => return None,
        };
        rest = rest[suffix.len()..].trim_start();
        sum = sum.checked_add(number.checked_mul(factor)?)?;
    }
    Some(sum)
}
