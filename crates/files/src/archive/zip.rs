//! Archives of the form zip (APPNOTE 6.3.10), as a stream: sizes and checksums stand behind each
//! file, and the directory at the end has them again. Sizes beyond 4 GiB are those of zip64.

use std::path::PathBuf;

use gustnado_compress::{DeflateEncoder, EncodeError, Flush};
use rustix::io::Errno;

use super::directory::{DirectoryFile, DirectoryReader};
use super::member::Member;

/// The smallest size that is written in the form of zip64: DEFLATE may make some more of it.
const LARGE_BYTES: u64 = 4_000_000_000;
/// What a field of four bytes has whose number stands elsewhere.
const ELSEWHERE: u32 = u32::MAX;
/// Versions that a reader needs: folders and DEFLATE, and zip64.
const VERSION: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// Sizes and checksum stand behind the file.
const FLAG_BEHIND: u16 = 1 << 3;
/// The name is UTF-8.
const FLAG_UTF8: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// The form of attributes, and of names that are no UTF-8: those of Unix.
const MADE_BY_UNIX: u16 = 3 << 8;

/// Writes an archive.
pub(super) struct ZipWriter {
    encoder: DeflateEncoder,
    /// For files that are compressed by their own format.
    framing: Option<DeflateEncoder>,
    directory: DirectoryFile,
    /// Bytes of the archive so far.
    at: u64,
    members: u64,
    /// The file at hand.
    current: Option<ZipMember>,
}

/// A file as its headers tell of it.
struct ZipMember {
    member: Member,
    /// Where its header stands.
    offset: u64,
    is_large: bool,
    is_framed: bool,
    checksum: u32,
    /// Its bytes as they are, and in the archive.
    sizes: (u64, u64),
}

impl ZipWriter {
    /// - `level`: of DEFLATE.
    /// - `folder`: where a directory is kept that is too large for memory.
    pub(super) fn new(level: u8, folder: PathBuf) -> Self {
        Self {
            encoder: DeflateEncoder::new(level),
            framing: None,
            directory: DirectoryFile::new(folder),
            at: 0,
            members: 0,
            current: None,
        }
    }

    /// Writes a folder.
    pub(super) fn folder(&mut self, member: Member, out: &mut Vec<u8>) -> Result<(), Errno> {
        let entry = ZipMember::new(member, self.at, 0);
        let before = out.len();
        entry.push_header(out);
        self.note(out.len() - before);
        self.directory.push(&entry.directory_entry())
    }

    /// Begins a file.
    ///
    /// - `size`: the bytes that it has at most.
    pub(super) fn begin(&mut self, member: Member, size: u64, out: &mut Vec<u8>) {
        let entry = ZipMember::new(member, self.at, size);
        let before = out.len();
        entry.push_header(out);
        self.note(out.len() - before);
        if entry.is_framed {
            self.framing.get_or_insert_with(|| DeflateEncoder::new(0)).restart();
        } else {
            self.encoder.restart();
        }
        self.current = Some(entry);
    }

    /// Writes bytes of the file.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encode(bytes, Flush::No, out)
    }

    /// Ends the file.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Errno> {
        self.encode(b"", Flush::End, out).map_err(|_| Errno::NOMEM)?;
        let encoder = self.encoder_of_current();
        let (checksum, sizes) = (encoder.checksum(), encoder.lengths());
        let Some(mut entry) = self.current.take() else { return Ok(()) };
        (entry.checksum, entry.sizes) = (checksum, sizes);
        let before = out.len();
        entry.push_descriptor(out);
        self.at += (out.len() - before) as u64;
        self.directory.push(&entry.directory_entry())
    }

    /// Returns the end of the archive: its directory, and where that stands.
    pub(super) fn finish(self) -> Result<DirectoryReader, Errno> {
        let end = end_records(self.members, self.at, self.directory.bytes());
        self.directory.finish(&end)
    }

    fn encode(&mut self, bytes: &[u8], flush: Flush, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = out.len();
        self.encoder_of_current().encode(bytes, flush, out)?;
        self.at += (out.len() - before) as u64;
        Ok(())
    }

    fn encoder_of_current(&mut self) -> &mut DeflateEncoder {
        let is_framed = self.current.as_ref().is_some_and(|entry| entry.is_framed);
        match &mut self.framing {
            Some(framing) if is_framed => framing,
            _ => &mut self.encoder,
        }
    }

    /// Counts the header of a member.
    fn note(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.members += 1;
    }
}

impl ZipMember {
    fn new(member: Member, offset: u64, size: u64) -> Self {
        let is_framed = !member.is_compressible();
        let is_large = size >= LARGE_BYTES;
        Self { member, offset, is_large, is_framed, checksum: 0, sizes: (0, 0) }
    }

    fn flags(&self) -> u16 {
        let is_utf8 = std::str::from_utf8(&self.member.path).is_ok();
        let behind = if self.member.is_folder { 0 } else { FLAG_BEHIND };
        behind | if is_utf8 { FLAG_UTF8 } else { 0 }
    }

    fn method(&self) -> u16 {
        if self.member.is_folder { 0 } else { DEFLATED }
    }

    /// Appends what stands before the file.
    fn push_header(&self, out: &mut Vec<u8>) {
        let (name, date) = (self.member.name(), dos_date(self.member.modified));
        let mut extra = timestamp(self.member.modified);
        // That the sizes behind the file have eight bytes is told by this field alone.
        let size = if self.is_large { ELSEWHERE } else { 0 };
        if self.is_large {
            push_u16s(&mut extra, &[1, 16]);
            extra.extend_from_slice(&[0; 16]);
        }
        let version = if self.is_large { VERSION_ZIP64 } else { VERSION };
        push_u32s(out, &[0x0403_4b50]);
        push_u16s(out, &[version, self.flags(), self.method(), date.1, date.0]);
        push_u32s(out, &[0, size, size]);
        push_u16s(out, &[short(name.len()), short(extra.len())]);
        out.extend_from_slice(&name);
        out.extend_from_slice(&extra);
    }

    /// Appends what stands behind the file.
    fn push_descriptor(&self, out: &mut Vec<u8>) {
        let (plain, packed) = self.sizes;
        push_u32s(out, &[0x0807_4b50, self.checksum]);
        if self.is_large {
            push_u64s(out, &[packed, plain]);
        } else {
            push_u32s(out, &[narrow(packed), narrow(plain)]);
        }
    }

    /// Returns its entry in the directory.
    fn directory_entry(&self) -> Vec<u8> {
        let (name, date) = (self.member.name(), dos_date(self.member.modified));
        let ((plain, packed), mut extra) = (self.sizes, timestamp(self.member.modified));
        let is_far = self.offset >= u64::from(ELSEWHERE);
        let mut large = Vec::new();
        if self.is_large {
            push_u64s(&mut large, &[plain, packed]);
        }
        if is_far {
            push_u64s(&mut large, &[self.offset]);
        }
        if !large.is_empty() {
            push_u16s(&mut extra, &[1, short(large.len())]);
            extra.extend_from_slice(&large);
        }
        let version = if large.is_empty() { VERSION } else { VERSION_ZIP64 };
        let of = |size| if self.is_large { ELSEWHERE } else { narrow(size) };
        let kind = if self.member.is_folder { 0o040_000 } else { 0o100_000 };
        // Of Unix, and the mark that DOS has for folders.
        let attributes = (kind | self.member.mode()) << 16 | u32::from(self.member.is_folder) << 4;
        let offset = if is_far { ELSEWHERE } else { narrow(self.offset) };
        let mut entry = Vec::with_capacity(46 + name.len() + extra.len());
        push_u32s(&mut entry, &[0x0201_4b50]);
        push_u16s(&mut entry, &[MADE_BY_UNIX | version, version, self.flags(), self.method()]);
        push_u16s(&mut entry, &[date.1, date.0]);
        push_u32s(&mut entry, &[self.checksum, of(packed), of(plain)]);
        push_u16s(&mut entry, &[short(name.len()), short(extra.len()), 0, 0, 0]);
        push_u32s(&mut entry, &[attributes, offset]);
        entry.extend_from_slice(&name);
        entry.extend_from_slice(&extra);
        entry
    }
}

/// Returns what stands behind the directory.
///
/// - `at`: where the directory begins.
fn end_records(members: u64, at: u64, bytes: u64) -> Vec<u8> {
    let mut end = Vec::new();
    let is_large = members >= 0xffff || at.max(bytes) >= u64::from(ELSEWHERE);
    if is_large {
        push_u32s(&mut end, &[0x0606_4b50]);
        push_u64s(&mut end, &[44]);
        push_u16s(&mut end, &[MADE_BY_UNIX | VERSION_ZIP64, VERSION_ZIP64]);
        push_u32s(&mut end, &[0, 0]);
        push_u64s(&mut end, &[members, members, bytes, at]);
        push_u32s(&mut end, &[0x0706_4b50, 0]);
        push_u64s(&mut end, &[at + bytes]);
        push_u32s(&mut end, &[1]);
    }
    let members = u16::try_from(members).unwrap_or(u16::MAX);
    push_u32s(&mut end, &[0x0605_4b50]);
    push_u16s(&mut end, &[0, 0, members, members]);
    push_u32s(&mut end, &[narrow(bytes), narrow(at)]);
    push_u16s(&mut end, &[0]);
    end
}

/// Returns the field with the time of a change in UTC; the fields that every entry has are local
/// time, of a place that is not told.
fn timestamp(modified: u64) -> Vec<u8> {
    let Ok(modified) = i32::try_from(modified) else { return Vec::new() };
    let mut extra = Vec::new();
    push_u16s(&mut extra, &[0x5455, 5]);
    extra.push(1);
    extra.extend_from_slice(&modified.to_le_bytes());
    extra
}

/// Returns a date and a time as DOS has them: from 1980 to 2107, in steps of two seconds.
fn dos_date(unix_secs: u64) -> (u16, u16) {
    const FIRST: u64 = 315_532_800;
    const LAST: u64 = 4_354_819_198;
    let secs = unix_secs.clamp(FIRST, LAST);
    let (days, time) = (secs / 86_400, secs % 86_400);
    // Years are counted from March on, so that a leap day is the last of them.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, is_next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + is_next;
    let date = (year - 1980) << 9 | month << 5 | day;
    let time = (time / 3_600) << 11 | (time / 60 % 60) << 5 | (time % 60 / 2);
    (u16::try_from(date).unwrap_or(0), u16::try_from(time).unwrap_or(0))
}

/// Returns a number, or the mark that it stands elsewhere.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

fn short(length: usize) -> u16 {
    u16::try_from(length).expect("a path that is served, and some fields")
}

fn push_u16s(out: &mut Vec<u8>, numbers: &[u16]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn push_u32s(out: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn push_u64s(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts((date, time): (u16, u16)) -> [u16; 6] {
        let (hour, minute, second) = (time >> 11, time >> 5 & 63, (time & 31) * 2);
        [1980 + (date >> 9), date >> 5 & 15, date & 31, hour, minute, second]
    }

    #[test]
    fn dates_are_those_of_dos() {
        for (unix_secs, expected) in [
            (0, [1980, 1, 1, 0, 0, 0]),
            (784_111_777, [1994, 11, 6, 8, 49, 36]),
            (951_782_400, [2000, 2, 29, 0, 0, 0]),
            (1_709_251_199, [2024, 2, 29, 23, 59, 58]),
            (1_709_251_200, [2024, 3, 1, 0, 0, 0]),
            (4_354_819_198, [2107, 12, 31, 23, 59, 58]),
            (u64::MAX, [2107, 12, 31, 23, 59, 58]),
        ] {
            assert_eq!(parts(dos_date(unix_secs)), expected, "{unix_secs}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_stand_in_fields_of_zip64() {
        let large = end_records(70_000, 5 << 32, 9_000_000);
        assert_eq!(large.len(), 56 + 20 + 22);
        assert_eq!(large[24..32], 70_000_u64.to_le_bytes());
        assert_eq!(large[large.len() - 14..large.len() - 10], [0xff; 4]);
        assert_eq!(end_records(65_534, 1, 1).len(), 22);
        assert_eq!(end_records(65_535, 1, 1).len(), 98);
    }
}
