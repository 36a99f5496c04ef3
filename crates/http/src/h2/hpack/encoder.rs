//! From fields to a block of fields (RFC 7541 §6).

use std::num::NonZero;

use super::table::HpackTable;
use super::{ENTRY_BYTES, TABLE_BYTES, huffman, integer, static_table};
use crate::fields::{FieldName, Fields, HeaderId};

/// Index of the first entry of the table that both sides build.
const DYNAMIC: usize = static_table::COUNT + 1;

/// Values above this are not kept in the table: they would push out many others.
const KEPT_BYTES_MAX: usize = 256;

/// The state of one direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    table: HpackTable,
    /// The peer is to be told the table's size before the next field, and this smallest one that it
    /// had since the last time, plus 1.
    resized: Option<NonZero<u16>>,
    lines: KnownLines,
    /// How many of the lines but the date there are.
    line_count: u8,
    /// Says which type of content has last become an entry, and the number of that; 0: none has.
    type_of: u8,
    content_type: u32,
}

/// The field lines of every response, where the table has them.
#[derive(Debug, Default)]
struct KnownLines {
    /// Says which lines they are: see [`ResponseLines`].
    of: u32,
    /// The lower half of the time: it differs from one second to the next.
    secs: u32,
    /// The number of the first entry that was added for them, and of that for the date.
    fixed: u32,
    date: u32,
}

/// The fields of every response (Server, Date), as a turn's responses share them.
#[derive(Clone, Debug)]
pub struct ResponseLines {
    /// Differs for other fields.
    of: u32,
    fixed: Fields,
    secs: u64,
    date: [u8; 29],
}

impl ResponseLines {
    /// - `of`: a number that is another one for other fields; not 0.
    /// - `fixed`: the fields but the date.
    /// - `secs`, `date`: the time, and its text (RFC 9110 §5.6.7).
    pub fn new(of: u32, fixed: Fields, secs: u64, date: [u8; 29]) -> Self {
        Self { of, fixed, secs, date }
    }

    /// Returns the fields but the date.
    pub fn fixed(&self) -> &Fields {
        &self.fixed
    }

    /// Returns the date's text.
    pub fn date(&self) -> &[u8] {
        &self.date
    }

    #[inline]
    fn low_secs(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let secs = self.secs as u32;
        secs
    }

    /// Returns whether they are these of this second.
    #[inline]
    pub fn is(&self, of: u32, secs: u64) -> bool {
        self.of == of && self.secs == secs
    }
}

impl Encoder {
    /// An encoder with a table of the size that the peer has until it says otherwise.
    pub fn new() -> Self {
        Self {
            table: HpackTable::new(TABLE_BYTES),
            resized: None,
            lines: KnownLines::default(),
            line_count: 0,
            type_of: 0,
            content_type: 0,
        }
    }

    /// Takes the setting of the peer for how large the table may be.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        let max = max_bytes.min(TABLE_BYTES);
        if max == self.table.max() && self.resized.is_none() {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "4,096 at most")]
        let last = NonZero::<u16>::MIN.saturating_add(max as u16);
        self.resized = Some(self.resized.map_or(last, |smallest| smallest.min(last)));
        self.table.set_max(max);
    }

    /// Returns how much memory its table takes.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Begins a block.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.resized.is_some() {
            self.write_sizes(out);
        }
    }

    #[cold]
    fn write_sizes(&mut self, out: &mut Vec<u8>) {
        let Some(smallest) = self.resized.take() else { return };
        let (smallest, last) = (usize::from(smallest.get()) - 1, self.table.max());
        if smallest < last {
            integer::write(smallest, 5, 0x20, out);
        }
        integer::write(last, 5, 0x20, out);
    }

    /// Writes `:status`.
    #[inline]
    pub fn status(&mut self, code: u16, out: &mut Vec<u8>) {
        match static_table::status_index(code) {
            Ok(index) => integer::write(index, 7, 0x80, out),
            Err(name) => {
                let digits = [code / 100, code / 10 % 10, code % 10];
                #[expect(clippy::cast_possible_truncation, reason = "each is a digit")]
                let digits = digits.map(|digit| b'0' + digit as u8);
                self.write(Some(name), b":status", &digits, out);
            }
        }
    }

    /// Writes the pseudo fields of a request (RFC 9113 §8.3.1).
    ///
    /// - `keeps_path`: the path comes again, so that the table is to have it.
    pub fn request_line(
        &mut self,
        (method, is_tls): (&str, bool),
        (authority, path): (&[u8], &[u8]),
        keeps_path: bool,
        out: &mut Vec<u8>,
    ) {
        match method {
            "GET" => out.push(0x80 | static_table::METHOD_GET),
            "POST" => out.push(0x80 | (static_table::METHOD_GET + 1)),
            _ => self.write(Some(2), b":method", method.as_bytes(), out),
        }
        out.push(0x80 | (static_table::SCHEME_HTTP + u8::from(is_tls)));
        self.write(Some(1), b":authority", authority, out);
        let of_path = usize::from(static_table::PATH);
        match path {
            b"/" => out.push(0x80 | static_table::PATH),
            _ if keeps_path => self.write(Some(of_path), b":path", path, out),
            _ => write_literal(0, 4, Some(of_path), b":path", path, out),
        }
    }

    /// Returns a number that changes with the table: a block that was written without a change of
    /// it means the same for as long as it stays.
    #[inline]
    pub fn table_number(&self) -> u32 {
        self.table.added()
    }

    /// Returns whether the next block begins with a change of the table's size.
    #[inline]
    pub fn is_resized(&self) -> bool {
        self.resized.is_some()
    }

    /// Writes the fields of every response.
    #[inline]
    pub fn lines(&mut self, lines: &ResponseLines, out: &mut Vec<u8>) {
        let known = &self.lines;
        let is_known = known.of == lines.of
            && known.secs == lines.low_secs()
            && self.place(known.fixed).is_some()
            && self.place(known.date).is_some();
        if !is_known {
            return self.write_lines(lines, out);
        }
        let (fixed, date, count) = (known.fixed, known.date, u32::from(self.line_count));
        for number in (fixed..fixed.wrapping_add(count)).chain([date]) {
            let place = self.table.added().wrapping_sub(number) as usize - 1;
            integer::write(DYNAMIC + place, 7, 0x80, out);
        }
    }

    /// Writes them without those that a response replaces.
    #[cold]
    pub fn lines_but(
        &mut self,
        lines: &ResponseLines,
        (has_date, has_server): (bool, bool),
        out: &mut Vec<u8>,
    ) {
        for (name, value) in lines.fixed.iter() {
            if !(has_server && name.id() == Some(HeaderId::Server)) {
                self.field(name, value, out);
            }
        }
        if !has_date {
            write_unindexed(HeaderId::Date.into(), &lines.date, out);
        }
    }

    /// Returns the place of an entry by its number, if it is still there.
    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        let place = (self.table.added().wrapping_sub(number) as usize).wrapping_sub(1);
        (place < self.table.len()).then_some(place)
    }

    #[cold]
    #[inline(never)]
    fn write_lines(&mut self, lines: &ResponseLines, out: &mut Vec<u8>) {
        let is_same = self.lines.of == lines.of && self.place(self.lines.fixed).is_some();
        if is_same {
            let known = &self.lines;
            let numbers = known.fixed..known.fixed.wrapping_add(u32::from(self.line_count));
            for number in numbers {
                let place = self.table.added().wrapping_sub(number) as usize - 1;
                integer::write(DYNAMIC + place, 7, 0x80, out);
            }
        } else {
            let first = self.table.added();
            for (name, value) in lines.fixed.iter() {
                self.add(name, value, out);
            }
            let count = self.table.added().wrapping_sub(first);
            // Where not all of them fit into the table, they are written anew each time.
            let whole =
                u8::try_from(count).ok().filter(|count| usize::from(*count) == lines.fixed.len());
            self.line_count = whole.unwrap_or(0);
            let of = if whole.is_some() { lines.of } else { 0 };
            self.lines = KnownLines { of, fixed: first, ..KnownLines::default() };
        }
        let number = self.table.added();
        self.add(HeaderId::Date.into(), &lines.date, out);
        (self.lines.date, self.lines.secs) = (number, lines.low_secs());
    }

    /// Writes a field of every response, and keeps it for the next one.
    fn add(&mut self, name: FieldName<'_>, value: &[u8], out: &mut Vec<u8>) {
        let mut lower = [0; NAME_BYTES];
        let index = name.id().and_then(static_table::name_index);
        match lowered(name.as_str().as_bytes(), &mut lower) {
            Some(lower) if lower.len() + value.len() + ENTRY_BYTES <= self.table.max() => {
                write_literal(0x40, 6, index, lower, value, out);
                self.table.add(lower, value);
            }
            _ => write_as(0, name, value, out),
        }
    }

    /// Writes a field as an entry of the table, or as one that becomes it.
    ///
    /// - `index`: of its name, if both sides know that.
    fn write(&mut self, index: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.write_entry(index, name, value, out);
    }

    /// The same. Returns the place of the entry, if there is one.
    fn write_entry(
        &mut self,
        index: Option<usize>,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let size = name.len() + value.len() + ENTRY_BYTES;
        if value.len() > KEPT_BYTES_MAX || size > self.table.max() {
            write_literal(0, 4, index, name, value, out);
            return None;
        }
        let (same, named) = self.table.find(name, value);
        if let Some(place) = same {
            integer::write(DYNAMIC + place, 7, 0x80, out);
            return same;
        }
        let index = index.or_else(|| named.map(|place| DYNAMIC + place));
        write_literal(0x40, 6, index, name, value, out);
        self.table.add(name, value);
        Some(0)
    }

    /// Writes a field, in the way that suits it.
    pub fn field(&mut self, name: FieldName<'_>, value: &[u8], out: &mut Vec<u8>) {
        let id = name.id();
        if id.is_some_and(is_secret) {
            return write_as(0x10, name, value, out);
        }
        if id.is_some_and(is_ever_new) {
            return write_as(0, name, value, out);
        }
        let mut lower = [0; NAME_BYTES];
        match lowered(name.as_str().as_bytes(), &mut lower) {
            Some(lower) => self.write(id.and_then(static_table::name_index), lower, value, out),
            None => write_as(0, name, value, out),
        }
    }

    /// Writes the type of the content.
    ///
    /// - `of`: a number that is another one for another value; not 0.
    #[inline]
    pub fn content_type(&mut self, of: u8, value: &[u8], out: &mut Vec<u8>) {
        if self.type_of == of
            && let Some(place) = self.place(self.content_type)
        {
            return integer::write(DYNAMIC + place, 7, 0x80, out);
        }
        self.write_content_type(of, value, out);
    }

    #[cold]
    #[inline(never)]
    fn write_content_type(&mut self, of: u8, value: &[u8], out: &mut Vec<u8>) {
        let name = b"content-type";
        let index = static_table::name_index(HeaderId::ContentType);
        if let Some(place) = self.write_entry(index, name, value, out) {
            let back = u32::try_from(place + 1).unwrap_or(0);
            (self.type_of, self.content_type) = (of, self.table.added().wrapping_sub(back));
        }
    }

    /// Writes the length of the content.
    #[inline]
    pub fn content_length(&mut self, bytes: u64, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        write_unindexed(HeaderId::ContentLength.into(), digits.format(bytes).as_bytes(), out);
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Names up to so many bytes are looked for in the table.
const NAME_BYTES: usize = 64;

/// Returns a name in lower case (RFC 9113 §8.2.1), unless it is too long.
fn lowered<'m>(name: &[u8], memory: &'m mut [u8; NAME_BYTES]) -> Option<&'m [u8]> {
    let memory = memory.get_mut(..name.len())?;
    memory.copy_from_slice(name);
    memory.make_ascii_lowercase();
    Some(memory)
}

/// Returns whether no proxy may keep the value in its table (RFC 7541 §7.1.3).
fn is_secret(id: HeaderId) -> bool {
    matches!(
        id,
        HeaderId::SetCookie
            | HeaderId::Cookie
            | HeaderId::Authorization
            | HeaderId::ProxyAuthorization
    )
}

/// Returns whether the next response has another value, most likely.
fn is_ever_new(id: HeaderId) -> bool {
    matches!(
        id,
        HeaderId::Age
            | HeaderId::ContentLength
            | HeaderId::ContentLocation
            | HeaderId::ContentRange
            | HeaderId::ETag
            | HeaderId::Expires
            | HeaderId::LastModified
            | HeaderId::Location
            | HeaderId::ServerTiming
            | HeaderId::TraceParent
            | HeaderId::XRequestId
    )
}

/// Writes a field that no table knows: in the same bytes for every connection.
pub fn write_unindexed(name: FieldName<'_>, value: &[u8], out: &mut Vec<u8>) {
    write_as(0, name, value, out);
}

fn write_as(pattern: u8, name: FieldName<'_>, value: &[u8], out: &mut Vec<u8>) {
    let index = name.id().and_then(static_table::name_index);
    if index.is_some() {
        return write_literal(pattern, 4, index, b"", value, out);
    }
    let name = name.as_str().to_ascii_lowercase();
    write_literal(pattern, 4, None, name.as_bytes(), value, out);
}

fn write_literal(
    pattern: u8,
    prefix_bits: u32,
    index: Option<usize>,
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    integer::write(index.unwrap_or(0), prefix_bits, pattern, out);
    if index.is_none() {
        write_string(name, out);
    }
    write_string(value, out);
}

/// Writes a string, coded where that is shorter.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::write(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
