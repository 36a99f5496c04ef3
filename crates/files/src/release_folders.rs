//! Former releases on the disk: folders next to the one that a symlink leads to, with names of the
//! same pattern.
//!
//! Tools for deployment put each release into a folder of its own and swap a symlink:
//! `current -> releases/20240131`, `site -> site-v12`, `www -> builds/9f2c1b7a/dist`. The pattern
//! is the name with its numbers and hashes left open.

use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

/// The most names that are read.
const NAMES_MAX: usize = 1_024;

/// How many of the last names of a link's target may be the release's: one, and those of folders
/// within it.
const DEPTH_MAX: usize = 3;

/// Returns the releases that were served before the one that `path` leads to, the newest first,
/// each with the time when the next one took its place, in seconds since 1970.
///
/// - `path`: absolute.
/// - `count_max`: the most that are returned.
pub(super) fn former_releases(path: &Path, count_max: usize) -> Vec<(PathBuf, u64)> {
    found(path, count_max).unwrap_or_default()
}

fn found(path: &Path, count_max: usize) -> Option<Vec<(PathBuf, u64)>> {
    let swapped = SwappedLink::of(path)?;
    let current = fs::canonicalize(&swapped.link).ok()?;
    let (folder, name, inner) = release_of(&current)?;
    let inner = inner.join(&swapped.below);
    let mut all: Vec<(u64, String)> = fs::read_dir(&folder)
        .ok()?
        .take(NAMES_MAX)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|other| has_pattern_of(other, &name))
        .filter_map(|other| Some((made_secs(&folder.join(&other))?, other)))
        // A release that is being prepared has not been served.
        .filter(|(made_secs, other)| *made_secs <= swapped.at_secs || *other == name)
        .collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    let mut former = Vec::new();
    // Each was served until the next one was made, and the last until the link was swapped.
    let mut retired_secs = swapped.at_secs;
    for (made_secs, other) in all {
        if other == name {
            retired_secs = swapped.at_secs;
            continue;
        }
        former.push((folder.join(other).join(&inner), retired_secs));
        retired_secs = made_secs;
    }
    former.truncate(count_max);
    Some(former)
}

/// The last symlink of a path.
struct SwappedLink {
    link: PathBuf,
    /// The rest of the path behind it.
    below: PathBuf,
    /// When it was made or put in another one's place, in seconds since 1970.
    at_secs: u64,
}

impl SwappedLink {
    fn of(path: &Path) -> Option<Self> {
        let is_link = |link: &Path| {
            let stat = rustix::fs::lstat(link).ok()?;
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            is_link.then(|| u64::try_from(stat.st_ctime).unwrap_or(0))
        };
        path.ancestors().find_map(|link| {
            let at_secs = is_link(link)?;
            let below = path.strip_prefix(link).ok()?.to_owned();
            Some(Self { link: link.to_owned(), below, at_secs })
        })
    }
}

/// Divides the path of the current release into the folder of all releases, its own name and what
/// is behind that: the last part whose name has a pattern.
fn release_of(current: &Path) -> Option<(PathBuf, String, PathBuf)> {
    current.ancestors().take(DEPTH_MAX).find_map(|release| {
        let Some(Component::Normal(name)) = release.components().next_back() else { return None };
        let name = name.to_str().filter(|name| pattern(name) != **name)?;
        let inner = current.strip_prefix(release).ok()?.to_owned();
        Some((release.parent()?.to_owned(), name.to_owned(), inner))
    })
}

fn has_pattern_of(other: &str, name: &str) -> bool {
    pattern(other) == pattern(name)
}

/// Returns a name with its numbers and hashes left open: `site-v#`, `*` for `9f2c1b7a`.
fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|one: char| !one.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if end == 0 {
            pattern.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (part, behind) = rest.split_at(end);
        push_part(part, &mut pattern);
        rest = behind;
    }
    pattern
}

/// Appends letters and digits: a hash or a number as a star, others with each number left open.
fn push_part(part: &str, pattern: &mut String) {
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
    // A hash without a digit is as rare as a word of these letters that is as long.
    if is_hex && (has_digit || part.len() >= 7) {
        pattern.push('*');
        return;
    }
    let mut is_in_number = false;
    for one in part.chars() {
        match (one.is_ascii_digit(), is_in_number) {
            (true, true) => {}
            (true, false) => pattern.push('#'),
            (false, _) => pattern.push(one),
        }
        is_in_number = one.is_ascii_digit();
    }
}

/// Returns when a folder was made, in seconds since 1970, or when it was changed last where the
/// file system does not know; `None` if it is no folder.
fn made_secs(path: &Path) -> Option<u64> {
    let wanted = StatxFlags::BTIME | StatxFlags::CTIME | StatxFlags::TYPE;
    let stat = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let is_folder = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let made = if has_birth { stat.stx_btime.tv_sec } else { stat.stx_ctime.tv_sec };
    is_folder.then(|| u64::try_from(made).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn names_of_releases_have_a_pattern_and_others_have_none() {
        for (one, other) in [
            ("1", "12"),
            ("20240131", "20240201"),
            ("2024-01-31T10-00", "2024-02-01T09-30"),
            ("20240131T100000Z", "20240201T093000Z"),
            ("site-v12", "site-v9"),
            ("rel-9f2c1b7", "rel-0a1b2c3"),
            ("9f2c1b7a", "12345678"),
            ("9f2c1b7a", "deadbeef"),
            ("v1.2.3", "v1.10.0"),
            ("3b1a2c4d-5e6f-7081-92a3-b4c5d6e7f809", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
        ] {
            assert!(
                has_pattern_of(one, other),
                "{one} {other}: {} {}",
                pattern(one),
                pattern(other)
            );
        }
        for (one, other) in [
            ("site-v12", "blog-v12"),
            ("site-v12", "site-v12-old"),
            ("site-v12", "site-w12"),
            ("20240131", "backup"),
            ("1.2", "1.2.3"),
        ] {
            assert!(!has_pattern_of(one, other), "{one} {other}");
        }
        for name in ["blue", "current", "dist", "public", "face"] {
            assert_eq!(pattern(name), name);
        }
    }

    /// A folder with releases made a second apart.
    fn releases(names: &[&str]) -> tempfile::TempDir {
        let place = tempfile::TempDir::new().expect("a temporary folder");
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                thread::sleep(Duration::from_millis(1_010));
            }
            fs::create_dir_all(place.path().join(name)).expect("a folder");
        }
        place
    }

    fn names(place: &Path, path: &str) -> Vec<String> {
        let found = former_releases(&place.join(path), 16);
        let place = fs::canonicalize(place).expect("it is there");
        let name =
            |path: &Path| path.strip_prefix(&place).expect("beneath it").display().to_string();
        found.iter().map(|(path, _)| name(path)).collect()
    }

    #[test]
    fn releases_before_the_current_one_are_found_the_newest_first() {
        let place = releases(&["releases/v1/dist", "releases/v2/dist", "releases/v3/dist"]);
        fs::create_dir(place.path().join("releases/other")).expect("a folder");
        fs::write(place.path().join("releases/v0"), "no folder").expect("a file");
        symlink("v2", place.path().join("releases/v9")).expect("a link");
        symlink("releases/v3/dist", place.path().join("current")).expect("a link");
        symlink("releases/v3", place.path().join("release")).expect("a link");
        let expected = ["releases/v2/dist", "releases/v1/dist"];
        assert_eq!(names(place.path(), "current"), expected);
        assert_eq!(names(place.path(), "release/dist"), expected);
        // Each ended when the next began.
        let found = former_releases(&place.path().join("current"), 16);
        let linked = rustix::fs::lstat(place.path().join("current")).expect("a link").st_ctime;
        assert_eq!(found[0].1, u64::try_from(linked).expect("after 1970"));
        assert_eq!(Some(found[1].1), made_secs(&place.path().join("releases/v2")));
        assert_eq!(former_releases(&place.path().join("current"), 1).len(), 1);
    }

    #[test]
    fn a_release_that_is_being_prepared_is_no_former_one_and_a_withdrawn_one_is() {
        let place = releases(&["v1", "v2"]);
        symlink("v1", place.path().join("current")).expect("a link");
        assert_eq!(names(place.path(), "current"), ["v2"], "gone back to the first");
        thread::sleep(Duration::from_millis(1_010));
        fs::create_dir(place.path().join("v3")).expect("a folder");
        assert_eq!(names(place.path(), "current"), ["v2"]);
    }

    #[test]
    fn without_a_link_or_a_pattern_there_are_none() {
        let place = releases(&["blue", "green", "v1"]);
        fs::create_dir(place.path().join("v2")).expect("a folder");
        symlink("blue", place.path().join("current")).expect("a link");
        symlink("nowhere", place.path().join("dangling")).expect("a link");
        for path in ["current", "v1", "blue", "dangling", "none"] {
            assert_eq!(names(place.path(), path), [""; 0], "{path}");
        }
    }
}
