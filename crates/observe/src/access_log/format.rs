//! The format of a line, in gunicorn's atoms, compiled once.

use std::fmt;

use super::guess;
use super::proxy_atom::ProxyAtom;
use super::tls_atom::TlsAtom;
use gustnado_config::nearest;

/// The standard formats by name; `json` consists of [`JSON`].
const COMMON: &str = r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s"#;
const COMBINED: &str = r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s""#;
const JSON: &[(&str, Atom)] = &[
    ("time", Atom::Time),
    ("remote_address", Atom::Address),
    ("user", Atom::User),
    ("method", Atom::Method),
    ("path", Atom::Path),
    ("query", Atom::Query),
    ("protocol", Atom::Protocol),
    ("status", Atom::Status),
    ("bytes", Atom::Bytes),
    ("referer", Atom::Referer),
    ("user_agent", Atom::Agent),
    ("duration_us", Atom::Micros),
];
/// The format for terminals.
const BRIEF: &[FormatItem] = &[
    FormatItem::Atom(Atom::Clock),
    FormatItem::Fixed("  "),
    FormatItem::Atom(Atom::Method),
    FormatItem::Fixed(" "),
    FormatItem::Atom(Atom::Target),
    FormatItem::Fixed("  "),
    FormatItem::Atom(Atom::Status),
    FormatItem::Fixed("  "),
    FormatItem::Atom(Atom::Bytes),
    FormatItem::Fixed(" B  "),
    FormatItem::Atom(Atom::DecimalMillis),
    FormatItem::Fixed(" ms"),
];
const NAMES: [&str; 4] = ["common", "combined", "json", "brief"];

/// The longest format in bytes, far beyond a reasonable one.
const FORMAT_BYTES_MAX: usize = 4096;

/// A property of a request or of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    Address,
    User,
    Time,
    /// The time of day.
    Clock,
    RequestLine,
    Method,
    /// Path and query.
    Target,
    Path,
    Query,
    Protocol,
    Status,
    Bytes,
    /// The same, but `-` in place of 0.
    BytesOrDash,
    Referer,
    Agent,
    Seconds,
    Millis,
    DecimalMillis,
    Micros,
    DecimalSeconds,
}

impl Atom {
    /// Atoms by their letters in a format.
    const LETTERS: [(char, Self); 17] = [
        ('h', Self::Address),
        ('u', Self::User),
        ('t', Self::Time),
        ('r', Self::RequestLine),
        ('m', Self::Method),
        ('U', Self::Path),
        ('q', Self::Query),
        ('H', Self::Protocol),
        ('s', Self::Status),
        ('B', Self::Bytes),
        ('b', Self::BytesOrDash),
        ('f', Self::Referer),
        ('a', Self::Agent),
        ('T', Self::Seconds),
        ('M', Self::Millis),
        ('D', Self::Micros),
        ('L', Self::DecimalSeconds),
    ];

    fn of_letter(letter: char) -> Option<Self> {
        Self::LETTERS.iter().find(|(other, _)| *other == letter).map(|(_, atom)| *atom)
    }
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormatItem {
    /// Text from the format, the same in every line.
    Text(Vec<u8>),
    /// Text from a built-in format.
    Fixed(&'static str),
    Atom(Atom),
    /// The first value of a request's field.
    RequestField(String),
    /// The first value of a response's field.
    ResponseField(String),
    /// A property of a connection by TLS.
    Tls(TlsAtom),
    /// All of them, as a member of a JSON object; nothing in plain HTTP.
    TlsMember,
    /// What a PROXY header says besides addresses.
    Proxy(ProxyAtom),
    /// All of that, as a member of a JSON object; nothing where there is nothing.
    ProxyMember,
}

/// A compiled format.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Format {
    pub(super) items: Vec<FormatItem>,
    /// Values are JSON, and unknown ones are `null`.
    pub(super) is_json: bool,
    pub(super) wants_address: bool,
    /// Fields of the response are wanted.
    pub(super) wants_response: bool,
    /// What the handshake has agreed on is wanted.
    pub(super) wants_tls: bool,
    pub(super) wants_proxy_info: bool,
}

impl Format {
    /// - `text`: the name of a standard format, or a format.
    ///
    /// # Errors
    /// [`FormatError`].
    pub(super) fn new(text: &str) -> Result<Self, FormatError> {
        let items = match text {
            "common" => parse(COMMON)?,
            "combined" => parse(COMBINED)?,
            "json" => json(),
            "brief" => BRIEF.to_vec(),
            own => parse(own)?,
        };
        let has = |wanted: fn(&FormatItem) -> bool| items.iter().any(wanted);
        Ok(Self {
            is_json: text == "json",
            wants_address: has(|item| *item == FormatItem::Atom(Atom::Address)),
            wants_response: has(|item| matches!(item, FormatItem::ResponseField(_))),
            wants_tls: has(|item| matches!(item, FormatItem::Tls(_) | FormatItem::TlsMember)),
            wants_proxy_info: has(|item| {
                matches!(item, FormatItem::Proxy(_) | FormatItem::ProxyMember)
            }),
            items,
        })
    }
}

fn json() -> Vec<FormatItem> {
    let mut items = Vec::new();
    for (place, (name, atom)) in JSON.iter().enumerate() {
        let before = if place == 0 { "{" } else { "," };
        push_text(&mut items, &format!("{before}\"{name}\":"));
        items.push(FormatItem::Atom(*atom));
    }
    items.push(FormatItem::TlsMember);
    items.push(FormatItem::ProxyMember);
    push_text(&mut items, "}");
    items
}

fn parse(format: &str) -> Result<Vec<FormatItem>, FormatError> {
    if let Some(at) = format.find(char::is_control) {
        return Err(FormatError::new(Expected::NoControl, format, at, 1));
    }
    if format.len() > FORMAT_BYTES_MAX || !format.contains('%') {
        return Err(FormatError::no_format(format));
    }
    let (mut items, mut at) = (Vec::new(), 0);
    while let Some(found) = format[at..].find('%') {
        push_text(&mut items, &format[at..at + found]);
        at += found;
        let rest = &format[at + 1..];
        if rest.starts_with('%') {
            push_text(&mut items, "%");
            at += 2;
            continue;
        }
        let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(")s"));
        let item = inside.and_then(|(name, _)| Some((item_of(name)?, name.len())));
        let Some((item, length)) = item else {
            let length = guess::extent(&format[at..]);
            return Err(FormatError::new(Expected::Atom, format, at, length));
        };
        match item {
            FormatItem::Text(bytes) => push_bytes(&mut items, &bytes),
            item => items.push(item),
        }
        at += "%()s".len() + length;
    }
    push_text(&mut items, &format[at..]);
    Ok(items)
}

/// Returns the item of an atom, by the text in its parentheses.
fn item_of(name: &str) -> Option<FormatItem> {
    if let Some((field, kind)) = name.strip_prefix('{').and_then(|name| name.rsplit_once('}')) {
        let is_name = !field.is_empty() && !field.contains(['{', '}', '(', ')', '%']);
        return match kind {
            _ if !is_name => None,
            "i" => Some(FormatItem::RequestField(field.to_owned())),
            "o" => Some(FormatItem::ResponseField(field.to_owned())),
            "e" => Some(FormatItem::Text(variable(field))),
            "x" => TlsAtom::of_name(field)
                .map(FormatItem::Tls)
                .or_else(|| ProxyAtom::of_name(field).map(FormatItem::Proxy)),
            _ => None,
        };
    }
    let mut letters = name.chars();
    let (letter, rest) = (letters.next()?, letters.next());
    match (letter, rest) {
        (_, Some(_)) => None,
        ('l', None) => Some(FormatItem::Text(b"-".to_vec())),
        ('p', None) => Some(FormatItem::Text(format!("<{}>", std::process::id()).into_bytes())),
        (letter, None) => Atom::of_letter(letter).map(FormatItem::Atom),
    }
}

/// Returns an environment variable as of the start: later changes have no effect.
fn variable(name: &str) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    let mut text = Vec::new();
    match value {
        Some(value) => super::escape::plain(value.as_bytes(), &mut text),
        None => text.push(b'-'),
    }
    text
}

fn push_text(items: &mut Vec<FormatItem>, text: &str) {
    push_bytes(items, text.as_bytes());
}

/// Adds text, joined with the text before it.
fn push_bytes(items: &mut Vec<FormatItem>, bytes: &[u8]) {
    match items.last_mut() {
        _ if bytes.is_empty() => {}
        Some(FormatItem::Text(before)) => before.extend_from_slice(bytes),
        _ => items.push(FormatItem::Text(bytes.to_vec())),
    }
}

/// The expected element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Format,
    Atom,
    NoControl,
}

/// An error in a format. `Display` is one line: expected, found, position, nearest atom.
#[derive(Clone, PartialEq, Eq)]
pub struct FormatError {
    expected: Expected,
    /// Counted in characters, from 1.
    position: usize,
    found: String,
    nearest: Option<String>,
}

/// The most characters that are shown of the found text.
const FOUND_CHARS_MAX: usize = 40;

impl FormatError {
    /// - `at`, `length`: the bytes that are wrong.
    fn new(expected: Expected, format: &str, at: usize, length: usize) -> Self {
        let found = format[at..].chars().scan(0, |used, one| {
            let is_in = *used < length;
            *used += one.len_utf8();
            is_in.then_some(one)
        });
        let found: String = found.take(FOUND_CHARS_MAX).collect();
        let nearest = (expected == Expected::Atom).then(|| guess::atom(&found)).flatten();
        Self { expected, position: format[..at].chars().count() + 1, found, nearest }
    }

    /// Creates the error of a format without an atom, or one that is too long.
    fn no_format(format: &str) -> Self {
        let found: String = format.chars().take(FOUND_CHARS_MAX).collect();
        let nearest = nearest(&found, NAMES.into_iter()).map(str::to_owned);
        Self { expected: Expected::Format, position: 1, found, nearest }
    }

    /// Returns the position of the error's first character, from 1.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the atom that was probably meant.
    pub fn nearest(&self) -> Option<&str> {
        self.nearest.as_deref()
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, position, found, nearest } = self;
        let text = match expected {
            Expected::Format => {
                "common, combined, json, brief, or a format of up to 4096 bytes with atoms"
            }
            Expected::Atom => "an atom such as %(h)s or %({host}i)s, or %% for a percent sign,",
            Expected::NoControl => "a format of one line without control characters",
        };
        write!(f, "expected {text} at position {position}, found {found:?}; ")?;
        match nearest {
            Some(nearest) => write!(f, "did you mean {nearest}?"),
            None => write!(f, "the letters are {}", guess::LETTERS),
        }
    }
}

impl std::error::Error for FormatError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(format: &str) -> Vec<FormatItem> {
        Format::new(format).expect("a format").items
    }

    fn said(format: &str) -> String {
        Format::new(format).expect_err("no format").to_string()
    }

    fn text(text: &str) -> FormatItem {
        FormatItem::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn text_and_atoms_alternate() {
        assert_eq!(
            items("a %(h)s%(s)s 100 %% %(l)s"),
            [
                text("a "),
                FormatItem::Atom(Atom::Address),
                FormatItem::Atom(Atom::Status),
                text(" 100 % -"),
            ]
        );
    }

    #[test]
    fn fields_have_names() {
        assert_eq!(
            items("%({X-Trace-Id}i)s|%({Content-Type}o)s"),
            [
                FormatItem::RequestField("X-Trace-Id".to_owned()),
                text("|"),
                FormatItem::ResponseField("Content-Type".to_owned()),
            ]
        );
    }

    #[test]
    fn properties_of_tls_have_names() {
        let protocol = TlsAtom::of_name("ssl_protocol").expect("a name");
        assert_eq!(
            items("%({ssl_protocol}x)s %({SSL_PROTOCOL}x)s"),
            [FormatItem::Tls(protocol), text(" "), FormatItem::Tls(protocol)]
        );
        assert!(Format::new("%({ssl_cipher}x)s").expect("a format").wants_tls);
        assert!(Format::new("json").expect("a format").wants_tls);
        assert!(!Format::new("combined").expect("a format").wants_tls);
    }

    #[test]
    fn what_does_not_change_becomes_text() {
        let id = std::process::id();
        assert_eq!(items("%(p)s"), [text(&format!("<{id}>"))]);
        assert_eq!(items("%({GUSTNADO_NO_SUCH_VARIABLE}e)s"), [text("-")]);
        let path = std::env::var("PATH").expect("tests have a PATH");
        if !path.contains(['"', '\\']) && path.is_ascii() {
            assert_eq!(items("%({PATH}e)s"), [text(&path)]);
        }
    }

    #[test]
    fn every_letter_is_an_atom_and_no_other() {
        for letter in ('!'..='~').filter(|letter| *letter != ')') {
            let is_known = "hlutrmUqHsBbfaTMDLp".contains(letter);
            let format = format!("%({letter})s");
            assert_eq!(Format::new(&format).is_ok(), is_known, "{format}");
        }
    }

    #[test]
    fn usual_formats_have_names() {
        assert_eq!(items("common"), items(COMMON));
        assert_eq!(items("combined"), items(COMBINED));
        let json = Format::new("json").expect("a usual format");
        assert!(json.is_json && json.wants_address && !json.wants_response);
        assert!(!Format::new("%(r)s").expect("a format").wants_address);
        assert!(Format::new("%({x}o)s").expect("a format").wants_response);
    }

    #[test]
    fn a_mistake_is_said_with_its_place_and_what_is_near() {
        assert_eq!(
            said("%(h)s é %(X)s"),
            "expected an atom such as %(h)s or %({host}i)s, or %% for a percent sign, at position \
             9, found \"%(X)s\"; the letters are hlutrmUqHsBbfaTMDLp"
        );
        for (format, position, nearest) in [
            ("%h", 1, "%(h)s"),
            ("%(h)s %>s", 7, "%(s)s"),
            ("%(h)", 1, "%(h)s"),
            ("%(h)d", 1, "%(h)s"),
            ("%(S)s", 1, "%(s)s"),
            ("a%(status)s", 2, "%(s)s"),
            ("%(user_agent)s", 1, "%(a)s"),
            ("%(mehtod)s", 1, "%(m)s"),
            ("%{Referer}i", 1, "%({Referer}i)s"),
            ("%({Referer})s", 1, "%({Referer}i)s"),
            ("%(Referer)s", 1, "%(f)s"),
            ("%{SSL_PROTOCOL}x", 1, "%({SSL_PROTOCOL}x)s"),
            ("%({ssl_protocl}x)s", 1, "%({ssl_protocol}x)s"),
            ("%(ssl_cipher)s", 1, "%({ssl_cipher}x)s"),
        ] {
            let error = Format::new(format).expect_err("no atom");
            assert_eq!((error.position(), error.nearest()), (position, Some(nearest)), "{format}");
        }
    }

    #[test]
    fn a_mistyped_name_finds_the_nearest() {
        assert!(said("comon").ends_with("found \"comon\"; did you mean common?"));
        assert!(said("").contains("expected common, combined, json, brief, or a format"));
        assert!(said("nothing in it").contains("the letters are hlut"));
        assert!(said(&"%(h)s".repeat(1000)).contains("4096"));
        assert!(said("%(h)s\n").contains("without control characters at position 6"));
    }

    #[test]
    fn a_lone_percent_sign_is_no_atom() {
        for format in ["%", "%(", "%()", "%()s", "%({}i)s", "%({a}x)s", "100%", "%(é)s", "%é"] {
            assert!(Format::new(format).is_err(), "{format}");
        }
    }
}
