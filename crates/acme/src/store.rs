//! The folder of a certificate, its account and its state. Files are written aside and renamed, so
//! that nobody reads half of one; others may read none of them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The folder of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStore {
    folder: PathBuf,
}

/// The lock of a folder. Dropping it ends it, and so does the end of the process.
#[derive(Debug)]
pub(crate) struct CertificateStoreLock(
    #[expect(dead_code, reason = "its end is what counts")] File,
);

/// A file of the folder that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: cannot be {what}: {source}; the folder has to belong to the server's user",
    path.display()
)]
pub struct CertificateStoreError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

impl CertificateStore {
    /// Opens a folder, and makes it if it is missing: for its owner alone.
    ///
    /// # Errors
    /// [`CertificateStoreError`].
    pub fn open(folder: &Path) -> Result<Self, CertificateStoreError> {
        let store = Self { folder: folder.to_owned() };
        for path in [folder.to_owned(), store.challenges()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| CertificateStoreError { path, what: "made", source })?;
        }
        Ok(store)
    }

    /// Returns the file with the certificate and its key.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }

    /// Returns the folder of answers to challenges.
    pub fn challenges(&self) -> PathBuf {
        self.folder.join("challenges")
    }

    /// Gives the folder to a user, for a server that root starts and that changes to this user.
    ///
    /// # Errors
    /// [`CertificateStoreError`].
    pub fn give_to(&self, user: u32, group: u32) -> Result<(), CertificateStoreError> {
        let mut all = vec![self.folder.clone(), self.challenges()];
        for folder in all.clone() {
            all.extend(fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()));
        }
        for path in all {
            let given = std::os::unix::fs::lchown(&path, Some(user), Some(group));
            given.map_err(|source| CertificateStoreError {
                path,
                what: "given to the server",
                source,
            })?;
        }
        Ok(())
    }

    /// Reads a file of JSON; `None` where there is none, or one that cannot be understood.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// Writes a file of JSON.
    pub(crate) fn write(
        &self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), CertificateStoreError> {
        let mut text = serde_json::to_vec_pretty(value).expect("plain values are JSON");
        text.push(b'\n');
        self.write_bytes(name, &text)
    }

    /// Writes a file.
    ///
    /// - `name`: in the folder, or in one below it.
    pub(crate) fn write_bytes(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), CertificateStoreError> {
        let path = self.folder.join(name);
        self.replace(&path, bytes).map_err(|source| CertificateStoreError {
            path,
            what: "written",
            source,
        })
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(bytes)?;
        // Root writes for the folder's owner, which is the server's user.
        if rustix::process::geteuid().is_root() {
            let owner = fs::metadata(&self.folder)?;
            std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.sync_all()?;
        fs::rename(&aside, path)
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) {
        _ = fs::remove_file(self.folder.join(name));
    }

    /// Locks the folder. `None`: another process has it locked.
    pub(crate) fn lock(&self) -> Result<Option<CertificateStoreLock>, CertificateStoreError> {
        let path = self.folder.join("lock");
        let failed = |source| CertificateStoreError { path: path.clone(), what: "locked", source };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(CertificateStoreLock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_replaced_whole_and_are_the_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(&folder.path().join("a/b")).expect("it is made");
        for text in ["one", "two"] {
            store.write_bytes("certificate.pem", text.as_bytes()).expect("it is written");
            assert_eq!(fs::read_to_string(store.certificate()).expect("a file"), text);
        }
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode(&store.certificate()) & 0o777, 0o600);
        assert_eq!(mode(&store.challenges()) & 0o777, 0o700);
        let names = fs::read_dir(folder.path().join("a/b")).expect("a folder");
        assert_eq!(names.count(), 2, "nothing is left aside");
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(folder.path()).expect("it is made");
        let lock = store.lock().expect("a file").expect("nobody else has it");
        assert!(store.lock().expect("a file").is_none());
        drop(lock);
        assert!(store.lock().expect("a file").is_some());
    }

    #[test]
    fn what_cannot_be_understood_counts_as_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = CertificateStore::open(folder.path()).expect("it is made");
        assert_eq!(store.read::<Vec<u8>>("x.json"), None);
        store.write_bytes("x.json", b"{").expect("it is written");
        assert_eq!(store.read::<Vec<u8>>("x.json"), None);
        store.write("x.json", &vec![1]).expect("it is written");
        assert_eq!(store.read::<Vec<u8>>("x.json"), Some(vec![1]));
    }
}
