//! The text of HTTP/1.1: heads that are read, and heads that are written.

use gustnado_http::fields::FieldName;
use gustnado_http::h2::hpack::Encoder;
use gustnado_http::request::FieldLines;
use gustnado_http::status::Status;

/// Text that means nothing in HTTP/2. A test that sends it is one of HTTP/1, and is to say so.
#[derive(Debug)]
pub(super) struct Fault(String);

impl Fault {
    pub(super) fn new(what: &str, text: &[u8]) -> Self {
        let start = &text[..text.len().min(200)];
        Self(format!("HTTP/2 has no words for {what}: {}", start.escape_ascii()))
    }

    pub(super) fn into_message(self) -> String {
        self.0
    }
}

/// Names and values.
pub(super) type FieldList = Vec<(String, Vec<u8>)>;

/// A head as the server's HTTP/2 side takes it.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) authority: Option<String>,
    pub(super) fields: FieldList,
    pub(super) length: Option<u64>,
    pub(super) is_chunked: bool,
    /// It asks for the end of the connection.
    pub(super) closes: bool,
}

impl RequestHead {
    /// Reads a head, blank line included.
    pub(super) fn read(text: &[u8]) -> Result<Self, Fault> {
        let end = line_end(text).unwrap_or_default();
        let line = std::str::from_utf8(&text[..end]).unwrap_or_default();
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version @ ("HTTP/1.1" | "HTTP/1.0")), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(Self::malformed(line));
        };
        let mut head = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            authority: None,
            fields: Vec::new(),
            length: None,
            is_chunked: false,
            closes: version == "HTTP/1.0",
        };
        let mut hosts = 0;
        for (name, value) in read_fields(&text[end + 2..text.len() - 2])? {
            hosts += usize::from(name == "host");
            head.take(name, value, text)?;
        }
        let is_framed_twice = head.is_chunked && head.length.is_some();
        if hosts > 1 || is_framed_twice {
            return Err(Fault::new("these fields", text));
        }
        head.place();
        Ok(head)
    }

    /// What HTTP/2 has for a line that is no request line: a head that is none either.
    fn malformed(line: &str) -> Self {
        Self {
            method: line.to_owned(),
            target: String::new(),
            authority: None,
            fields: Vec::new(),
            length: None,
            is_chunked: false,
            closes: true,
        }
    }

    fn take(&mut self, name: String, value: Vec<u8>, text: &[u8]) -> Result<(), Fault> {
        let shown = String::from_utf8_lossy(&value).to_ascii_lowercase();
        match &*name {
            "host" => self.authority = Some(String::from_utf8_lossy(&value).into_owned()),
            "connection" => self.closes |= shown.split(',').any(|word| word.trim() == "close"),
            "transfer-encoding" if shown != "chunked" || self.is_chunked => {
                return Err(Fault::new("another coding", text));
            }
            "transfer-encoding" => self.is_chunked = true,
            "te" if shown.split(',').any(|word| word.trim() == "trailers") => {
                self.fields.push((name, b"trailers".to_vec()));
            }
            "te" => {}
            "content-length" => {
                let bytes = shown.bytes().all(|byte| byte.is_ascii_digit());
                let bytes = bytes.then(|| shown.parse().ok()).flatten();
                if bytes.is_none() || self.length.is_some() {
                    return Err(Fault::new("this length", text));
                }
                self.length = bytes;
                self.fields.push((name, value));
            }
            _ if is_of_http1(&name) => {}
            _ => self.fields.push((name, value)),
        }
        Ok(())
    }

    /// Splits a target in absolute form (RFC 9112 §3.2.2), which HTTP/2 has in two fields.
    fn place(&mut self) {
        let Some((scheme, rest)) = self.target.split_once("://") else { return };
        if scheme.eq_ignore_ascii_case("http") {
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(at);
            self.authority = Some(authority.to_owned());
            self.target = match path {
                "" if self.method == "OPTIONS" => "*".to_owned(),
                "" => "/".to_owned(),
                path if path.starts_with('?') => format!("/{path}"),
                path => path.to_owned(),
            };
        }
    }

    /// Writes it as a block of fields (RFC 9113 §8.3.1).
    pub(super) fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        let mut pseudo = vec![(":method", &*self.method)];
        if self.method == "CONNECT" {
            // RFC 9113 §8.5.
            pseudo.push((":authority", &*self.target));
        } else {
            pseudo.extend([(":scheme", "http"), (":path", &*self.target)]);
            pseudo.extend(self.authority.iter().map(|value| (":authority", &**value)));
        }
        for (name, value) in pseudo {
            encoder.field(FieldName::from(name), value.as_bytes(), out);
        }
        for (name, value) in &self.fields {
            encoder.field(FieldName::from(&**name), value, out);
        }
    }
}

/// Whether a field is about a connection of HTTP/1, and has no place in HTTP/2 (RFC 9113 §8.2.2).
pub(super) fn is_of_http1(name: &str) -> bool {
    let those = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    those.contains(&name)
}

/// Reads field lines, each with its line end. Names become lower-case.
pub(super) fn read_fields(section: &[u8]) -> Result<FieldList, Fault> {
    let (mut fields, mut rest) = (Vec::new(), section);
    while let Some(end) = line_end(rest) {
        let (line, behind) = (&rest[..end], &rest[end + 2..]);
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| Fault::new("a line without a colon", line))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"-_!#$%&'*+.^`|~".contains(byte);
        let is_value = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0);
        if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_value) {
            return Err(Fault::new("a field", line));
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        fields.push((name, value.to_vec()));
        rest = behind;
    }
    Ok(fields)
}

/// Where the first line ends.
pub(super) fn line_end(text: &[u8]) -> Option<usize> {
    text.windows(2).position(|window| window == b"\r\n")
}

/// Writes a status line.
pub(super) fn write_status(status: u16, out: &mut Vec<u8>) {
    let known = Status::ALL.iter().find(|known| known.code() == status);
    let reason = known.map_or("", |known| known.reason());
    out.extend_from_slice(format!("HTTP/1.1 {status} {reason}\r\n").as_bytes());
}

/// Writes fields by the names that HTTP/1 texts have them by, such as `Content-Type`.
pub(super) fn write_fields(fields: FieldLines<'_>, out: &mut Vec<u8>) {
    for (name, value) in fields {
        match name {
            b"etag" => out.extend_from_slice(b"ETag"),
            b"www-authenticate" => out.extend_from_slice(b"WWW-Authenticate"),
            _ => {
                let mut is_first = true;
                for byte in name {
                    out.push(if is_first { byte.to_ascii_uppercase() } else { *byte });
                    is_first = *byte == b'-';
                }
            }
        }
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}
