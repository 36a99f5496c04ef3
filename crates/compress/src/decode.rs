//! Decoding, for what compares the content of servers. Nothing that is served is decoded.

use std::io::Read;

use brotli::Decompressor;
use flate2::bufread::GzDecoder;
use gustnado_http::content_coding::ContentCoding;
use thiserror::Error;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes of the buffer that Brotli reads by.
const BUFFER_BYTES: usize = 4 << 10;
/// Bytes that the content of a Zstandard frame grows by.
const STEP_BYTES: usize = 64 << 10;

/// Why bytes were not decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// They are not one complete body in that coding.
    #[error("it is not a complete body in {0}")]
    Malformed(&'static str),
    /// The content has more bytes than are allowed.
    #[error("its content has more than {bytes_max} bytes")]
    TooLong {
        /// The bytes that are allowed.
        bytes_max: usize,
    },
}

/// Returns the content of a complete body in a content coding.
///
/// - `bytes_max`: the most bytes that the content may have.
///
/// # Errors
/// [`DecodeError::Malformed`], also where bytes follow the body, and [`DecodeError::TooLong`].
pub fn decompress(
    coding: ContentCoding,
    mut body: &[u8],
    bytes_max: usize,
) -> Result<Vec<u8>, DecodeError> {
    let malformed = DecodeError::Malformed(coding.name());
    let content = match coding {
        ContentCoding::Identity => std::mem::take(&mut body).to_vec(),
        ContentCoding::Gzip => read(GzDecoder::new(&mut body), bytes_max).ok_or(malformed)?,
        ContentCoding::Brotli => {
            let decoder = Decompressor::new(std::mem::take(&mut body), BUFFER_BYTES);
            read(decoder, bytes_max).ok_or(malformed)?
        }
        ContentCoding::Zstd => read_zstd(&mut body, bytes_max).ok_or(malformed)?,
        // Nobody asks for it who has no dictionary.
        ContentCoding::DictionaryZstd => return Err(malformed),
    };
    if content.len() > bytes_max {
        return Err(DecodeError::TooLong { bytes_max });
    }
    if body.is_empty() { Ok(content) } else { Err(malformed) }
}

/// Reads to the end, or one byte further than is allowed.
fn read(decoder: impl Read, bytes_max: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut content).ok()?;
    Some(content)
}

/// The same of a frame of Zstandard; `body` is what follows it.
fn read_zstd(body: &mut &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut decoder = DCtx::try_create()?;
    let mut content = Vec::new();
    let mut input = InBuffer::around(body);
    loop {
        content.reserve(STEP_BYTES);
        let at = content.len();
        let mut output = OutBuffer::around_pos(&mut content, at);
        let left = decoder.decompress_stream(&mut output, &mut input).ok()?;
        if left == 0 || content.len() > bytes_max {
            break;
        }
        let is_stuck = content.len() == at && input.pos() == input.src.len();
        if is_stuck {
            return None;
        }
    }
    let read = input.pos();
    *body = &body[read..];
    // What is too long is reported as that, and not as bytes that follow.
    if content.len() > bytes_max {
        *body = &[];
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advance::compress_in_advance;
    use crate::decoded::text;

    const READ: [ContentCoding; 4] =
        [ContentCoding::Identity, ContentCoding::Gzip, ContentCoding::Zstd, ContentCoding::Brotli];

    #[test]
    fn what_was_encoded_comes_back() {
        for coding in READ {
            for length in [0, 1, 1_000, 300_000] {
                let content = text(length);
                let body = encoded(coding, &content);
                assert_eq!(decompress(coding, &body, length), Ok(content), "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn a_body_that_is_cut_or_goes_on_is_malformed() {
        for coding in [ContentCoding::Gzip, ContentCoding::Zstd, ContentCoding::Brotli] {
            let malformed = Err(DecodeError::Malformed(coding.name()));
            let body = encoded(coding, &text(5_000));
            for at in [1, body.len() / 2, body.len() - 1] {
                assert_eq!(decompress(coding, &body[..at], 5_000), malformed, "{coding:?} {at}");
            }
            assert_eq!(decompress(coding, b"plain text", 5_000), malformed, "{coding:?}");
        }
        let mut body = encoded(ContentCoding::Gzip, &text(5_000));
        body.push(0);
        let malformed = Err(DecodeError::Malformed("gzip"));
        assert_eq!(decompress(ContentCoding::Gzip, &body, 5_000), malformed);
    }

    #[test]
    fn content_is_bounded() {
        for coding in READ {
            let body = encoded(coding, &vec![b'x'; 4 << 20]);
            let too_long = Err(DecodeError::TooLong { bytes_max: 100_000 });
            assert_eq!(decompress(coding, &body, 100_000), too_long, "{coding:?}");
        }
    }

    fn encoded(coding: ContentCoding, content: &[u8]) -> Vec<u8> {
        match coding {
            ContentCoding::Identity => content.to_vec(),
            coding => compress_in_advance(coding, content).expect("it is encoded"),
        }
    }
}
