//! `multipart/form-data`, part by part, as it arrives (RFC 7578).

use std::fmt;
use std::str;

use bytes::{Buf, Bytes, BytesMut};
use gustnado_http::multipart::{MultipartDecoder, MultipartEvent, PartHead};

use super::{FormError, FormLimits, decoder};
use crate::body::{Body, decoded, encoding_of};
use crate::request::Request;

/// Parts of a form, one after the other, as the client sends them.
///
/// It holds only bytes that were received and not yet read.
///
/// ```no_run
/// use gustnado::forms::{FormError, FormLimits};
/// use gustnado::{Request, Server};
///
/// async fn upload(mut request: Request) -> Result<String, FormError> {
///     let mut form = request.multipart(&FormLimits::default())?;
///     let mut report = String::new();
///     while let Some(part) = form.next().await {
///         let mut part = part?;
///         let mut bytes = 0;
///         while let Some(piece) = part.next().await {
///             bytes += piece?.len();
///         }
///         report += &format!("{}: {bytes} bytes\n", part.name());
///     }
///     Ok(report)
/// }
///
/// let server = Server::new().post("/upload", upload);
/// ```
pub struct Multipart {
    body: Body,
    /// Bytes that were received and not yet decoded.
    held: BytesMut,
    /// Bytes that were received, and those of them that are kept decoded.
    taken: u64,
    kept: usize,
    decoder: MultipartDecoder,
    is_in_part: bool,
    has_failed: bool,
}

/// Next event of a form.
enum PartEvent {
    Head(PartHead),
    Data(Bytes),
    PartEnd,
    End,
}

impl Multipart {
    /// Returns the next part; `None` at the end. The unread rest of the part before is skipped.
    ///
    /// # Errors
    /// [`FormError`], which ends the form.
    pub async fn next(&mut self) -> Option<Result<Part<'_>, FormError>> {
        loop {
            match self.event().await {
                Ok(PartEvent::Head(head)) => {
                    self.is_in_part = true;
                    return Some(Ok(Part { form: self, head }));
                }
                Ok(PartEvent::Data(_)) => {}
                Ok(PartEvent::PartEnd) => self.is_in_part = false,
                Ok(PartEvent::End) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn event(&mut self) -> Result<PartEvent, FormError> {
        if self.has_failed {
            return Ok(PartEvent::End);
        }
        let event = self.read_event().await;
        self.has_failed = event.is_err();
        event
    }

    async fn read_event(&mut self) -> Result<PartEvent, FormError> {
        loop {
            match self.decoder.decode(&self.held)? {
                MultipartEvent::NeedMore => {
                    self.note_held();
                    let piece = self.body.next().await.ok_or(FormError::Truncated)??;
                    self.taken += piece.len() as u64;
                    if self.held.is_empty() {
                        // This avoids a copy if the buffer has no other owner.
                        self.held = piece.into();
                    } else {
                        self.held.extend_from_slice(&piece);
                    }
                }
                MultipartEvent::Skip(len) => self.held.advance(len),
                MultipartEvent::Head(len, head) => {
                    self.held.advance(len);
                    return Ok(PartEvent::Head(head));
                }
                MultipartEvent::Data(len) => {
                    return Ok(PartEvent::Data(self.held.split_to(len).freeze()));
                }
                MultipartEvent::PartEnd(len) => {
                    self.held.advance(len);
                    return Ok(PartEvent::PartEnd);
                }
                MultipartEvent::End => {
                    self.note_held();
                    return Ok(PartEvent::End);
                }
            }
        }
    }

    /// Has what it holds charged to the body: the rest has gone where the program puts it.
    fn note_held(&self) {
        let held = self.held.len() + self.kept;
        self.body.set_released(self.taken.saturating_sub(held as u64));
    }

    /// Returns how many decoded bytes are kept for the form.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Sets how many are kept: they count as held of the body.
    pub(super) fn set_kept(&mut self, bytes: usize) {
        self.kept = bytes;
    }
}

impl fmt::Debug for Multipart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multipart").field("body", &self.body).finish_non_exhaustive()
    }
}

/// One part of a form: a value, or a file.
#[derive(Debug)]
pub struct Part<'f> {
    pub(super) form: &'f mut Multipart,
    pub(super) head: PartHead,
}

impl Part<'_> {
    /// Returns the name of the field in the form.
    pub fn name(&self) -> &str {
        self.head.name()
    }

    /// Returns the client's name of the file, if this is one; empty if no file was chosen. The
    /// client may send any text: it must not be used as a path. See [`safe_file_name`].
    pub fn file_name(&self) -> Option<&str> {
        self.head.file_name()
    }

    /// Returns the content type that the client sent.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }

    /// Returns the first value of a header field of the part; the case of the name does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.head.field(name)?).ok()
    }

    /// Returns the next bytes, at least 1; `None` at the end of the part.
    ///
    /// # Errors
    /// [`FormError`], which ends the form.
    pub async fn next(&mut self) -> Option<Result<Bytes, FormError>> {
        if !self.form.is_in_part {
            return None;
        }
        match self.form.event().await {
            Ok(PartEvent::Data(bytes)) => Some(Ok(bytes)),
            Ok(_) => {
                self.form.is_in_part = false;
                None
            }
            Err(error) => {
                self.form.is_in_part = false;
                Some(Err(error))
            }
        }
    }

    /// Reads the whole part.
    ///
    /// - `bytes_max`: more is an error.
    ///
    /// # Errors
    /// [`FormError::ValueTooLarge`], and as [`Part::next`].
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, FormError> {
        let mut all = BytesMut::new();
        let kept = self.form.kept;
        while let Some(piece) = self.next().await.transpose()? {
            if piece.len() > bytes_max - all.len() {
                return Err(FormError::ValueTooLarge { limit_bytes: bytes_max });
            }
            if all.is_empty() {
                all = piece.into();
            } else {
                all.extend_from_slice(&piece);
            }
            self.form.kept = kept + all.len();
        }
        // From here on it is the caller's.
        self.form.kept = kept;
        Ok(all.freeze())
    }

    /// Reads the whole part as text, in the charset that it names, by default UTF-8.
    ///
    /// # Errors
    /// As [`Part::bytes`], and as [`Body::text`] for bytes that are not text.
    pub async fn text(&mut self, bytes_max: usize) -> Result<String, FormError> {
        let encoding = encoding_of(self.head.field("content-type"))?;
        let bytes = self.bytes(bytes_max).await?;
        Ok(decoded(encoding, &bytes)?.into_owned())
    }
}

/// Returns a name for a file in a folder of the program's own, made of the client's name: without
/// folders, without control characters, not hidden, and at most 100 characters. `None` if nothing
/// is left.
pub fn safe_file_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last.chars().filter(|c| !c.is_control()).collect();
    let kept = kept.trim_end().trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    let short: String = kept.chars().take(100).collect();
    (!short.is_empty()).then_some(short)
}

/// `multipart/form-data`, part by part.
impl Request {
    /// Returns the parts of a form as they arrive. It takes the body.
    ///
    /// # Errors
    /// [`FormError`]: 415 if the body has another type, 400 if its boundary is malformed.
    pub fn multipart(&mut self, limits: &FormLimits) -> Result<Multipart, FormError> {
        let decoder = decoder(self, limits)?;
        let body = self.take_body();
        body.set_sifted();
        Ok(Multipart {
            body,
            held: BytesMut::new(),
            taken: 0,
            kept: 0,
            decoder,
            is_in_part: false,
            has_failed: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_s_name_for_a_file_stays_in_the_folder() {
        let safe = |name| safe_file_name(name);
        for (name, wanted) in [
            ("photo.jpg", "photo.jpg"),
            ("../../etc/passwd", "passwd"),
            ("C:\\dir\\My file.txt", "My file.txt"),
            (" .. .hidden", "hidden"),
            ("a\0\nb", "ab"),
            ("\u{fc}ber.txt", "\u{fc}ber.txt"),
        ] {
            assert_eq!(safe(name).as_deref(), Some(wanted), "{name:?}");
        }
        for name in ["", "..", "/", "a/", " . ", "\n"] {
            assert_eq!(safe(name), None, "{name:?}");
        }
        assert_eq!(safe(&"x".repeat(300)).map(|name| name.len()), Some(100));
    }
}
