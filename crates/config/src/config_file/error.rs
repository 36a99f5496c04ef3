//! Errors of a configuration file, line by line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named: the configuration file, or one that it includes.
    pub file: Arc<Path>,
    /// The line, from 1; 0 is the file as a whole.
    pub line: usize,
    /// The value that was expected, the one that was found, and the remedy.
    pub text: String,
}

/// The error of a configuration file that cannot be used. `Display` is one line for each problem,
/// in the order of the file: `site.toml:3: port: expected …, found …; …`.
#[derive(Clone, PartialEq, Eq)]
pub struct SiteError {
    path: PathBuf,
    files: Vec<Arc<Path>>,
    problems: Vec<Problem>,
}

impl SiteError {
    /// - `files`: all files, in the order in which their problems are shown.
    pub(super) fn new(path: &Path, files: &[Arc<Path>], mut problems: Vec<Problem>) -> Self {
        let place = |problem: &Problem| files.iter().position(|file| *file == problem.file);
        problems.sort_by_key(|problem| (place(problem), problem.line));
        problems.dedup();
        Self { path: path.to_owned(), files: files.to_vec(), problems }
    }

    pub(super) fn whole(path: &Path, text: String) -> Self {
        let file: Arc<Path> = path.into();
        let problem = Problem { file: Arc::clone(&file), line: 0, text };
        Self { path: path.to_owned(), files: vec![file], problems: vec![problem] }
    }

    /// Returns the file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns every file that was read, or should have been: the file and those that it includes.
    pub fn files(&self) -> &[Arc<Path>] {
        &self.files
    }

    /// Returns everything that is wrong with it, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Problem { file, line, text }) in self.problems.iter().enumerate() {
            let path = file.display();
            let gap = if at == 0 { "" } else { "\n" };
            match line {
                0 => write!(f, "{gap}{path}: {text}")?,
                line => write!(f, "{gap}{path}:{line}: {text}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for SiteError {}

/// Returns why a file cannot be read, and the remedy.
pub(super) fn unreadable(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "no such file; name one that is there",
        io::ErrorKind::PermissionDenied => "no permission to read it; allow it to this user",
        io::ErrorKind::InvalidData => "it is not UTF-8; save it as such",
        io::ErrorKind::IsADirectory => "it is a folder; name the file in it",
        _ => return format!("cannot be read: {error}; name another one"),
    };
    remedy.to_owned()
}
