//! Mistakes in a contest's file, by line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Line number from 1; 0 for the file as a whole.
    pub line: usize,
    /// The value that was expected, the one that was found, and the remedy.
    pub text: String,
}

/// The error of a file. `Display` is a line for each mistake: `c10k.toml:3: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    path: PathBuf,
    problems: Vec<FileProblem>,
}

impl FileError {
    pub(super) fn new(path: &Path, mut problems: Vec<FileProblem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        problems.dedup();
        Self { path: path.to_owned(), problems }
    }

    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let text = match error.kind() {
            io::ErrorKind::NotFound => "no such file; name one that is there".to_owned(),
            io::ErrorKind::InvalidData => "it is not UTF-8; save it as such".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder; name the file in it".to_owned(),
            _ => format!("cannot be read: {error}; name another one"),
        };
        Self::new(path, vec![FileProblem { line: 0, text }])
    }

    pub(super) fn too_large(path: &Path, bytes_max: u64) -> Self {
        let text = format!("expected at most {bytes_max} bytes, found more; shorten it");
        Self::new(path, vec![FileProblem { line: 0, text }])
    }

    /// All mistakes, in the order of the file.
    pub fn problems(&self) -> &[FileProblem] {
        &self.problems
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        for (at, FileProblem { line, text }) in self.problems.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            match line {
                0 => write!(f, "{gap}{path}: {text}")?,
                line => write!(f, "{gap}{path}:{line}: {text}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}
