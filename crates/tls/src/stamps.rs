//! What tells that a file was replaced: by another one, by a link to another one, or in place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::settings::TlsSettings;

/// The state of some files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<Option<FileStamp>>);

/// The state of one; links are followed, as some tools replace the folder that they lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamps {
    /// Looks at all files of the settings.
    pub(crate) fn of(settings: &TlsSettings) -> Self {
        let mut stamps = Vec::new();
        for site in settings.sites.iter().chain(&settings.usual) {
            stamps.push(stamp(&site.certificates));
            stamps.push(stamp(&site.key));
            if let Some(clients) = &site.clients {
                stamps.push(stamp(&clients.authorities));
                stamps.extend(clients.revoked.as_deref().map(stamp));
            }
        }
        stamps.extend(settings.ticket_keys.as_deref().map(stamp));
        Self(stamps)
    }
}

pub(crate) fn stamp(path: &Path) -> Option<FileStamp> {
    let meta = fs::metadata(path).ok()?;
    let (device, inode, bytes) = (meta.dev(), meta.ino(), meta.len());
    Some(FileStamp { device, inode, bytes, changed: (meta.mtime(), meta.mtime_nsec()) })
}
