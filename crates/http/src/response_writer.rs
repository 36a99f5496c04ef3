//! The answer's head, from status line to blank line (RFC 9112 §4, §5).
//!
//! What is written here cannot be split: names are tokens, values hold no control byte, and the
//! fields that frame the body are written by their own functions only.

use crate::fields::{FieldError, Fields, check_field};
use crate::status::Status;

/// Whether the connection goes on after an answer, and how that is said (RFC 9112 §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    /// To 1.1: it goes on, which needs no word.
    Default,
    /// To 1.0: it goes on, which must be said.
    KeepAlive,
    /// It goes on, and the answer calls itself 1.0.
    OldKeepAlive,
    /// It ends.
    Close,
    /// It ends, and the answer calls itself 1.0.
    OldClose,
}

impl Persist {
    /// The field line that says it, line end included; empty if none is needed.
    #[inline]
    pub const fn line(self) -> &'static [u8] {
        match self {
            Self::Default => b"",
            Self::KeepAlive | Self::OldKeepAlive => b"Connection: keep-alive\r\n",
            Self::Close | Self::OldClose => b"Connection: close\r\n",
        }
    }

    /// Whether the connection ends after the answer.
    #[inline]
    pub const fn ends(self) -> bool {
        self as u8 >= Self::Close as u8
    }

    /// Whether the answer calls itself 1.0.
    #[inline]
    pub const fn is_old(self) -> bool {
        matches!(self, Self::OldKeepAlive | Self::OldClose)
    }

    /// The same, but for the connection's end.
    #[must_use]
    pub const fn ended(self) -> Self {
        if self.is_old() { Self::OldClose } else { Self::Close }
    }

    /// The same in an answer that calls itself 1.0, where the connection's fate must be said.
    #[must_use]
    pub const fn old(self) -> Self {
        if self.ends() { Self::OldClose } else { Self::OldKeepAlive }
    }
}

/// Has the status line call itself 1.0, in a head of which so many bytes have been written.
#[cold]
#[inline(never)]
fn make_old(out: &mut [u8], written: usize) {
    let start = out.len() - written;
    out[start + MINOR_AT] = b'0';
}

/// Says what becomes of the connection, behind a status line and field lines of so many bytes.
#[inline(never)]
fn write_connection(out: &mut Vec<u8>, persist: Persist, written: usize) {
    let line = persist.line();
    out.extend_from_slice(line);
    // (Old answers always say it, so the others need not look.)
    if persist.is_old() {
        make_old(out, written + line.len());
    }
}

/// No line that says what becomes of the connection has more bytes.
const CONNECTION_LINE_MAX: usize = Persist::KeepAlive.line().len();

/// Where the minor version stands in a status line.
const MINOR_AT: usize = "HTTP/1.".len();

/// The interim answer that asks for the body (RFC 9110 §15.2.1).
pub const fn continue_100() -> &'static [u8] {
    b"HTTP/1.1 100 Continue\r\n\r\n"
}

/// Returns interim answers, which another one follows (RFC 9110 §15.2).
pub fn interim_heads(interim: &[(Status, Fields)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (status, fields) in interim {
        out.extend_from_slice(status.line());
        write_fields(&mut out, fields);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// What answers begin with: the status line, and the field lines of every answer (Server, Date).
///
/// Most answers are 200, so those begin with one piece that is ready.
#[derive(Clone, Debug)]
pub struct Opening(Vec<u8>);

const OK_LINE: &[u8] = Status::OK.line();
impl Opening {
    /// - `lines`: ready field lines, each with its line end. They are trusted: see [`check_field`].
    pub fn new(lines: &[u8]) -> Self {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        Self([OK_LINE, lines].concat())
    }

    /// The field lines.
    pub fn lines(&self) -> &[u8] {
        &self.0[OK_LINE.len()..]
    }

    /// What an answer of 200 begins with.
    pub fn of_ok(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>, status: Status) {
        if status == Status::OK {
            out.extend_from_slice(&self.0);
        } else {
            out.extend_from_slice(status.line());
            out.extend_from_slice(self.lines());
        }
    }
}

/// A head that has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenHead {
    /// The number of its status; 0 where nothing was written.
    pub status: u16,
    /// Its bytes, blank line and all.
    pub head_bytes: u32,
}

impl WrittenHead {
    /// The head of a response that was written with so many bytes, of which so many are content.
    #[inline]
    pub fn new(status: Status, bytes: usize, content_bytes: usize) -> Self {
        // (A head is short of 4 GiB by far; what a wrong one would say is wrong, and no more.)
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        Self { status: status.code(), head_bytes: (bytes - content_bytes) as u32 }
    }
}

/// The writer of one answer's head, at the end of a buffer that may already hold earlier answers.
#[must_use = "the head is not whole before `finish`"]
#[derive(Debug)]
pub struct ResponseWriter<'o> {
    out: &'o mut Vec<u8>,
    status: Status,
    /// Where it begins.
    start: usize,
}

impl<'o> ResponseWriter<'o> {
    /// Writes an answer of 200 out of ready parts: the way of cached answers.
    ///
    /// - `rest`: ready field lines, the blank line, and the body if there is one.
    ///
    /// The parts are trusted: make them with [`ResponseWriter::start`].
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    pub fn ready(out: &'o mut Vec<u8>, opening: &Opening, persist: Persist, rest: &[u8]) {
        debug_assert!(
            rest.starts_with(b"\r\n") || memchr::memmem::find(rest, b"\r\n\r\n").is_some()
        );
        out.reserve(opening.0.len() + CONNECTION_LINE_MAX + rest.len());
        out.extend_from_slice(opening.of_ok());
        if persist != Persist::Default {
            write_connection(out, persist, opening.of_ok().len());
        }
        out.extend_from_slice(rest);
    }

    /// Writes an answer whose content is at hand: the way of handlers that are done at once.
    ///
    /// - `lead`: ready, from the status line to `Content-Length: ` without its value.
    /// - `fields`: more fields.
    /// - `length`: bytes of the content.
    /// - `content`: the content, or nothing for HEAD.
    ///
    /// The lead is trusted, as in [`ResponseWriter::ready`].
    #[inline]
    pub fn sized(
        out: &'o mut Vec<u8>,
        lead: &[u8],
        persist: Persist,
        fields: &Fields,
        length: u64,
        content: &[u8],
    ) {
        debug_assert!(lead.ends_with(b"Content-Length: "));
        let connection = persist.line();
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(length).as_bytes();
        out.reserve(lead.len() + digits.len() + connection.len() + 4 + content.len());
        out.extend_from_slice(lead);
        out.extend_from_slice(digits);
        if connection.is_empty() && fields.is_empty() {
            out.extend_from_slice(b"\r\n\r\n");
        } else {
            let before = out.len();
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(connection);
            write_fields(out, fields);
            out.extend_from_slice(b"\r\n");
            // (Old answers always say it, so the others need not look.)
            if persist.is_old() {
                let fields_bytes = out.len() - before;
                make_old(out, lead.len() + digits.len() + fields_bytes);
            }
        }
        out.extend_from_slice(content);
    }

    /// Starts an answer's head.
    pub fn start(
        out: &'o mut Vec<u8>,
        status: Status,
        opening: &Opening,
        persist: Persist,
    ) -> Self {
        let before = out.len();
        opening.write(out, status);
        out.extend_from_slice(persist.line());
        if persist.is_old() {
            let written = out.len() - before;
            make_old(out, written);
        }
        Self { out, status, start: before }
    }

    /// Writes one field line.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is written, if the line could split the answer or misframe its
    /// body.
    pub fn field(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        check_field(name, value)?;
        self.line(name.as_bytes(), value);
        Ok(())
    }

    /// Writes a field line that is known to be well formed.
    #[inline]
    pub fn constant(&mut self, name: &'static str, value: &'static str) {
        debug_assert!(check_field(name, value.as_bytes()).is_ok());
        self.line(name.as_bytes(), value.as_bytes());
    }

    /// Writes a line for each field.
    #[inline]
    pub fn fields(&mut self, fields: &Fields) {
        if !fields.is_empty() {
            write_fields(self.out, fields);
        }
    }

    /// Writes `Content-Length`, in bytes. Call it once. Where the status bars it (1xx, 204; RFC
    /// 9110 §8.6) nothing is written.
    pub fn content_length(&mut self, bytes: u64) {
        if self.status.may_have_length() {
            self.line(b"Content-Length", itoa::Buffer::new().format(bytes).as_bytes());
        }
    }

    /// Writes `Transfer-Encoding: chunked`, for a body made with [`crate::chunk`]. Call it instead
    /// of [`ResponseWriter::content_length`], and to a 1.1 client only.
    pub fn chunked(&mut self) {
        if self.status.may_have_length() {
            self.line(b"Transfer-Encoding", b"chunked");
        }
    }

    /// Writes the blank line. The body, if there is one, comes right after it.
    pub fn finish(self) -> WrittenHead {
        self.out.extend_from_slice(b"\r\n");
        WrittenHead::new(self.status, self.out.len() - self.start, 0)
    }

    fn line(&mut self, name: &[u8], value: &[u8]) {
        write_line(self.out, name, value);
    }
}

/// Writes one field line (RFC 9112 §5). It is trusted: see [`check_field`].
pub(crate) fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Writes a line for each field (RFC 9112 §5).
pub fn write_fields(out: &mut Vec<u8>, fields: &Fields) {
    out.reserve(fields.heap_bytes()); // about as many bytes as their lines have
    for (name, value) in fields.iter_bytes() {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

/// Whether ready field lines have a field of that name.
pub fn has_field(lines: &[u8], name: &str) -> bool {
    field_values(lines, name).next().is_some()
}

/// Returns the values of that name in ready field lines.
pub fn field_values<'l>(lines: &'l [u8], name: &'l str) -> impl Iterator<Item = &'l [u8]> {
    lines.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (start, rest) = line.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":")?;
        start.eq_ignore_ascii_case(name.as_bytes()).then_some(value.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::{Opening, Persist, ResponseWriter, field_values, has_field};
    use crate::fields::{FieldError, Fields};
    use crate::status::Status;

    fn opening() -> Opening {
        Opening::new(b"Server: x\r\n")
    }

    fn fields() -> Fields {
        let mut fields = Fields::new();
        fields.add("A", "b").expect("a good field");
        fields
    }

    #[test]
    fn an_answer_is_written_behind_the_one_before() {
        let mut out = b"before".to_vec();
        let mut writer = ResponseWriter::start(&mut out, Status::OK, &opening(), Persist::Close);
        writer.field("X-Y", b"a \xe9\t").expect("a good field");
        writer.content_length(12);
        writer.finish();
        let want = b"beforeHTTP/1.1 200 OK\r\nServer: x\r\nConnection: close\r\n\
            X-Y: a \xe9\t\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(out.escape_ascii().to_string(), want.escape_ascii().to_string());
    }

    #[test]
    fn ready_parts_make_the_same_answer() {
        for persist in [Persist::Default, Persist::KeepAlive, Persist::Close] {
            let (mut one, mut two) = (Vec::new(), Vec::new());
            let mut writer = ResponseWriter::start(&mut one, Status::OK, &opening(), persist);
            writer.content_length(0);
            writer.finish();
            let rest = b"Content-Length: 0\r\n\r\n";
            ResponseWriter::ready(&mut two, &opening(), persist, rest);
            assert_eq!(one, two);
        }
    }

    #[test]
    fn an_old_answer_says_so_and_what_becomes_of_the_connection() {
        for (persist, line) in
            [(Persist::Default.old(), "keep-alive"), (Persist::Close.old(), "close")]
        {
            let mut out = b"before".to_vec();
            let rest = b"Content-Length: 0\r\n\r\n";
            ResponseWriter::ready(&mut out, &opening(), persist, rest);
            let lead = [opening().of_ok(), b"Content-Length: "].concat();
            ResponseWriter::sized(&mut out, &lead, persist, &fields(), 0, b"");
            let mut writer =
                ResponseWriter::start(&mut out, Status::NOT_FOUND, &opening(), persist);
            writer.content_length(0);
            writer.finish();
            let head = |status: &str| format!("HTTP/1.0 {status}\r\nServer: x\r\n");
            let (said, none) = (format!("Connection: {line}\r\n"), "Content-Length: 0\r\n");
            let (ok, missing) = (head("200 OK"), head("404 Not Found"));
            let want = format!(
                "before{ok}{said}{none}\r\n{ok}{none}{said}A: b\r\n\r\n\
                 {missing}{said}{none}\r\n"
            );
            assert_eq!(String::from_utf8(out).expect("ASCII"), want);
            assert_eq!((persist.ends(), persist.ended()), (line == "close", Persist::OldClose));
        }
    }

    #[test]
    fn content_at_hand_makes_the_same_answer() {
        for persist in [Persist::Default, Persist::KeepAlive, Persist::Close] {
            let mut sized = Vec::new();
            let lead = [opening().of_ok(), b"Content-Length: "].concat();
            ResponseWriter::sized(&mut sized, &lead, persist, &fields(), 3, b"abc");
            let text = String::from_utf8(sized).expect("ASCII");
            let connection = std::str::from_utf8(persist.line()).expect("ASCII");
            let head = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n";
            assert_eq!(text, format!("{head}{connection}A: b\r\n\r\nabc"));
        }
    }

    #[test]
    fn nothing_can_split_an_answer() {
        let mut out = Vec::new();
        let mut writer =
            ResponseWriter::start(&mut out, Status::OK, &Opening::new(b""), Persist::Default);
        for name in ["", "a b", "a:", "a\r\n", "a\r\nb: c", "é", "a\0"] {
            assert_eq!(writer.field(name, b"v"), Err(FieldError::Name), "{name:?}");
        }
        for value in [b"a\r\nb: c".as_slice(), b"\n", b"\r", b"\0", b"a\x7f", b"\r\n\r\nbody"] {
            assert_eq!(writer.field("X", value), Err(FieldError::Value));
        }
        for name in ["content-length", "Transfer-Encoding", "CONNECTION"] {
            assert_eq!(writer.field(name, b"0"), Err(FieldError::Framing), "{name}");
        }
        writer.finish();
        assert_eq!(out, b"HTTP/1.1 200 OK\r\n\r\n");
    }

    #[test]
    fn a_status_that_bars_a_length_gets_none() {
        for (status, lines) in [(Status::NO_CONTENT, 0), (Status::NOT_MODIFIED, 1), (Status::OK, 1)]
        {
            let mut out = Vec::new();
            let mut writer =
                ResponseWriter::start(&mut out, status, &Opening::new(b""), Persist::Default);
            writer.content_length(5);
            writer.finish();
            let text = String::from_utf8(out).expect("ASCII");
            assert_eq!(text.matches("Content-Length").count(), lines, "{status}");
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name_in_any_case() {
        let lines = b"Server: x\r\nX-Long: y\r\n";
        assert!(has_field(lines, "server") && has_field(lines, "X-LONG"));
        assert!(!has_field(lines, "X") && !has_field(lines, "y") && !has_field(b"", "X"));
        let values: Vec<&[u8]> = field_values(b"A: b, c\r\nB: d\r\na: e\r\n", "A").collect();
        assert_eq!(values, [b"b, c".as_slice(), b"e"]);
    }
}
