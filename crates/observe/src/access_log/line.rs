//! One line: the values of a format's atoms for one request.

use std::cell::RefCell;
use std::time::Duration;

use gustnado_http::credentials::Credentials;
use gustnado_http::date::imf_fixdate;
use gustnado_http::head::Version;
use gustnado_http::proxy::ProxyInfo;
use gustnado_http::request::RequestView;
use gustnado_tls::{TlsInfo, TlsProperty};

use super::escape;
use super::format::{Atom, Format, FormatItem};
use super::proxy_atom;
use super::tls_atom::{self, TlsAtom};

/// The known properties of a request and its response.
pub(crate) struct Line<'a> {
    pub(crate) address: Option<&'a str>,
    pub(crate) unix_secs: u64,
    pub(crate) took: Duration,
    pub(crate) request: LoggedRequest<'a>,
    /// `None` if there was no response.
    pub(crate) status: Option<u16>,
    /// Bytes of the response's content that the kernel has taken.
    pub(crate) bytes: u64,
    /// The response's head, if the format needs it.
    pub(crate) response: &'a [u8],
    /// What the connection's handshake has agreed on, if the format needs it.
    pub(crate) tls: Option<&'a TlsInfo>,
    /// What a PROXY header says besides addresses, if the format needs it.
    pub(crate) proxy_info: Option<&'a ProxyInfo>,
}

/// The request, as far as it was received.
#[derive(Clone, Copy)]
pub(crate) enum LoggedRequest<'a> {
    Request(RequestView<'a>),
    /// The first line of a refused request.
    Refused(&'a [u8]),
    /// No complete line was received.
    Unknown,
}

/// A value of a line. In plain text, the format has quotes around some of them.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// Text that may contain spaces.
    Text(Option<&'a [u8]>),
    /// Text that contains none.
    Word(Option<&'a [u8]>),
    Number(Option<u64>),
    /// Text that needs no escaping.
    Ready(&'a [u8]),
}

impl Format {
    /// Writes a line and its end.
    pub(super) fn write(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        for item in &self.items {
            match item {
                FormatItem::Text(text) => out.extend_from_slice(text),
                FormatItem::Fixed(text) => out.extend_from_slice(text.as_bytes()),
                FormatItem::Atom(atom) => self.write_atom(*atom, line, out),
                FormatItem::RequestField(name) => self.put(Value::Text(line.field(name)), out),
                FormatItem::ResponseField(name) => {
                    self.put(Value::Text(response_field(line.response, name)), out);
                }
                FormatItem::Tls(atom) => {
                    let value = line.tls.and_then(|tls| atom.value(tls));
                    let is_subject = *atom == TlsAtom::Text(TlsProperty::ClientSubject);
                    self.put(if is_subject { Value::Text(value) } else { Value::Word(value) }, out);
                }
                FormatItem::TlsMember => {
                    if let Some(tls) = line.tls {
                        let put = |value: Option<&[u8]>, out: &mut _| {
                            self.put(Value::Text(value), out);
                        };
                        tls_atom::write_json(tls, out, put);
                    }
                }
                FormatItem::Proxy(atom) => {
                    let value = line.proxy_info.and_then(|info| atom.value(info));
                    self.put(Value::Word(value), out);
                }
                FormatItem::ProxyMember => {
                    if let Some(info) = line.proxy_info {
                        let put = |value: Option<&[u8]>, out: &mut _| {
                            self.put(Value::Text(value), out);
                        };
                        proxy_atom::write_json(info, out, put);
                    }
                }
            }
        }
        out.push(b'\n');
    }

    fn write_atom(&self, atom: Atom, line: &Line<'_>, out: &mut Vec<u8>) {
        let took = line.took;
        let value = match atom {
            Atom::Address => Value::Word(line.address.map(str::as_bytes)),
            Atom::User => return self.put(Value::Word(line.user().as_deref()), out),
            Atom::Time if self.is_json => return write_time(line.unix_secs, Second::json, out),
            Atom::Time => return write_time(line.unix_secs, Second::plain, out),
            Atom::Clock => return write_time(line.unix_secs, Second::clock, out),
            Atom::RequestLine => return self.write_request_line(line, out),
            Atom::Method => Value::Word(line.method()),
            Atom::Target => Value::Word(line.target()),
            Atom::Path => Value::Word(line.path()),
            Atom::Query => match line.query() {
                // As in gunicorn, a request without a query has an empty one.
                Some(b"") if !self.is_json => Value::Ready(b""),
                query => Value::Word(query),
            },
            Atom::Protocol => Value::Word(line.protocol()),
            Atom::Status => Value::Number(line.status.map(u64::from)),
            Atom::BytesOrDash if line.bytes == 0 => Value::Number(None),
            Atom::Bytes | Atom::BytesOrDash => Value::Number(Some(line.bytes)),
            Atom::Referer => Value::Text(line.field("Referer")),
            Atom::Agent => Value::Text(line.field("User-Agent")),
            Atom::Seconds => Value::Number(Some(took.as_secs())),
            Atom::Millis => Value::Number(u64::try_from(took.as_millis()).ok()),
            Atom::Micros => Value::Number(u64::try_from(took.as_micros()).ok()),
            Atom::DecimalMillis => {
                let (whole, tenths) = (took.as_millis(), took.subsec_micros() % 1_000 / 100);
                return out.extend_from_slice(format!("{whole}.{tenths}").as_bytes());
            }
            Atom::DecimalSeconds => {
                let text = format!("{}.{:06}", took.as_secs(), took.subsec_micros());
                return out.extend_from_slice(text.as_bytes());
            }
        };
        self.put(value, out);
    }

    fn put(&self, value: Value<'_>, out: &mut Vec<u8>) {
        let unknown: &[u8] = if self.is_json { b"null" } else { b"-" };
        match value {
            Value::Ready(text) => out.extend_from_slice(text),
            Value::Number(Some(number)) => {
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            Value::Text(Some(text)) | Value::Word(Some(text)) if self.is_json => {
                escape::json(text, out);
            }
            Value::Text(None | Some(b"")) | Value::Word(None | Some(b"")) | Value::Number(None) => {
                out.extend_from_slice(unknown);
            }
            Value::Text(Some(text)) => escape::plain(text, out),
            Value::Word(Some(text)) => escape::word(text, out),
        }
    }

    fn write_request_line(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        match line.request {
            // A checked head holds only visible ASCII, which still may include quotes.
            LoggedRequest::Request(view) => {
                out.extend_from_slice(view.method_token());
                out.push(b' ');
                escape::plain(view.target(), out);
                out.push(b' ');
                out.extend_from_slice(version(view));
            }
            LoggedRequest::Refused(first) => self.put(Value::Text(Some(first)), out),
            LoggedRequest::Unknown => self.put(Value::Text(None), out),
        }
    }
}

impl<'a> Line<'a> {
    fn method(&self) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => Some(view.method_token()),
            LoggedRequest::Refused(first) => parts(first).map(|(method, ..)| method),
            LoggedRequest::Unknown => None,
        }
    }

    fn target(&self) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => Some(view.target()),
            LoggedRequest::Refused(first) => parts(first).map(|(_, target, _)| target),
            LoggedRequest::Unknown => None,
        }
    }

    fn path(&self) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => Some(view.path()),
            LoggedRequest::Refused(first) => {
                parts(first).map(|(_, target, _)| split_query(target).0)
            }
            LoggedRequest::Unknown => None,
        }
    }

    fn query(&self) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => Some(view.query().unwrap_or_default()),
            LoggedRequest::Refused(first) => {
                parts(first).map(|(_, target, _)| split_query(target).1)
            }
            LoggedRequest::Unknown => None,
        }
    }

    fn protocol(&self) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => Some(version(view)),
            LoggedRequest::Refused(first) => parts(first).map(|(.., protocol)| protocol),
            LoggedRequest::Unknown => None,
        }
    }

    fn field(&self, name: &str) -> Option<&'a [u8]> {
        match self.request {
            LoggedRequest::Request(view) => view.field(name),
            _ => None,
        }
    }

    /// Returns the name in the `Authorization` field (RFC 7617 §2), whose password nothing here
    /// checks.
    fn user(&self) -> Option<Vec<u8>> {
        let credentials = Credentials::parse(self.field("Authorization")?)?;
        Some(credentials.user().to_vec())
    }
}

fn version(view: RequestView<'_>) -> &'static [u8] {
    match view.version() {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// Splits a line, which may be malformed, into method, target and version.
fn parts(first: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let method = first.iter().position(|byte| *byte == b' ')?;
    let protocol = first.iter().rposition(|byte| *byte == b' ')?;
    let target = first.get(method + 1..protocol)?;
    Some((&first[..method], target, &first[protocol + 1..]))
}

fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, b""),
    }
}

/// Returns the first value of a field in a response's head.
fn response_field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| line[colon + 1..].trim_ascii())
    })
}

/// A second in all its notations.
struct Second {
    unix_secs: u64,
    plain: Vec<u8>,
    json: Vec<u8>,
}

thread_local! {
    /// The last second that was written: most lines of a busy server share it.
    static SECOND: RefCell<Option<Second>> = const { RefCell::new(None) };
}

/// Writes a second in one notation.
fn write_time(unix_secs: u64, way: fn(&Second) -> &[u8], out: &mut Vec<u8>) {
    let of = |second: &Second, out: &mut Vec<u8>| out.extend_from_slice(way(second));
    // A thread that ends may have dropped it already.
    let written = SECOND.try_with(|last| {
        let mut last = last.borrow_mut();
        match &*last {
            Some(second) if second.unix_secs == unix_secs => of(second, out),
            _ => of(last.insert(Second::of(unix_secs)), out),
        }
    });
    if written.is_err() {
        of(&Second::of(unix_secs), out);
    }
}

impl Second {
    fn of(unix_secs: u64) -> Self {
        const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let date = imf_fixdate(unix_secs);
        let text = std::str::from_utf8(&date).expect("a date is ASCII");
        let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
        let is_it = |name: &[u8]| name == month.as_bytes();
        let number = MONTHS.chunks(3).position(is_it).map_or(0, |place| place + 1);
        let plain = format!("[{day}/{month}/{year}:{time} +0000]").into_bytes();
        let json = format!("\"{year}-{number:02}-{day}T{time}Z\"").into_bytes();
        Self { unix_secs, plain, json }
    }

    /// Returns `[06/Nov/1994:08:49:37 +0000]`.
    fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Returns `"1994-11-06T08:49:37Z"`.
    fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns `08:49:37Z`.
    fn clock(&self) -> &[u8] {
        let at = r#""1994-11-06T"#.len();
        &self.json[at..at + "08:49:37Z".len()]
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
