//! The declaration of a setting, and how its value is read into and written out of a
//! [`Config`] by it.

use super::Config;
use super::nearest::nearest;
use super::unit::Unit;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The part of the documentation and of `--help` that a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingGroup {
    /// Listening addresses.
    Address,
    /// TLS.
    Tls,
    /// Certificates from an authority.
    Acme,
    /// HTTP/2.
    Http2,
    /// `WebSocket`s.
    WebSocket,
    /// Workers, kernel interface, scheduler.
    Engine,
    /// Sizes and counts.
    Limits,
    /// Time-outs and least rates.
    Time,
    /// Greatest rates.
    Pace,
    /// Served files.
    Files,
    /// What a folder serves, and how.
    Folders,
    /// Content codings.
    Compression,
    /// What routes ask of clients.
    Access,
    /// Output.
    Output,
}

impl SettingGroup {
    /// Every group in the order of the documentation.
    pub const ALL: [Self; 14] = [
        Self::Address,
        Self::Tls,
        Self::Acme,
        Self::Http2,
        Self::WebSocket,
        Self::Engine,
        Self::Limits,
        Self::Time,
        Self::Pace,
        Self::Files,
        Self::Folders,
        Self::Compression,
        Self::Access,
        Self::Output,
    ];

    /// Returns the group's heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Address => "Address",
            Self::Tls => "TLS",
            Self::Acme => "Certificates from an authority (ACME)",
            Self::Http2 => "HTTP/2",
            Self::WebSocket => "WebSocket",
            Self::Engine => "Engine",
            Self::Limits => "Limits",
            Self::Time => "Time",
            Self::Pace => "Pace",
            Self::Files => "Files",
            Self::Folders => "Folders",
            Self::Compression => "Compression",
            Self::Access => "Access",
            Self::Output => "Output",
        }
    }
}

/// The field of [`Config`] that a setting is kept in, and its type.
pub enum Field {
    /// Text. `allowed` checks it; `what` describes it for messages.
    Text {
        /// Description of the values that the setting takes.
        what: &'static str,
        /// Whether a value is one of them.
        allowed: fn(&str) -> bool,
        /// Reads the value.
        get: fn(&Config) -> &str,
        /// Keeps the value.
        set: fn(&mut Config, &str),
    },
    /// Several texts: an array in a file, set apart by commas elsewhere; empty is none.
    List {
        /// Description of one of them.
        what: &'static str,
        /// Whether a text is one of them.
        allowed: fn(&str) -> bool,
        /// Reads the value.
        get: fn(&Config) -> &[String],
        /// Keeps the value.
        set: fn(&mut Config, Vec<String>),
    },
    /// A path; empty is none.
    Path {
        /// Reads the value.
        get: fn(&Config) -> Option<&Path>,
        /// Keeps the value.
        set: fn(&mut Config, Option<PathBuf>),
    },
    /// A number from `min` to `max` in the unit's base.
    Number {
        /// The unit of the number.
        unit: Unit,
        /// Smallest value; a `zero` word is allowed as well.
        min: u64,
        /// Largest value.
        max: u64,
        /// The word that stands for 0, for instance `auto`.
        zero: Option<&'static str>,
        /// Reads the value.
        get: fn(&Config) -> u64,
        /// Keeps the value, which is in range.
        set: fn(&mut Config, u64),
    },
    /// One of several names.
    Choice {
        /// The names.
        names: &'static [&'static str],
        /// Reads the value's name.
        get: fn(&Config) -> &'static str,
        /// Keeps the value by its place in `names`.
        set: fn(&mut Config, usize),
    },
    /// Yes or no.
    Switch {
        /// Reads the value.
        get: fn(&Config) -> bool,
        /// Keeps the value.
        set: fn(&mut Config, bool),
    },
}

/// One setting: its only declaration.
pub struct Tunable {
    /// Its name, with dashes: `header-timeout`.
    pub name: &'static str,
    /// The group in which it is documented.
    pub group: SettingGroup,
    /// Its default, as it is written in a flag or a file.
    pub default: &'static str,
    /// Its meaning, in one line without a full stop.
    pub doc: &'static str,
    /// Its field, with how it is read, checked, kept and shown.
    pub field: Field,
}

/// The error of a refused value, without the place that it came from.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// Description of the values that the setting takes.
    pub expected: String,
    /// The word that is spelt nearly like it.
    pub nearest: Option<&'static str>,
}

const YES: [&str; 4] = ["true", "1", "yes", "on"];
const NO: [&str; 4] = ["false", "0", "no", "off"];

impl Tunable {
    /// Returns the flag with its dashes, or `DIR` for the folder, which has none.
    pub fn flag(&self) -> String {
        if self.is_argument() { "DIR".to_owned() } else { format!("--{}", self.name) }
    }

    /// Returns the environment variable: `GUSTNADO_HEADER_TIMEOUT`.
    pub fn variable(&self) -> String {
        format!("GUSTNADO_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// Returns whether the setting is given as an argument instead of a flag.
    pub fn is_argument(&self) -> bool {
        self.name == "root"
    }

    /// Returns the method of `gustnado::Server` that sets it: `header_timeout`.
    pub fn method(&self) -> String {
        match self.name {
            // `listen` takes one address, and starts; `host` is a site of its own.
            "listen" => "listen_on".to_owned(),
            "host" => "host_name".to_owned(),
            // `error_page` takes a function.
            "error-page" => "error_page_files".to_owned(),
            name => name.replace('-', "_"),
        }
    }

    /// Returns whether sites and routes may have a value of their own: a field of
    /// [`RouteSettings`](super::RouteSettings).
    pub fn is_of_route(&self) -> bool {
        matches!(
            self.group,
            SettingGroup::Folders | SettingGroup::Compression | SettingGroup::Access
        )
    }

    /// Returns the value of the setting where it is named without one: `--hidden`, `--spa`.
    pub fn bare_value(&self) -> Option<&'static str> {
        match (&self.field, self.name) {
            (Field::Switch { .. }, _) => Some("true"),
            (_, "listing" | "archives" | "precompressed" | "compress" | "dictionaries") => {
                Some("on")
            }
            (_, "spa") => Some("index.html"),
            _ => None,
        }
    }

    /// Returns whether the setting keeps others out, so that an empty value, as an unset variable
    /// gives, would let them in.
    pub fn is_guard(&self) -> bool {
        const GUARDS: [&str; 7] = [
            "allow",
            "deny",
            "forbidden",
            "basic-auth",
            "signed-urls",
            "tls-client-ca",
            "tls-client-crl",
        ];
        GUARDS.contains(&self.name)
    }

    /// Returns whether a flag of the setting adds to those before it, instead of replacing them.
    pub fn repeats(&self) -> bool {
        self.name == "error-page"
    }

    /// Returns whether a server must be restarted for another value to take effect: workers and
    /// what they are made with do not change while they run.
    pub fn needs_restart(&self) -> bool {
        const BOUND: [&str; 17] = [
            "control",
            "watch-config",
            "notsent-lowat",
            "uds-mode",
            "uds-owner",
            "backlog",
            "defer-accept",
            "drain-accept",
            "recv-buffer-bytes",
            "send-buffer-bytes",
            "socket-preference",
            "connections-max",
            "accept-delay",
            "accepts-per-second",
            "pass-delay-us",
            "no-io-wait-us",
            "stats-interval",
        ];
        self.group == SettingGroup::Engine || BOUND.contains(&self.name)
    }

    /// Returns what the setting takes, for messages and documentation.
    pub fn takes(&self) -> String {
        match &self.field {
            Field::Text { what, .. } => (*what).to_owned(),
            Field::List { what, .. } => {
                let none = if self.is_guard() { ", or off for none" } else { "" };
                format!("{what}, or several with commas between them{none}")
            }
            Field::Path { .. } if self.is_guard() => "a path, or off for none".to_owned(),
            Field::Path { .. } => "a path".to_owned(),
            Field::Choice { names, .. } => format!("one of {}", names.join(", ")),
            Field::Switch { .. } => "true or false".to_owned(),
            Field::Number { unit, min, max, zero, .. } => {
                let word = zero.map(|word| format!(", or {word}")).unwrap_or_default();
                let (min, max) = (unit.format(*min), unit.format(*max));
                format!("{} from {min} to {max}{word}", unit.form())
            }
        }
    }

    /// Returns the placeholder of the value in help.
    pub fn placeholder(&self) -> &'static str {
        match &self.field {
            Field::Text { .. } => "TEXT",
            Field::List { .. } => "LIST",
            Field::Path { .. } if self.is_argument() => "DIR",
            Field::Path { .. } => "PATH",
            Field::Choice { .. } => "NAME",
            Field::Switch { .. } => "BOOL",
            Field::Number { unit, .. } => unit.placeholder(),
        }
    }

    /// Returns the value in `config`, as it is written in a flag or a file; an empty one is `none`.
    pub fn show(&self, config: &Config) -> String {
        match &self.field {
            Field::Text { get, .. } if get(config).is_empty() => "none".to_owned(),
            Field::Text { get, .. } => get(config).to_owned(),
            Field::List { get, .. } if get(config).is_empty() => "none".to_owned(),
            Field::List { get, .. } => get(config).join(","),
            Field::Path { get, .. } => {
                get(config).map_or_else(|| "none".to_owned(), |path| path.display().to_string())
            }
            Field::Choice { get, .. } => get(config).to_owned(),
            Field::Switch { get, .. } => get(config).to_string(),
            Field::Number { unit, zero, get, .. } => match (get(config), zero) {
                (0, Some(word)) => (*word).to_owned(),
                (number, _) => unit.format(number),
            },
        }
    }

    /// Reads `value` into `config`.
    #[doc(hidden)]
    pub fn set(&self, config: &mut Config, value: &OsStr) -> Result<(), InvalidValue> {
        // A route may want none of what its site has, and a site of what a variable says.
        let is_off = (self.is_of_route() || self.is_guard()) && value == "off";
        if let Field::Path { set, .. } = &self.field {
            set(config, (!is_off && !value.is_empty()).then(|| PathBuf::from(value)));
            return Ok(());
        }
        let text = value.to_str().ok_or_else(|| self.refuse(None))?.trim();
        match &self.field {
            Field::Path { .. } => {} // done above, without a need for UTF-8
            Field::List { set, .. } if is_off => set(config, Vec::new()),
            Field::List { allowed, set, .. } => {
                let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
                let texts: Vec<String> = texts.map(str::to_owned).collect();
                let all = texts.iter().all(|text| allowed(text));
                all.then(|| set(config, texts)).ok_or_else(|| self.refuse(None))?;
            }
            Field::Text { allowed, set, .. } => {
                let text = match self.bare_value() {
                    Some(bare) if is_among(&YES, text) => bare,
                    Some(_) if is_among(&NO, text) => "",
                    _ => text,
                };
                allowed(text).then(|| set(config, text)).ok_or_else(|| self.refuse(None))?;
            }
            Field::Choice { names, set, .. } => {
                let same = |name: &&str| name.eq_ignore_ascii_case(text);
                let place = names.iter().position(same);
                set(
                    config,
                    place.ok_or_else(|| self.refuse(nearest(text, names.iter().copied())))?,
                );
            }
            Field::Switch { set, .. } => match (is_among(&YES, text), is_among(&NO, text)) {
                (false, false) => return Err(self.refuse(None)),
                (yes, _) => set(config, yes),
            },
            Field::Number { set, .. } => set(config, self.number(text)?),
        }
        Ok(())
    }

    /// Copies the value of one configuration to another.
    pub fn copy(&self, from: &Config, to: &mut Config) {
        match &self.field {
            Field::Text { get, set, .. } => set(to, get(from)),
            Field::List { get, set, .. } => set(to, get(from).to_vec()),
            Field::Path { get, set } => set(to, get(from).map(Path::to_owned)),
            Field::Choice { names, get, set } => {
                if let Some(place) = names.iter().position(|name| *name == get(from)) {
                    set(to, place);
                }
            }
            Field::Switch { get, set } => set(to, get(from)),
            Field::Number { get, set, .. } => set(to, get(from)),
        }
    }

    fn number(&self, text: &str) -> Result<u64, InvalidValue> {
        let Field::Number { unit, min, max, zero, .. } = &self.field else {
            return Err(self.refuse(None));
        };
        let is_word = zero.is_some_and(|word| word.eq_ignore_ascii_case(text));
        match if is_word { Some(0) } else { unit.read(text) } {
            Some(0) if zero.is_some() => Ok(0),
            Some(number) if (*min..=*max).contains(&number) => Ok(number),
            _ => Err(self.refuse(zero.and_then(|word| nearest(text, std::iter::once(word))))),
        }
    }

    fn refuse(&self, nearest: Option<&'static str>) -> InvalidValue {
        InvalidValue { expected: self.takes(), nearest }
    }
}

fn is_among(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests;
