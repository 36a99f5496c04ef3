//! Files that settings of TLS name.

use std::fs;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: cannot be read: {source}; `ls -l {}` shows its owner and mode",
    path.display(),
    path.display()
)]
pub struct UnreadableFile {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub source: std::io::Error,
}

/// Reads a file, which may hold a secret: its bytes are wiped when they are dropped.
pub(crate) fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, UnreadableFile> {
    let bytes = fs::read(path).map(Zeroizing::new);
    bytes.map_err(|source| UnreadableFile { path: path.to_owned(), source })
}
