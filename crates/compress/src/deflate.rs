//! DEFLATE alone (RFC 1951), and the checksum of what went in, as zip has them for each file.

use flate2::{Compress, Compression, Crc};

use crate::encoder::{EncodeError, Flush, encode_deflate};

/// An encoder of one file after the other.
pub struct DeflateEncoder {
    compress: Compress,
    checksum: Crc,
    read: u64,
}

impl DeflateEncoder {
    /// - `level`: 1 to 9; 0 puts frames around the bytes and leaves them as they are.
    pub fn new(level: u8) -> Self {
        let level = Compression::new(u32::from(level.min(9)));
        Self { compress: Compress::new(level, false), checksum: Crc::new(), read: 0 }
    }

    /// Begins another file.
    pub fn restart(&mut self) {
        self.compress.reset();
        self.checksum.reset();
        self.read = 0;
    }

    /// Encodes a piece, all of it, and appends what is written to `out`.
    ///
    /// # Errors
    /// [`EncodeError`]: the file cannot be continued.
    pub fn encode(
        &mut self,
        input: &[u8],
        flush: Flush,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.checksum.update(input);
        self.read += input.len() as u64;
        encode_deflate(&mut self.compress, input, flush, out)
    }

    /// Returns the CRC-32 of the bytes of this file.
    pub fn checksum(&self) -> u32 {
        self.checksum.sum()
    }

    /// Returns how many bytes of this file were read and how many were written.
    pub fn lengths(&self) -> (u64, u64) {
        (self.read, self.compress.total_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::text;
    use flate2::{Decompress, FlushDecompress};

    #[test]
    fn one_file_after_the_other_comes_back() {
        for level in [0, 1, 6, 9, 255] {
            let mut encoder = DeflateEncoder::new(level);
            for length in [0, 1, 100, 200_000] {
                let (input, mut out) = (text(length), Vec::new());
                encoder.restart();
                for piece in input.chunks(70_000) {
                    encoder.encode(piece, Flush::No, &mut out).expect("it is encoded");
                }
                encoder.encode(b"", Flush::End, &mut out).expect("it ends");
                assert_eq!(encoder.lengths(), (length as u64, out.len() as u64));
                let mut back = Vec::with_capacity(length + 1);
                let decoded =
                    Decompress::new(false).decompress_vec(&out, &mut back, FlushDecompress::Finish);
                assert!(decoded.is_ok() && back == input, "{level} {length}");
                assert!(level == 0 || length < 1_000 || out.len() < length / 2);
            }
        }
    }

    #[test]
    fn the_checksum_is_that_of_zip() {
        let mut encoder = DeflateEncoder::new(6);
        encoder.encode(b"123456789", Flush::End, &mut Vec::new()).expect("it is encoded");
        assert_eq!(encoder.checksum(), 0xcbf4_3926);
    }
}
