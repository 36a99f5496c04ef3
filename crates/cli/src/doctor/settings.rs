//! Kernel settings: reads and writes them below one folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of settings: `/proc/sys` except in tests.
#[derive(Clone, Debug)]
pub(super) struct KernelSettings(pub(super) PathBuf);

impl KernelSettings {
    /// The value of a setting such as `net.core.somaxconn`; `None` if it is not readable. Numbers
    /// are separated by single blanks.
    pub(super) fn read(&self, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The value as a number.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.read(key)?.parse().ok()
    }

    /// The value as two numbers.
    pub(super) fn pair(&self, key: &str) -> Option<(u64, u64)> {
        let text = self.read(key)?;
        let (first, second) = text.split_once(' ')?;
        Some((first.parse().ok()?, second.parse().ok()?))
    }

    /// The last of three numbers.
    pub(super) fn third(&self, key: &str) -> Option<u64> {
        self.read(key)?.split(' ').nth(2)?.parse().ok()
    }

    /// Sets a value and checks that the kernel took it.
    ///
    /// # Errors
    /// There is no such setting, no permission, or the kernel keeps another value.
    pub(super) fn write(&self, key: &str, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.path(key))?;
        // The kernel takes a value in a single write only.
        file.write_all(format!("{value}\n").as_bytes())?;
        drop(file);
        match self.read(key) {
            Some(found) if found != value => {
                Err(io::Error::other(format!("the kernel made {found} of it")))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        Path::new(&self.0).join(key.replace('.', "/"))
    }
}
