//! What a request could get from a folder: listings and archives show that, and no file is found in
//! place of another one that is guarded by a route.

use gustnado_config::{is_forbidden, path_matches};

use super::Folder;
use super::path::check_segment;

/// Which entries of a folder are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownEntries {
    /// Names that begin with a dot, too.
    pub(super) hidden: bool,
    /// Patterns of what is never served.
    pub(super) forbidden: Vec<String>,
    /// Patterns of paths that are not served from the folder.
    pub(super) elsewhere: Vec<String>,
}

impl ShownEntries {
    pub(super) fn of(folder: &Folder) -> Self {
        let (hidden, forbidden) = (folder.settings.hidden, folder.settings.forbidden.clone());
        Self { hidden, forbidden, elsewhere: folder.elsewhere.clone() }
    }

    /// Returns whether a name is shown: it may be requested, and is not hidden. (`.well-known` may
    /// be requested though it is.)
    pub(super) fn has_name(&self, name: &[u8]) -> bool {
        let is_hidden = !self.hidden && name.starts_with(b".");
        !is_hidden && check_segment(name, self.hidden).is_ok()
    }

    /// Returns whether everything is shown whose name may be requested.
    pub(super) fn has_all(&self) -> bool {
        self.forbidden.is_empty() && self.elsewhere.is_empty()
    }

    /// Returns whether a file, or all that is in a folder, cannot be requested by its path.
    pub(super) fn leaves_out(&self, relative: &[u8], is_folder: bool) -> bool {
        let is_forbidden = |slash| is_forbidden(&self.forbidden, relative, slash);
        if is_forbidden(false) || is_folder && is_forbidden(true) {
            return true;
        }
        is_elsewhere(&self.elsewhere, relative, is_folder)
    }
}

/// Returns whether another route responds to the path of a file, or to that of a folder.
///
/// - `elsewhere`: patterns of paths that are not served from the folder.
pub(super) fn is_elsewhere(elsewhere: &[String], relative: &[u8], is_folder: bool) -> bool {
    is_any_of(elsewhere.iter(), relative, is_folder)
}

/// Returns whether another route guards the index of a folder. A named part at the end of a route's
/// path, as in `/{page}`, matches an index only by chance, and leaves `/` to the folder.
pub(super) fn is_index_elsewhere(elsewhere: &[String], relative: &[u8]) -> bool {
    is_any_of(elsewhere.iter().filter(|pattern| !pattern.ends_with("/*")), relative, false)
}

fn is_any_of<'p>(
    patterns: impl Iterator<Item = &'p String>,
    relative: &[u8],
    is_folder: bool,
) -> bool {
    let mut patterns = patterns.peekable();
    if patterns.peek().is_none() {
        return false;
    }
    let end: &[u8] = if is_folder { b"/" } else { b"" };
    let path = [b"/", relative, end].concat();
    patterns.any(|pattern| path_matches(pattern, &path))
}
