//! Whether a new file would be found in place of another one, though it has a name of its own.

use gustnado_config::{Precompressed, is_forbidden};
use gustnado_tasks::Now;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::Folder;
use crate::error::Failure;
use crate::resolve::{Located, Root};
use crate::variants::original_of;

/// Returns whether a new file would change what is served at the path of another one: as its
/// compressed form, before it by the rules of paths, or in place of that of a former release.
///
/// - `relative`: where it would be, below the root.
pub(super) fn would_shadow(folder: &Folder, root: &Root, relative: &[u8], now: Now) -> bool {
    let locate = |path: &[u8]| -> Result<Located, Failure> {
        if is_forbidden(&folder.settings.forbidden, path, false) {
            return Err(Failure::Disk(Errno::NOENT));
        }
        root.locate(path).map_err(Failure::Disk)
    };
    let is_file =
        |path: &[u8]| locate(path).is_ok_and(|located| located.kind() == FileType::RegularFile);
    let has_siblings = folder.settings.precompressed != Precompressed::Off;
    let is_former = || {
        let others = folder.releases.others(root.identity(), now);
        others.iter().any(|other| other.locate(relative).is_ok())
    };
    has_siblings && original_of(relative).is_some_and(is_file)
        || folder.rules.would_shadow(relative, |path| folder.check_other(path), locate)
        || folder.keeps_file(relative) && is_former()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::new_root;
    use crate::{FileOptions, Files};
    use gustnado_config::RouteSettings;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_hashed_file_of_a_former_release_is_not_replaced() {
        let place = tempfile::TempDir::new().expect("a temporary folder");
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("1/assets")).expect("a folder");
        fs::create_dir_all(at("2/assets")).expect("a folder");
        fs::write(at("1/assets/main.9f2c1a7b.js"), "old").expect("a file");
        symlink("1", at("current")).expect("a link");
        let keep_old_assets = Duration::from_hours(1);
        let settings = RouteSettings { keep_old_assets, ..RouteSettings::default() };
        let options = FileOptions { settings, ..FileOptions::default() };
        let folder = Files::open(&at("current"), options).expect("it is there").folder;
        symlink("2", at("next")).expect("a link");
        fs::rename(at("next"), at("current")).expect("swapped");
        let root = Arc::new(new_root(&folder.root, &folder).expect("another one"));
        let now = Now { mono_ms: 0, unix_secs: 1_000 };
        folder.releases.adopt(&root, now);
        let shadows = |name: &str| would_shadow(&folder, &root, name.as_bytes(), now);
        assert!(shadows("assets/main.9f2c1a7b.js"));
        assert!(!shadows("assets/main.0f2c1a7b.js") && !shadows("assets/main.js"));
    }
}
