//! The attributes of a file by which it is seen whether it has changed.

use gustnado_http::content_coding::ContentCoding;
use gustnado_http::dictionary::DictionaryHash;
use gustnado_http::etag::EntityTag;
use gustnado_tasks::Now;
use rustix::fs::Stat;

use super::resolve::Identity;

/// How long equal times do not prove equal bytes: two writes within one tick of the file system's
/// clock have the same stamp. Such a file is loaded again at the next check.
const SETTLING_SECS: u64 = 2;

/// The state of a file when it was loaded, to be compared with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stamp: Stamp,
    /// Equal attributes prove equal bytes.
    pub(super) is_settled: bool,
    /// Its tag is made of its attributes until its bytes were digested.
    pub(super) awaits_digest: bool,
}

impl Seen {
    pub(super) fn new(stamp: Stamp, awaits_digest: bool, now: Now) -> Self {
        Self { stamp, is_settled: stamp.is_settled(now), awaits_digest }
    }

    /// Returns whether the file on the disk is certainly the same.
    pub(super) fn is_unchanged(&self, stat: &Stat) -> bool {
        self.is_settled && self.stamp == Stamp::of(stat)
    }
}

/// The attributes that change with a file's bytes. The change time is one of them because programs
/// cannot set it: a file copied with its old modification time and size must not look unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    pub(super) device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Stamp {
        Stamp {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns which file it is of.
    pub(super) fn identity(&self) -> Identity {
        Identity::new(self.device, self.inode)
    }

    /// Returns an entity tag made of the attributes. The device is left out: its number may differ
    /// after a restart.
    ///
    /// Bytes that were just written may be replaced by others without a change of the stamp. Their
    /// tag is valid only for as long as that can happen.
    pub(super) fn tag(&self, now: Now) -> EntityTag {
        let (modified, changed) = (self.modified, self.changed);
        EntityTag::strong(&[
            self.inode,
            self.size,
            modified.0.cast_unsigned(),
            modified.1,
            changed.0.cast_unsigned(),
            changed.1,
            u64::from(self.is_settled(now)),
        ])
    }

    /// Returns the stamp of what was made of the file's bytes, which no file has.
    pub(super) fn of_made(&self, coding: ContentCoding, size: u64) -> Self {
        // (Inodes of no file system reach that far.)
        Self { inode: !self.inode ^ (coding as u64) << 32, size, ..*self }
    }

    /// Returns the same of a delta.
    ///
    /// - `dictionary`: the hash of what it is the difference to.
    pub(super) fn of_delta(&self, dictionary: &DictionaryHash, size: u64) -> Self {
        let bits = dictionary.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Self { inode: !self.inode ^ bits, size, ..*self }
    }

    /// Returns whether it was modified before another file.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        self.modified < other.modified
    }

    /// Returns when it was modified, in seconds since 1970.
    pub(super) fn modified_at_secs(&self) -> i64 {
        self.modified.0
    }

    /// Returns the date of `Last-Modified`, which must not lie in the future (RFC 9110 §8.8.2.1).
    pub(super) fn modified_secs(&self, now: Now) -> u64 {
        u64::try_from(self.modified.0).unwrap_or(0).min(now.unix_secs)
    }

    /// Returns whether any later write gives the file another stamp: its attributes were changed,
    /// by the clock of its file system, when the time of the last write was over.
    pub(super) fn shows_later_writes(&self) -> bool {
        self.changed > self.modified
    }

    /// Returns whether equal attributes prove equal bytes from now on.
    pub(super) fn is_settled(&self, now: Now) -> bool {
        self.latest_secs().saturating_add(SETTLING_SECS) <= now.unix_secs
    }

    /// Returns whether its times lie in the future, where no wait makes them settle.
    pub(super) fn is_ahead(&self, now: Now) -> bool {
        self.latest_secs() > now.unix_secs.saturating_add(SETTLING_SECS)
    }

    /// Returns when it was modified or changed last, in seconds since 1970.
    fn latest_secs(&self) -> u64 {
        u64::try_from(self.modified.0.max(self.changed.0)).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn with_inode(inode: u64) -> Stamp {
        Stamp { device: 1, inode, size: 1, modified: (5, 6), changed: (7, 8) }
    }
}
