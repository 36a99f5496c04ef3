//! The head of one part.

use super::MultipartError;
use crate::fields::{Fields, HeaderId};
use crate::media_type::MediaType;

/// What a part says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHead {
    name: String,
    file_name: Option<String>,
    fields: Fields,
}

impl PartHead {
    /// - `lines`: whole field lines.
    pub(super) fn read(lines: &[u8]) -> Result<Self, MultipartError> {
        let mut fields = Fields::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r\n").ok_or(MultipartError::Field)?;
            let colon = line.iter().position(|byte| *byte == b':').ok_or(MultipartError::Field)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let is_control = |byte: &u8| *byte != b'\t' && (*byte < b' ' || *byte == 127);
            let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
            if !is_name || value.iter().any(is_control) {
                return Err(MultipartError::Field);
            }
            let name = str::from_utf8(name).map_err(|_| MultipartError::Field)?;
            fields.add_trusted(name, value);
        }
        let disposition = fields.get(HeaderId::ContentDisposition).ok_or(MultipartError::Name)?;
        let disposition = MediaType::of(disposition);
        if !disposition.is("form-data") {
            return Err(MultipartError::Name);
        }
        let name = disposition.parameter("name").ok_or(MultipartError::Name)?.into_owned();
        let name = String::from_utf8(name).map_err(|_| MultipartError::Name)?;
        let file_name = disposition.parameter("filename");
        let file_name = file_name.map(|name| String::from_utf8_lossy(&name).into_owned());
        Ok(Self { name, file_name, fields })
    }

    /// The name of the field in the form.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the client calls the file, if the part is one: a name that it has made up, which must
    /// not be taken for a path. (Bytes that are no UTF-8 become U+FFFD. `filename*` does not count:
    /// RFC 7578 §4.2.)
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// The first value of a header field of the part, by its name in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }
}
