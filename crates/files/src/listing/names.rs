//! The names in a folder, sorted.

use std::cmp::Ordering;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::query::{Order, SortBy};
use crate::open_folder::OpenFolder;
use crate::shown::ShownEntries;

/// The most bytes of names that are sorted. A folder with more is shown in its own order.
const NAMES_BYTES_MAX: usize = 16 << 20;
/// What a name takes beside its bytes.
const NAME_COST_BYTES: usize = size_of::<Name>();
/// The most names that are sorted by what has to be asked for each of them.
pub(super) const ATTRIBUTES_MAX: usize = 10_000;
/// The most names that are asked for their kind, where the folder does not say it.
const KINDS_MAX: usize = 10_000;
/// The names of one page.
pub(super) const PAGE_NAMES: usize = 10_000;
/// Names of files that describe a folder, in small letters, the best one first.
const READMES: [&[u8]; 4] = [b"readme.md", b"readme.markdown", b"readme.txt", b"readme"];

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Folder,
    File,
}

impl EntryKind {
    /// Returns `None` for what is neither a file nor a folder.
    pub(super) fn of(kind: FileType) -> Option<Self> {
        match kind {
            FileType::Directory => Some(Self::Folder),
            FileType::RegularFile => Some(Self::File),
            _ => None,
        }
    }
}

/// One page of the names in a folder.
#[derive(Debug)]
pub(super) struct NamesPage {
    /// The names, one behind the other.
    bytes: Vec<u8>,
    names: Vec<Name>,
    /// The number of the page, from 1 on.
    pub(super) page: usize,
    /// The number of pages.
    pub(super) pages: usize,
    /// The names in the folder.
    pub(super) total: usize,
    /// The order in which they are, if they are sorted.
    pub(super) sorted: Option<(SortBy, Order)>,
    /// The name of the file that describes the folder.
    pub(super) readme: Option<Vec<u8>>,
}

/// One name among others.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// Its first bytes in small letters: most names differ there.
    key: u64,
    start: u32,
    length: u16,
    is_file: bool,
}

/// What is read of a folder.
struct NamesRead {
    bytes: Vec<u8>,
    names: Vec<Name>,
    total: usize,
    readme: Option<(usize, Vec<u8>)>,
    /// They are too many to be sorted: `names` are those of the page.
    is_cut: bool,
}

impl NamesPage {
    /// Reads the names in a folder, and sorts them.
    ///
    /// - `page`: which page, from 1 on; a number beyond the last page is the last.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn read(
        folder: &OpenFolder,
        shown: &ShownEntries,
        (by, order): (SortBy, Order),
        page: usize,
    ) -> Result<Self, Errno> {
        let mut read = NamesRead::of(folder, shown, page, NAMES_BYTES_MAX)?;
        let pages = read.total.div_ceil(PAGE_NAMES).max(1);
        if read.is_cut {
            if read.names.is_empty() && pages < page {
                read = NamesRead::of(folder, shown, pages, NAMES_BYTES_MAX)?;
            }
            return Ok(read.into_page(page.min(pages), pages, None));
        }
        let by = if read.names.len() > ATTRIBUTES_MAX { SortBy::Name } else { by };
        read.sort(folder, by, order);
        let page = page.clamp(1, pages);
        let names = read.names.len();
        let (first, end) = (((page - 1) * PAGE_NAMES).min(names), (page * PAGE_NAMES).min(names));
        read.names.truncate(end);
        read.names.drain(..first);
        Ok(read.into_page(page, pages, Some((by, order))))
    }

    /// Returns how many names there are on the page.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the heap memory of this value in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.names.capacity() * NAME_COST_BYTES
    }

    /// Returns a name on the page, from 0 on.
    pub(super) fn name(&self, at: usize) -> &[u8] {
        self.names[at].of(&self.bytes)
    }
}

impl Name {
    fn of<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let start = self.start as usize;
        &bytes[start..start + usize::from(self.length)]
    }

    /// Compares by name, whatever the case of the letters; folders come first.
    fn compare(&self, other: &Self, bytes: &[u8]) -> Ordering {
        let heads = (self.is_file, self.key).cmp(&(other.is_file, other.key));
        heads.then_with(|| {
            let (own, others) = (self.of(bytes), other.of(bytes));
            let small = own.iter().map(u8::to_ascii_lowercase);
            small.cmp(others.iter().map(u8::to_ascii_lowercase)).then_with(|| own.cmp(others))
        })
    }
}

impl NamesRead {
    fn of(
        folder: &OpenFolder,
        shown: &ShownEntries,
        page: usize,
        bytes_max: usize,
    ) -> Result<Self, Errno> {
        let mut read =
            Self { bytes: Vec::new(), names: Vec::new(), total: 0, readme: None, is_cut: false };
        let (first, end) = (page.saturating_sub(1) * PAGE_NAMES, page * PAGE_NAMES);
        let mut asked = 0;
        let mut dir = Dir::read_from(folder.directory())?;
        while let Some(found) = dir.read() {
            let found = found?;
            let name = found.file_name().to_bytes();
            if !shown.has_name(name) {
                continue;
            }
            let kind = match found.file_type() {
                FileType::Symlink | FileType::Unknown if asked < KINDS_MAX => {
                    asked += 1;
                    let stat = folder.stat(name);
                    stat.and_then(|stat| EntryKind::of(FileType::from_raw_mode(stat.st_mode)))
                }
                // What it is shows when it is listed.
                FileType::Symlink | FileType::Unknown => Some(EntryKind::File),
                kind => EntryKind::of(kind),
            };
            let Some(kind) = kind else { continue };
            let is_left_out = || shown.leaves_out(&folder.path_of(name), kind == EntryKind::Folder);
            if !shown.has_all() && is_left_out() {
                continue;
            }
            read.note_readme(name, kind);
            read.total += 1;
            if read.is_cut {
                if (first..end).contains(&(read.total - 1)) {
                    read.push(name, kind);
                }
                continue;
            }
            read.push(name, kind);
            if read.bytes.len() + read.names.len() * NAME_COST_BYTES > bytes_max {
                read.is_cut = true;
                read.keep_only(first, end);
            }
        }
        Ok(read)
    }

    fn push(&mut self, name: &[u8], kind: EntryKind) {
        let mut key = [0; 8];
        for (to, from) in key.iter_mut().zip(name) {
            *to = from.to_ascii_lowercase();
        }
        let start = u32::try_from(self.bytes.len()).expect("names of 16 MiB and one page at most");
        // (The kernel knows no name of more than 255 bytes.)
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&name[..usize::from(length)]);
        let is_file = kind == EntryKind::File;
        self.names.push(Name { key: u64::from_be_bytes(key), start, length, is_file });
    }

    /// Keeps the names of a page, and their bytes alone.
    fn keep_only(&mut self, first: usize, end: usize) {
        let end = end.min(self.names.len());
        self.names.truncate(end);
        self.names.drain(..first.min(end));
        let mut bytes = Vec::new();
        for name in &mut self.names {
            let start = u32::try_from(bytes.len()).expect("fewer than before");
            bytes.extend_from_slice(name.of(&self.bytes));
            name.start = start;
        }
        self.bytes = bytes;
        self.names.shrink_to_fit();
    }

    fn note_readme(&mut self, name: &[u8], kind: EntryKind) {
        let best = self.readme.as_ref().map_or(READMES.len(), |(place, _)| *place);
        let is_it = |readme: &&[u8]| readme.eq_ignore_ascii_case(name);
        if kind == EntryKind::File
            && let Some(place) = READMES[..best].iter().position(is_it)
        {
            self.readme = Some((place, name.to_vec()));
        }
    }

    fn sort(&mut self, folder: &OpenFolder, by: SortBy, order: Order) {
        let Self { bytes, names, .. } = self;
        if by == SortBy::Name {
            names.sort_unstable_by(|one, other| one.compare(other, bytes));
        } else {
            let mut with: Vec<(i64, Name)> = Vec::with_capacity(names.len());
            for name in names.iter() {
                // (What is gone by now has no attributes, and will not be shown.)
                let value = folder.stat(name.of(bytes)).map_or(0, |stat| match by {
                    SortBy::Size if name.is_file => stat.st_size,
                    SortBy::Size | SortBy::Name => 0,
                    SortBy::Date => stat.st_mtime,
                });
                with.push((value, *name));
            }
            with.sort_unstable_by(|(value, one), (others, other)| {
                let is_file = one.is_file.cmp(&other.is_file);
                is_file.then(value.cmp(others)).then_with(|| one.compare(other, bytes))
            });
            names.clear();
            names.extend(with.into_iter().map(|(_, name)| name));
        }
        if order == Order::Descending {
            let folders = names.iter().take_while(|name| !name.is_file).count();
            names[..folders].reverse();
            names[folders..].reverse();
        }
    }

    fn into_page(
        mut self,
        page: usize,
        pages: usize,
        sorted: Option<(SortBy, Order)>,
    ) -> NamesPage {
        // The other names would be held for as long as the client takes.
        self.keep_only(0, usize::MAX);
        let Self { bytes, names, total, readme, .. } = self;
        let readme = readme.map(|(_, name)| name);
        NamesPage { bytes, names, page, pages, total, sorted, readme }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Root;
    use std::fs;
    use tempfile::TempDir;

    fn folder(names: &[&str]) -> (TempDir, OpenFolder) {
        let place = TempDir::new().expect("a temporary folder");
        for name in names {
            match name.strip_suffix('/') {
                Some(folder) => fs::create_dir(place.path().join(folder)).expect("a folder"),
                None => fs::write(place.path().join(name), name).expect("a file"),
            }
        }
        let root = Root::open(place.path()).expect("it is there");
        let located = root.locate(b"").expect("the root");
        let opened = OpenFolder::open(&root, &located, b"").expect("it can be read");
        (place, opened)
    }

    fn names(read: &NamesRead) -> Vec<&str> {
        let name = |name: &Name| std::str::from_utf8(name.of(&read.bytes)).expect("text");
        // (The borrow is of the reading, not of the closure's argument.)
        read.names.iter().map(name).collect()
    }

    #[test]
    fn folders_come_first_and_case_does_not_matter() {
        let (_place, folder) = folder(&["b", "A", "c/", "same-beginning-2", "same-beginning-1"]);
        let page = |order| {
            let page = NamesPage::read(&folder, &ShownEntries::default(), (SortBy::Name, order), 1)
                .expect("read");
            (0..page.len())
                .map(|at| String::from_utf8_lossy(page.name(at)).into_owned())
                .collect::<Vec<_>>()
        };
        let ascending = ["c", "A", "b", "same-beginning-1", "same-beginning-2"];
        assert_eq!(page(Order::Ascending), ascending);
        let descending = ["c", "same-beginning-2", "same-beginning-1", "b", "A"];
        assert_eq!(page(Order::Descending), descending);
    }

    #[test]
    fn names_beyond_the_bound_are_not_sorted_and_only_those_of_a_page_are_kept() {
        let all: Vec<String> = (0..40).map(|at| format!("file-{at}")).collect();
        let (_place, folder) = folder(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let cut = NamesRead::of(&folder, &ShownEntries::default(), 1, 200).expect("read");
        assert!(cut.is_cut && cut.total == 40 && cut.names.len() == 40);
        assert_eq!(names(&cut).len(), 40);
        let behind = NamesRead::of(&folder, &ShownEntries::default(), 2, 200).expect("read");
        assert!(behind.is_cut && behind.names.is_empty() && behind.bytes.is_empty());
        let whole = NamesRead::of(&folder, &ShownEntries::default(), 1, 1 << 20).expect("read");
        assert!(!whole.is_cut && whole.names.len() == 40);
    }

    #[test]
    fn the_best_readme_is_found() {
        let (_place, folder) = folder(&["README", "ReadMe.md", "readme.txt", "sub/"]);
        let page =
            NamesPage::read(&folder, &ShownEntries::default(), (SortBy::Size, Order::Ascending), 1);
        assert_eq!(page.expect("read").readme.as_deref(), Some(b"ReadMe.md".as_slice()));
    }
}
