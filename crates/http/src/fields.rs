//! The fields of a message, without the text of any protocol (RFC 9110 §5).
//!
//! What lives here: the ids of the known names ([`HeaderId`]), the list of fields that a message is
//! made with ([`Fields`]), and the check that a field can be sent ([`check_field`]). What does not:
//! field lines of HTTP/1. [`crate::response_writer`] writes them; of a head that was received,
//! [`crate::request::FieldLines`] reads them where they are.

mod error;
mod fields_ref;
mod header_id;

pub use error::{FieldError, check_field};
pub use fields_ref::FieldsRef;
pub use header_id::HeaderId;

pub(crate) use error::check_syntax;
pub(crate) use header_id::INDEXED;

use std::fmt;
use std::iter;

/// A field name: text, and its id if it has one. Names are the same in any case (RFC 9110 §5.1).
#[derive(Clone, Copy, Debug)]
pub struct FieldName<'n> {
    id: Option<HeaderId>,
    /// The spelling; empty where it is the canonical one of the id.
    text: &'n str,
}

impl<'n> FieldName<'n> {
    /// The id, if the name has one.
    #[inline]
    pub fn id(self) -> Option<HeaderId> {
        self.id
    }

    /// The name as it is spelled.
    #[inline]
    pub fn as_str(self) -> &'n str {
        match self.id {
            Some(id) if self.text.is_empty() => id.name(),
            _ => self.text,
        }
    }
}

impl From<HeaderId> for FieldName<'static> {
    #[inline]
    fn from(id: HeaderId) -> Self {
        Self { id: Some(id), text: "" }
    }
}

impl<'n> From<&'n str> for FieldName<'n> {
    #[inline]
    fn from(text: &'n str) -> Self {
        match header_id::find(text) {
            Some((id, true)) => id.into(),
            found => Self { id: found.map(|(id, _)| id), text },
        }
    }
}

/// An ordered list of fields: name and value. A name may occur several times (RFC 9110 §5.3).
///
/// A name keeps its spelling, and any spelling finds it.
///
/// All fields share one buffer: an empty list costs no allocation, the first field one, and a clone
/// is one copy. A field in it is a prefix of 8 bytes, the name unless that is the canonical one of
/// its id, and the value. There is no index: lists are short, and most are only added to and
/// written.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    buffer: Vec<u8>,
}

impl Fields {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self { buffer: Vec::new() }
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// How many fields there are. Walks the list.
    pub fn len(&self) -> usize {
        self.entries().count()
    }

    /// Adds a field at the end.
    ///
    /// # Errors
    /// [`FieldError`], and nothing is added: see [`check_field`].
    pub fn add<'n>(
        &mut self,
        name: impl Into<FieldName<'n>>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FieldError> {
        self.add_checked(name.into(), value.as_ref())
    }

    fn add_checked(&mut self, name: FieldName<'_>, value: &[u8]) -> Result<(), FieldError> {
        check_field(name, value)?;
        self.add_trusted(name, value);
        Ok(())
    }

    /// Adds a field that was checked already, at the end.
    ///
    /// # Panics
    /// If the name has 16 MiB, or the value 4 GiB.
    pub fn add_trusted<'n>(&mut self, name: impl Into<FieldName<'n>>, value: &[u8]) {
        let name = name.into();
        let prefix = prefix(name.id, name.text.len(), value.len());
        let len = prefix.len() + name.text.len() + value.len();
        // Room for a few short fields, so that most lists are allocated once.
        self.buffer.reserve(if self.is_empty() { len.max(FIRST_BYTES) } else { len });
        self.buffer.extend_from_slice(&prefix);
        self.buffer.extend_from_slice(name.text.as_bytes());
        self.buffer.extend_from_slice(value);
    }

    /// Gives a name this value only, at the end.
    ///
    /// # Errors
    /// [`FieldError`], and nothing changes: see [`check_field`].
    pub fn set<'n>(
        &mut self,
        name: impl Into<FieldName<'n>>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FieldError> {
        let (name, value) = (name.into(), value.as_ref());
        check_field(name, value)?;
        self.remove(name);
        self.add_trusted(name, value);
        Ok(())
    }

    /// Removes all fields of a name.
    pub fn remove<'n>(&mut self, name: impl Into<FieldName<'n>>) {
        let name = name.into();
        let (mut at, mut kept) = (0, 0);
        while let Some((entry, _)) = Entry::first(&self.buffer[at..]) {
            let (len, is_other) = (entry.len(), !entry.is(name));
            if is_other {
                self.buffer.copy_within(at..at + len, kept);
                kept += len;
            }
            at += len;
        }
        self.buffer.truncate(kept);
    }

    /// The value of the first field of a name.
    pub fn get<'n>(&self, name: impl Into<FieldName<'n>>) -> Option<&[u8]> {
        let name = name.into();
        self.entries().find(|entry| entry.is(name)).map(|entry| entry.value)
    }

    /// Returns the values of all fields of a name, in order.
    pub fn get_all<'f, 'n: 'f>(
        &'f self,
        name: impl Into<FieldName<'n>>,
    ) -> impl Iterator<Item = &'f [u8]> {
        let name = name.into();
        self.entries().filter(move |entry| entry.is(name)).map(|entry| entry.value)
    }

    /// Whether there is a field of a name.
    pub fn contains<'n>(&self, name: impl Into<FieldName<'n>>) -> bool {
        self.get(name).is_some()
    }

    /// Each name with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FieldName<'_>, &[u8])> {
        self.entries().map(|entry| (entry.name(), entry.value))
    }

    /// Each name with its value, in order: for writers, which need no text but bytes.
    #[inline]
    pub(crate) fn iter_bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries().map(|entry| (entry.name_bytes(), entry.value))
    }

    /// Adds all fields of another list at the end.
    pub fn extend(&mut self, other: &Self) {
        self.buffer.extend_from_slice(&other.buffer);
    }

    /// Bytes of memory behind this value.
    pub fn heap_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    #[inline]
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = &self.buffer[..];
        iter::from_fn(move || {
            let (entry, behind) = Entry::first(rest)?;
            rest = behind;
            Some(entry)
        })
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): (FieldName<'_>, &[u8])| {
            (name.as_str().to_owned(), value.escape_ascii().to_string())
        };
        f.debug_map().entries(self.iter().map(shown)).finish()
    }
}

/// The longest name that is stored, in bytes: its length has 24 bits.
const NAME_BYTES_MAX: usize = (1 << 24) - 1;
/// The longest value that is stored, in bytes: its length has 32 bits.
const VALUE_BYTES_MAX: usize = u32::MAX as usize;

/// What stands before each field in the buffer: the id in 8 bits, from 1 on, or 0; the length of
/// the stored name in 24; the length of the value in 32.
const PREFIX_BYTES: usize = 8;

/// The capacity of a list at its first field.
const FIRST_BYTES: usize = 64;

#[inline]
fn prefix(id: Option<HeaderId>, text_len: usize, value_len: usize) -> [u8; PREFIX_BYTES] {
    assert!(text_len <= NAME_BYTES_MAX && value_len <= VALUE_BYTES_MAX, "a field is too long");
    let id = id.map_or(0, |id| id as u64 + 1);
    (id | (text_len as u64) << 8 | (value_len as u64) << 32).to_le_bytes()
}

/// One field in the buffer.
struct Entry<'f> {
    id: Option<HeaderId>,
    /// The name, where it is not the canonical spelling of the id.
    text: &'f [u8],
    value: &'f [u8],
}

impl<'f> Entry<'f> {
    /// The first field of a buffer, and what follows it.
    #[inline]
    fn first(buffer: &'f [u8]) -> Option<(Self, &'f [u8])> {
        let (prefix, rest) = buffer.split_first_chunk::<PREFIX_BYTES>()?;
        let [id, text_len @ .., _, _, _, _] = *prefix;
        let [_, _, _, _, value_len @ ..] = *prefix;
        let [low, middle, high] = text_len;
        let text_len = u32::from_le_bytes([low, middle, high, 0]);
        let (text, rest) = rest.split_at(text_len as usize);
        let (value, rest) = rest.split_at(u32::from_le_bytes(value_len) as usize);
        let id = HeaderId::ALL.get(usize::from(id).wrapping_sub(1)).copied();
        Some((Self { id, text, value }, rest))
    }

    /// Bytes in the buffer.
    fn len(&self) -> usize {
        PREFIX_BYTES + self.text.len() + self.value.len()
    }

    /// Whether it is a field of that name.
    #[inline]
    fn is(&self, name: FieldName<'_>) -> bool {
        // Where the one has an id, a name that is the same has it, too.
        self.id == name.id
            && (self.id.is_some() || self.text.eq_ignore_ascii_case(name.text.as_bytes()))
    }

    #[inline]
    fn name_bytes(&self) -> &'f [u8] {
        match self.id {
            Some(id) if self.text.is_empty() => id.name().as_bytes(),
            _ => self.text,
        }
    }

    fn name(&self) -> FieldName<'f> {
        let text = str::from_utf8(self.text).expect("it was added as a str");
        FieldName { id: self.id, text }
    }
}
