//! Opens files without waiting: a pipe would block the engine's thread until another process writes
//! to it.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file and returns the metadata of the open file. `None` for any other kind.
pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Option<(File, Metadata)>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    Ok(found.is_file().then_some((file, found)))
}
