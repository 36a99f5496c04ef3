//! The temporary folder with the page and the servers' own files. Every user may read it, because
//! many servers drop privileges. It is removed at the end of the contest.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::file::{BodySpec, ContestSpec, PageSpec, ScenarioSpec, WantedContent};

/// Prefix of the folders of all contests; the process's id follows.
const PREFIX: &str = "gustnado-contest-";
/// Maximum age of a contest's folder (`time_limit` is bounded).
const ORPHANED_AFTER: Duration = Duration::from_hours(8 * 24);

/// The folder with its pages.
#[derive(Debug)]
pub(super) struct ContestFolder {
    base: PathBuf,
}

impl ContestFolder {
    /// Creates it, with all pages of the contest.
    pub(super) fn make(contest: &ContestSpec) -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        remove_orphans(&temporary);
        let folders = Self { base: fresh_folder(&temporary)? };
        open_folder(&folders.root())?;
        for page in pages(contest) {
            if let Some(content) = content(contest, page.as_ref())? {
                let path = folders.root().join(page_name(contest, page.as_ref()));
                fs::write(&path, content)?;
                fs::set_permissions(&path, Permissions::from_mode(0o644))?;
            }
        }
        Ok(folders)
    }

    /// The folder of the pages.
    pub(super) fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// A file with the body of a request, written on first use.
    pub(super) fn body(&self, body: &BodySpec) -> io::Result<PathBuf> {
        let name = match body {
            BodySpec::Text(_) => "body-text".to_owned(),
            BodySpec::Bytes(bytes) => format!("body-{bytes}"),
        };
        let path = self.base.join(name);
        // A text may be another one than that of the last scenario.
        if matches!(body, BodySpec::Text(_)) || !path.exists() {
            fs::write(&path, body.content())?;
        }
        Ok(path)
    }

    /// The folder of one contender, created on first use.
    pub(super) fn work(&self, at: usize) -> io::Result<PathBuf> {
        let path = self.base.join(format!("work-{at}"));
        open_folder(&path)?;
        Ok(path)
    }
}

impl Drop for ContestFolder {
    fn drop(&mut self) {
        // A leftover lies in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Removes folders of killed contests. It goes by age, since processes of other containers, which
/// may share the folder, are invisible.
fn remove_orphans(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let made = entry.metadata().and_then(|found| found.modified());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > ORPHANED_AFTER) {
            // It may belong to another user.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Creates a new folder; an existing one of another user would stay theirs to change.
fn fresh_folder(temporary: &Path) -> io::Result<PathBuf> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    loop {
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let path = temporary.join(format!("{PREFIX}{}-{made}", std::process::id()));
        match fs::create_dir(&path) {
            // It is of a killed process that had the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made?;
                fs::set_permissions(&path, Permissions::from_mode(0o755))?;
                return Ok(path);
            }
        }
    }
}

fn open_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// The pages of all scenarios; `None` is the contest's own page.
pub(super) fn pages(contest: &ContestSpec) -> Vec<Option<PageSpec>> {
    let mut pages: Vec<Option<PageSpec>> =
        contest.scenarios.iter().map(|scenario| scenario.page.clone()).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// What is requested in the scenarios that a contender takes part in.
pub(super) fn representations_of(contest: &ContestSpec, contender: &str) -> Vec<WantedContent> {
    let scenarios = contest.scenarios.iter().filter(|scenario| scenario.has(contender));
    let mut all: Vec<WantedContent> = scenarios.map(ScenarioSpec::representation).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The value of `{target}`: where cargo builds the code base that a folder is part of.
pub(super) fn cargo_target(folder: &Path) -> PathBuf {
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR").filter(|target| !target.is_empty()) {
        return std::path::absolute(&target).unwrap_or_else(|_| target.into());
    }
    let root = folder.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.unwrap_or(folder).join("target")
}

/// The value of `{page}` in a URL.
pub(super) fn page_name(contest: &ContestSpec, page: Option<&PageSpec>) -> String {
    match page.unwrap_or(&contest.page) {
        PageSpec::Bytes(bytes) if page.is_some() => format!("page-{bytes}.html"),
        PageSpec::Bytes(_) => "page.html".to_owned(),
        PageSpec::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        PageSpec::Path(path) | PageSpec::Post(path, _) => path.clone(),
        PageSpec::Messages(messages) => messages.path.clone(),
    }
}

/// The bytes of a page; `None` if contenders provide it.
pub(super) fn content(
    contest: &ContestSpec,
    page: Option<&PageSpec>,
) -> io::Result<Option<Vec<u8>>> {
    Ok(match page.unwrap_or(&contest.page) {
        PageSpec::Bytes(bytes) => Some(text(*bytes)),
        PageSpec::File(path) => Some(fs::read(path)?),
        PageSpec::Path(_) | PageSpec::Post(..) | PageSpec::Messages(_) => None,
    })
}

/// Lines of pseudo-random letters, the same each time (xorshift with a fixed seed), so that
/// compression does not help.
fn text(bytes: u64) -> Vec<u8> {
    const LINE: u64 = 64;
    let mut state: u64 = 0x2018_0c10_c10c_8102;
    let byte = |at: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let letter = b'a' + u8::try_from(state % 26).unwrap_or_default();
        if at % LINE == LINE - 1 { b'\n' } else { letter }
    };
    (0..bytes).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn what_a_killed_contest_has_left_is_removed() {
        let base = std::env::temp_dir().join(format!("orphans-{}", std::process::id()));
        let [fresh, old, other] =
            ["gustnado-contest-1-0", "gustnado-contest-2-0", "other"].map(|name| base.join(name));
        for folder in [&fresh, &old, &other] {
            fs::create_dir_all(folder.join("root")).expect("a temporary folder");
        }
        let long_ago = SystemTime::now() - 2 * ORPHANED_AFTER;
        for folder in [&old, &other] {
            let opened = fs::File::open(folder).expect("it is there");
            opened.set_modified(long_ago).expect("it is ours");
        }
        remove_orphans(&base);
        assert!(fresh.exists() && other.exists() && !old.exists());
        fs::remove_dir_all(base).expect("it is there");
    }

    #[test]
    fn a_page_is_as_long_as_asked_and_the_same_each_time() {
        assert_eq!(text(0), b"");
        let page = text(4_096);
        assert_eq!(page.len(), 4_096);
        assert_eq!(page, text(4_096));
        let page = String::from_utf8(page).expect("letters");
        assert_eq!(page.matches('\n').count(), 64);
        let letters = page.matches('e').count();
        assert!((100..220).contains(&letters), "{letters}");
    }
}
