//! What a path leads to: a file, a folder, or another path. The settings of the folder decide.

use gustnado_config::{RouteSettings, TrailingSlash, TryFile};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::error::Failure;
use super::path::FilePath;
use super::resolve::Located;

/// The ending of pages whose path is without it.
pub(super) const PAGE_SUFFIX: &str = ".html";

/// The rules of a folder by which a path leads to a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PathRules {
    index: Vec<Vec<u8>>,
    attempts: Vec<TryFile>,
    has_clean_urls: bool,
    slash: TrailingSlash,
    /// A folder without an index is listed.
    lists: bool,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Target {
    File(TargetFile),
    /// A folder without an index, at this path below the root.
    Folder(Located, Vec<u8>),
    /// Another path, to which the client is sent.
    Moved(Moved),
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct TargetFile {
    pub(super) located: Located,
    /// Its path below the root.
    pub(super) relative: Vec<u8>,
    /// Any number of paths lead to it, so it is not cached by them.
    pub(super) is_fallback: bool,
}

/// How another path differs from that of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    WithSlash,
    WithoutSlash,
    /// Without the ending of a page.
    WithoutSuffix,
    /// Without its last segment, which is the name of an index.
    WithoutName,
    /// The same, and without the slash before it.
    WithoutNameAndSlash,
}

impl PathRules {
    /// - `lists`: whether a folder without an index is listed.
    pub(super) fn new(settings: &RouteSettings, lists: bool) -> Self {
        let parsed = settings.try_files.iter().filter_map(|text| TryFile::parse(text));
        let mut attempts: Vec<TryFile> = parsed.collect();
        let itself = TryFile::Beside(String::new());
        if attempts.is_empty() {
            attempts = vec![itself.clone(), TryFile::Folder];
        }
        let page = TryFile::Beside(PAGE_SUFFIX.to_owned());
        if settings.clean_urls && !attempts.contains(&page) {
            let at = attempts.iter().position(|attempt| *attempt == itself).map_or(0, |at| at + 1);
            attempts.insert(at, page);
        }
        Self {
            index: settings.index.iter().map(|name| name.as_bytes().to_vec()).collect(),
            attempts,
            has_clean_urls: settings.clean_urls,
            slash: settings.trailing_slash,
            lists,
        }
    }

    /// Returns what a path leads to.
    ///
    /// - `check_other`: refuses files at other paths than this one.
    /// - `locate`: finds an entry by its path below the root.
    ///
    /// # Errors
    /// It leads to nothing, or that cannot be found out.
    pub(super) fn target(
        &self,
        path: FilePath,
        check_other: impl Fn(&[u8]) -> Result<(), Failure>,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Target, Failure> {
        self.target_among(&self.attempts, path, check_other, locate)
    }

    /// Returns whether a new file would be found by a path that leads to another file now.
    ///
    /// - `relative`: where it would be, below the root.
    /// - `check_other`, `locate`: as for [`PathRules::target`].
    pub(super) fn would_shadow(
        &self,
        relative: &[u8],
        check_other: impl Fn(&[u8]) -> Result<(), Failure>,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> bool {
        let leads_to_file = |attempts: &[TryFile], path: &[u8]| {
            [false, true].into_iter().any(|names_directory| {
                let path = FilePath { relative: path.to_vec(), names_directory };
                let target = self.target_among(attempts, path, &check_other, &locate);
                // (Where a page stands for all that is missing, every new file is in its place.)
                matches!(target, Ok(Target::File(file)) if !file.is_fallback)
            })
        };
        let attempts = self.attempts.iter().take_while(|attempt| **attempt != TryFile::NotFound);
        attempts.enumerate().any(|(at, attempt)| {
            let (before, behind) = (&self.attempts[..at], &self.attempts[at + 1..]);
            let path = match attempt {
                TryFile::NotFound => None,
                // Any number of paths lead to it, and from what is behind it.
                TryFile::Fixed(fixed) => {
                    let is_last = behind.first().is_none_or(|next| *next == TryFile::NotFound);
                    return fixed.as_bytes() == relative && !is_last;
                }
                TryFile::Beside(suffix) => match suffix.strip_prefix('/') {
                    Some(below) if below.as_bytes() == relative => Some(&b""[..]),
                    _ => relative.strip_suffix(suffix.as_bytes()),
                },
                TryFile::Folder => {
                    let (folder, name) = parted(relative);
                    let place = self.index.iter().position(|index| index == name);
                    let is_there = |index: &Vec<u8>| {
                        let path = within(folder, index);
                        check_other(&path).is_ok() && locate(&path).is_ok()
                    };
                    match place.map(|place| (&self.index[..place], &self.index[place + 1..])) {
                        Some((_, worse)) if worse.iter().any(is_there) => return true,
                        Some((better, _)) if !better.iter().any(is_there) => Some(folder),
                        _ => None,
                    }
                }
            };
            path.is_some_and(|path| leads_to_file(behind, path) && !leads_to_file(before, path))
        })
    }

    /// Returns what a path leads to by some of the attempts.
    fn target_among(
        &self,
        attempts: &[TryFile],
        path: FilePath,
        check_other: impl Fn(&[u8]) -> Result<(), Failure>,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Target, Failure> {
        let FilePath { relative, names_directory } = path;
        let locate_other = |other: &[u8]| check_other(other).and_then(|()| locate(other));
        // Its own entry is looked for once, whether a file or a folder is wanted.
        let (mut own, mut outcome) = (None, Failure::Disk(Errno::NOENT));
        for attempt in attempts {
            let found = match attempt {
                TryFile::NotFound => break,
                TryFile::Fixed(fixed) => {
                    let relative = fixed.clone().into_bytes();
                    file(relative, true, locate_other).map(|file| file.map(Target::File))
                }
                TryFile::Beside(suffix) if suffix.is_empty() => {
                    let located = own.take().unwrap_or_else(|| locate(&relative));
                    match located {
                        Ok(located) if located.kind() == FileType::Directory => {
                            own = Some(Ok(located));
                            Ok(None)
                        }
                        Ok(located) => {
                            let path = (&*relative, names_directory);
                            self.own_file(located, path, &check_other, &locate)
                        }
                        Err(failure) => {
                            own = Some(Err(failure));
                            Err(failure)
                        }
                    }
                }
                TryFile::Beside(suffix) => {
                    self.beside(suffix, &relative, names_directory, locate_other)
                }
                TryFile::Folder => {
                    let located = own.take().unwrap_or_else(|| locate(&relative));
                    match located {
                        Ok(located) if located.kind() == FileType::Directory => {
                            self.folder(located, &relative, names_directory, locate_other)
                        }
                        Ok(_) => Err(Failure::Disk(Errno::NOTDIR)),
                        Err(failure) => Err(failure),
                    }
                }
            };
            match found {
                Ok(Some(target)) => return Ok(target),
                Ok(None) => {}
                Err(failure) if is_missing(failure) => outcome = worse(outcome, failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(outcome)
    }

    /// Returns the file at the path itself.
    fn own_file(
        &self,
        located: Located,
        (relative, names_directory): (&[u8], bool),
        check_other: impl Fn(&[u8]) -> Result<(), Failure>,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Option<Target>, Failure> {
        if names_directory {
            match self.slash {
                TrailingSlash::Add => return Err(Failure::Disk(Errno::NOTDIR)),
                TrailingSlash::Remove => return Ok(Some(Target::Moved(Moved::WithoutSlash))),
                // The file's own path has no slash.
                TrailingSlash::Ignore => check_other(relative)?,
            }
        } else if self.has_clean_urls
            && let Some(moved) = self.cleaned(relative, locate)?
        {
            return Ok(Some(Target::Moved(moved)));
        }
        let relative = relative.to_vec();
        Ok(Some(Target::File(TargetFile { located, relative, is_fallback: false })))
    }

    /// Returns how the path of a page is written, if it is another one.
    fn cleaned(
        &self,
        relative: &[u8],
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Option<Moved>, Failure> {
        let start = memchr::memrchr(b'/', relative).map_or(0, |at| at + 1);
        let name = &relative[start..];
        let Some(stem) = name.strip_suffix(PAGE_SUFFIX.as_bytes()) else { return Ok(None) };
        if self.index.first().is_some_and(|index| index == name) {
            if self.is_before_folder(relative, start, locate)? {
                return Ok(None);
            }
            return Ok(Some(match self.slash {
                TrailingSlash::Remove if start > 0 => Moved::WithoutNameAndSlash,
                _ => Moved::WithoutName,
            }));
        }
        if stem.is_empty() {
            return Ok(None);
        }
        // A file of that very name is found there instead.
        match locate(&relative[..relative.len() - PAGE_SUFFIX.len()]) {
            Ok(located) if located.kind() != FileType::Directory => Ok(None),
            Err(failure) if !is_missing(failure) => Err(failure),
            _ => Ok(Some(Moved::WithoutSuffix)),
        }
    }

    /// Returns whether the path of a folder leads to another file than its index, whose name begins
    /// at `start`. (With slashes added, only the folder's own path is without one.)
    fn is_before_folder(
        &self,
        index: &[u8],
        start: usize,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<bool, Failure> {
        if start == 0 || self.slash == TrailingSlash::Add {
            return Ok(false);
        }
        let before = self.attempts.iter().take_while(|attempt| **attempt != TryFile::Folder);
        for attempt in before {
            let TryFile::Beside(suffix) = attempt else { continue };
            let path = [&index[..start - 1], suffix.as_bytes()].concat();
            if path == index {
                break;
            }
            if !suffix.is_empty() && file(path, false, &locate)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the file at the path with a text behind it.
    fn beside(
        &self,
        suffix: &str,
        relative: &[u8],
        names_directory: bool,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Option<Target>, Failure> {
        let path = match (relative, suffix.strip_prefix('/')) {
            ([], Some(below)) => below.as_bytes().to_vec(),
            // The root has no name that something could be behind.
            ([], None) => return Ok(None),
            (relative, _) => [relative, suffix.as_bytes()].concat(),
        };
        let Some(file) = file(path, false, locate)? else { return Ok(None) };
        // (What is below the path is a page of a folder, with its slash.)
        if names_directory && !suffix.starts_with('/') {
            match self.slash {
                TrailingSlash::Add => return Ok(None),
                TrailingSlash::Remove => return Ok(Some(Target::Moved(Moved::WithoutSlash))),
                TrailingSlash::Ignore => {}
            }
        }
        Ok(Some(Target::File(file)))
    }

    /// Returns the index of the folder at the path, or the folder itself.
    fn folder(
        &self,
        located: Located,
        relative: &[u8],
        names_directory: bool,
        locate: impl Fn(&[u8]) -> Result<Located, Failure>,
    ) -> Result<Option<Target>, Failure> {
        if !names_directory && self.slash == TrailingSlash::Add {
            return Ok(Some(Target::Moved(Moved::WithSlash)));
        }
        for index in &self.index {
            let path = within(relative, index);
            match locate(&path) {
                // Only a missing index counts as none: one that cannot be read is an error, not a
                // listing.
                Err(Failure::Disk(Errno::NOENT)) => {}
                Err(failure) => return Err(failure),
                Ok(_)
                    if names_directory
                        && self.slash == TrailingSlash::Remove
                        && !relative.is_empty() =>
                {
                    return Ok(Some(Target::Moved(Moved::WithoutSlash)));
                }
                Ok(located) => {
                    let file = TargetFile { located, relative: path, is_fallback: false };
                    return Ok(Some(Target::File(file)));
                }
            }
        }
        if !self.lists {
            return Err(Failure::NoIndex);
        }
        // The links of a listing begin at its slash.
        Ok(Some(if names_directory {
            Target::Folder(located, relative.to_vec())
        } else {
            Target::Moved(Moved::WithSlash)
        }))
    }
}

/// Returns the folder and the name of a path below the root.
pub(super) fn parted(relative: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', relative) {
        Some(at) => (&relative[..at], &relative[at + 1..]),
        None => (b"", relative),
    }
}

/// Returns the path of an entry of a folder below the root.
fn within(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        [] => name.to_vec(),
        folder => [folder, b"/", name].concat(),
    }
}

/// Returns the regular file at a path below the root, if there is one.
fn file(
    relative: Vec<u8>,
    is_fallback: bool,
    locate: impl Fn(&[u8]) -> Result<Located, Failure>,
) -> Result<Option<TargetFile>, Failure> {
    match locate(&relative) {
        Ok(located) if located.kind() == FileType::RegularFile => {
            Ok(Some(TargetFile { located, relative, is_fallback }))
        }
        Ok(_) => Ok(None),
        Err(failure) if is_missing(failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns whether there is nothing, as opposed to something that cannot be looked at.
fn is_missing(failure: Failure) -> bool {
    use Failure::{Disk, NoIndex};
    let is_none = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG);
    matches!(failure, NoIndex) || matches!(failure, Disk(errno) if is_none(errno))
}

/// Returns which of two failures says more: a folder without an index is told as such.
fn worse(one: Failure, other: Failure) -> Failure {
    if one == Failure::NoIndex { one } else { other }
}
