//! A file or a folder as an archive has it.

use gustnado_compress::is_compressed_already;
use rustix::fs::Stat;

use crate::content_type::ContentType;

/// A file or a folder in an archive.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its path in the archive, without a slash at its ends.
    pub(super) path: Vec<u8>,
    pub(super) is_folder: bool,
    /// When it was changed, in seconds since 1970.
    pub(super) modified: u64,
    /// Whether its owner may run it. Nothing else is told of its permissions.
    is_executable: bool,
}

impl Member {
    pub(super) fn new(path: Vec<u8>, stat: &Stat, is_folder: bool) -> Self {
        let modified = u64::try_from(stat.st_mtime).unwrap_or(0);
        Self { path, is_folder, modified, is_executable: stat.st_mode & 0o100 != 0 }
    }

    /// Returns the permissions that it gets when it is unpacked.
    pub(super) fn mode(&self) -> u32 {
        if self.is_folder || self.is_executable { 0o755 } else { 0o644 }
    }

    /// Returns its path, with a slash behind that of a folder.
    pub(super) fn name(&self) -> Vec<u8> {
        let end: &[u8] = if self.is_folder { b"/" } else { b"" };
        [&self.path, end].concat()
    }

    /// Returns whether its bytes are worth the work of an encoder, going by its name.
    pub(super) fn is_compressible(&self) -> bool {
        !is_compressed_already(ContentType::of(&self.path).essence())
    }
}
