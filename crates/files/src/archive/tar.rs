//! Archives of the form tar (POSIX.1-2001, pax), compressed with Zstandard.

use std::io::Write;

use gustnado_compress::{BodyEncoder, EncodeError, Flush, Level};
use gustnado_http::content_coding::ContentCoding;

use super::member::Member;

const BLOCK_BYTES: usize = 512;
/// The longest path that a header has room for.
const NAME_BYTES: usize = 100;
/// The largest size that eleven octal digits can tell.
const SIZE_MAX: u64 = 0o777_7777_7777;

/// Writes an archive, compressed.
pub(super) struct TarWriter {
    encoder: BodyEncoder,
    /// Bytes of the file at hand that were written.
    written: u64,
}

impl TarWriter {
    pub(super) fn new(level: Level) -> Result<Self, EncodeError> {
        let encoder = BodyEncoder::of_archive(ContentCoding::Zstd, level)?;
        Ok(Self { encoder, written: 0 })
    }

    /// Begins a file, or writes a folder.
    ///
    /// - `size`: the bytes of the file, exactly as many as will follow.
    pub(super) fn begin(
        &mut self,
        member: &Member,
        size: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.written = 0;
        self.encoder.encode(&head(member, size), Flush::No, out)
    }

    /// Writes bytes of the file.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.written += bytes.len() as u64;
        self.encoder.encode(bytes, Flush::No, out)
    }

    /// Ends the file.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encoder.encode(padding(self.written), Flush::No, out)
    }

    /// Ends the archive.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encoder.encode(&[0; 2 * BLOCK_BYTES], Flush::End, out)
    }

    /// Returns the bytes of memory that it holds.
    pub(super) fn heap_bytes(&self) -> usize {
        self.encoder.heap_bytes()
    }
}

/// Returns what fills the last block of so many bytes.
fn padding(bytes: u64) -> &'static [u8] {
    static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let rest = usize::try_from(bytes % BLOCK_BYTES as u64).unwrap_or(0);
    &ZEROS[..(BLOCK_BYTES - rest) % BLOCK_BYTES]
}

/// Returns the blocks before the bytes of a file.
fn head(member: &Member, size: u64) -> Vec<u8> {
    let name = member.name();
    let mut records = Vec::new();
    if name.len() > NAME_BYTES || !name.is_ascii() {
        if std::str::from_utf8(&name).is_err() {
            // Otherwise a path is UTF-8, and readers may refuse or change one that is not.
            push_record(&mut records, "hdrcharset", b"BINARY");
        }
        push_record(&mut records, "path", &name);
    }
    if size > SIZE_MAX {
        push_record(&mut records, "size", size.to_string().as_bytes());
    }
    let mut blocks = Vec::with_capacity(3 * BLOCK_BYTES);
    if !records.is_empty() {
        let bytes = records.len() as u64;
        push_header(&mut blocks, b"./PaxHeaders/member", (0o644, bytes, member.modified), b'x');
        blocks.extend_from_slice(&records);
        blocks.extend_from_slice(padding(bytes));
    }
    let kind = if member.is_folder { b'5' } else { b'0' };
    let attributes = (member.mode(), if size > SIZE_MAX { 0 } else { size }, member.modified);
    push_header(&mut blocks, &name, attributes, kind);
    blocks
}

/// Appends a record of an extended header: its length, which counts itself, its key and its value.
fn push_record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    write!(records, "{length} {key}=").expect("a vector takes all");
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Appends a header of one block.
fn push_header(
    blocks: &mut Vec<u8>,
    name: &[u8],
    (mode, size, modified): (u32, u64, u64),
    kind: u8,
) {
    let mut block = [0; BLOCK_BYTES];
    let cut = &name[..name.len().min(NAME_BYTES)];
    block[..cut.len()].copy_from_slice(cut);
    let mut octal = |at: usize, digits: usize, value: u64| {
        let text = format!("{value:0digits$o}");
        block[at..at + digits].copy_from_slice(text.as_bytes());
    };
    octal(100, 7, u64::from(mode));
    // The owner is nobody's business, and that of whoever unpacks it.
    octal(108, 7, 0);
    octal(116, 7, 0);
    octal(124, 11, size);
    octal(136, 11, modified.min(SIZE_MAX));
    block[148..156].fill(b' ');
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    blocks.extend_from_slice(&block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for length in (0..200).chain([9_990, 99_980]) {
            let mut records = Vec::new();
            push_record(&mut records, "path", &vec![b'x'; length]);
            let digits: String = records
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .map(|byte| char::from(*byte))
                .collect();
            assert_eq!(digits.parse::<usize>(), Ok(records.len()), "{length}");
        }
    }

    #[test]
    fn blocks_are_filled() {
        for (bytes, rest) in [(0, 0), (1, 511), (511, 1), (512, 0), (513, 511)] {
            assert_eq!(padding(bytes).len(), rest, "{bytes}");
        }
    }
}
