//! What the fields mean that decide about framing, the connection and the host.

use super::{
    CHUNKED, CLOSE, CODED, CODING_UNKNOWN, CONDITIONAL, CONTINUE, Head, HeadError, KEEP_ALIVE,
    LENGTH, Span, UPGRADE, Version,
};
use crate::fields::HeaderId;
use crate::syntax::{decimal, is_token, list, trim};
use crate::target;

impl Head {
    /// Takes note of one field line. `name` is a token already; `value` is trimmed, `span` is where
    /// it is.
    #[inline(never)]
    pub(super) fn note(&mut self, name: &[u8], value: &[u8], span: Span) -> Result<(), HeadError> {
        match name.len() {
            4 if is_word(name, b"host") => self.note_host(value, span)?,
            5 if is_word(name, b"range") => self.keep(HeaderId::Range, span),
            6 if is_word(name, b"expect") => self.note_expect(value)?,
            8 if is_word(name, b"if-match") => self.keep(HeaderId::IfMatch, span),
            8 if is_word(name, b"if-range") => self.keep(HeaderId::IfRange, span),
            10 if is_word(name, b"connection") => self.note_connection(value),
            13 if is_word(name, b"if-none-match") => self.keep(HeaderId::IfNoneMatch, span),
            14 if is_word(name, b"content-length") => self.note_length(value)?,
            17 if is_word(name, b"transfer-encoding") => self.note_coding(value)?,
            17 if is_word(name, b"if-modified-since") => self.keep(HeaderId::IfModifiedSince, span),
            19 if is_word(name, b"if-unmodified-since") => {
                self.keep(HeaderId::IfUnmodifiedSince, span);
            }
            _ => {}
        }
        Ok(())
    }

    /// The first one counts; the others stay readable in the bytes.
    #[inline]
    pub(crate) fn keep(&mut self, id: HeaderId, value: Span) {
        let place = &mut self.indexed[id as usize];
        if place.start == 0 {
            *place = value;
        }
        if !matches!(id, HeaderId::Host | HeaderId::IfRange) {
            self.flags |= CONDITIONAL;
        }
    }

    /// RFC 9112 §3.2: exactly one, well-formed. That there is one is checked at the end.
    fn note_host(&mut self, value: &[u8], span: Span) -> Result<(), HeadError> {
        if self.indexed(HeaderId::Host).is_some() {
            return Err(HeadError::HostRepeated);
        }
        target::authority(value).ok_or(HeadError::HostSyntax)?;
        self.keep(HeaderId::Host, span);
        Ok(())
    }

    /// RFC 9110 §10.1.1
    fn note_expect(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for expectation in list(value).filter(|expectation| !expectation.is_empty()) {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(HeadError::Expectation);
            }
            self.flags |= CONTINUE;
        }
        Ok(())
    }

    /// RFC 9110 §7.6.1; other options have no meaning here.
    fn note_connection(&mut self, value: &[u8]) {
        if is_word(value, b"keep-alive") {
            self.flags |= KEEP_ALIVE;
            return;
        }
        for option in list(value) {
            if option.eq_ignore_ascii_case(b"close") {
                self.flags |= CLOSE;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.flags |= KEEP_ALIVE;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.flags |= UPGRADE;
            }
        }
    }

    /// RFC 9112 §6.3 rule 5: one number, once. A recipient may take a list of one and the same
    /// number as that number; we do not: such a number is only sent to make two servers disagree.
    #[cold]
    fn note_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.has(CODED) {
            return Err(HeadError::LengthWithCoding);
        }
        if self.has(LENGTH) {
            return Err(HeadError::LengthRepeated);
        }
        self.flags |= LENGTH;
        self.content_length = decimal(value).ok_or(HeadError::LengthSyntax)?;
        Ok(())
    }

    /// RFC 9112 §6.1, over all lines of the field. An empty element is refused although RFC 9110
    /// §5.6.1.2 would skip it: it is only sent to make two servers disagree. So are parameters
    /// on chunked (RFC 9112 §7.1, SHOULD).
    #[cold]
    fn note_coding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.version == Version::Http10 {
            return Err(HeadError::CodingInOldVersion);
        }
        if self.has(LENGTH) {
            return Err(HeadError::LengthWithCoding);
        }
        self.flags |= CODED;
        for coding in list(value) {
            let name = coding.split(|byte| *byte == b';').next().map(trim).unwrap_or_default();
            if !is_token(name) || self.has(CHUNKED) {
                return Err(HeadError::CodingSyntax); // nothing may follow chunked, not even itself
            }
            if !name.eq_ignore_ascii_case(b"chunked") {
                self.flags |= CODING_UNKNOWN;
            } else if name.len() == coding.len() {
                self.flags |= CHUNKED;
            } else {
                return Err(HeadError::CodingSyntax);
            }
        }
        Ok(())
    }

    /// Returns what only the whole field section can tell.
    #[inline]
    pub(super) fn finish(&self) -> Result<(), HeadError> {
        if self.version == Version::Http11 && self.indexed(HeaderId::Host).is_none() {
            return Err(HeadError::HostMissing);
        }
        if self.has(CODED) { self.finish_coding() } else { Ok(()) }
    }

    #[cold]
    fn finish_coding(&self) -> Result<(), HeadError> {
        if !self.has(CHUNKED) {
            Err(HeadError::CodingSyntax)
        } else if self.has(CODING_UNKNOWN) {
            Err(HeadError::CodingUnknown)
        } else {
            Ok(())
        }
    }
}

/// The names that [`Head::note`] knows.
const LOOKED_FOR: [&[u8]; 11] = [
    b"host",
    b"range",
    b"expect",
    b"if-match",
    b"if-range",
    b"connection",
    b"if-none-match",
    b"content-length",
    b"transfer-encoding",
    b"if-modified-since",
    b"if-unmodified-since",
];

/// For each first letter, as a bit each: the lengths of the names looked for.
const LENGTHS: [u32; 32] = lengths();

const fn lengths() -> [u32; 32] {
    let mut lengths = [0; 32];
    let mut at = 0;
    while at < LOOKED_FOR.len() {
        let name = LOOKED_FOR[at];
        lengths[(name[0] & 31) as usize] |= 1 << name.len();
        at += 1;
    }
    lengths
}

/// Returns whether a field name may be one that [`Head::note`] knows. Most are not: this spares
/// them the call.
#[inline]
pub(super) fn is_looked_for(first: u8, len: usize) -> bool {
    LENGTHS[usize::from(first & 31)] >> (len & 31) & 1 == 1
}

/// Returns whether bytes are this word; case does not matter. The word is given in lower case and
/// has letters and hyphens only; the bytes hold no control byte: then none differs from one of the
/// word's in the case bit alone.
#[inline]
fn is_word<const N: usize>(bytes: &[u8], word: &[u8; N]) -> bool {
    let Ok(bytes) = <&[u8; N]>::try_from(bytes) else {
        return false;
    };
    let differs = |(byte, lower): (&u8, &u8)| byte | 0x20 != *lower;
    !bytes.iter().zip(word).fold(false, |any, pair| any | differs(pair))
}
