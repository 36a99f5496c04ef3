//! Folders that locations are served from, and patterns of what each of them leaves out.

use super::location::NginxLocation;
use super::scope::NginxScope;
use super::target::is_plain;
use crate::forbidden::is_matched;

/// A folder that is served beneath a path.
pub(super) struct FolderMount {
    /// Without a slash at its end; empty for all paths.
    pub(super) path: String,
    /// Whether regular expressions have no part in it.
    pub(super) is_strong: bool,
    pub(super) scope: NginxScope,
}

impl FolderMount {
    /// Returns the folder that a request for a path comes to: the deepest one that contains it.
    pub(super) fn of<'m>(all: &'m [Self], path: &str) -> Option<&'m Self> {
        let contains = |mount: &&Self| {
            let rest = path.strip_prefix(&mount.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        all.iter().filter(contains).max_by_key(|mount| mount.path.len())
    }

    /// Returns whether a file of a scope is served from here: it is the same one, and the same
    /// clients may read it.
    pub(super) fn has_files_of(&self, scope: &NginxScope) -> bool {
        let is_beneath_root = |one: &NginxScope| one.root.is_some() && one.alias.is_none();
        is_beneath_root(&self.scope)
            && is_beneath_root(scope)
            && self.scope.root == scope.root
            && scope.finds_files_of(&self.scope)
            && scope.lists_folders_of(&self.scope)
            && self.scope.settings.admits_as(&scope.settings)
    }

    /// Returns whether an expression may be left out here, as it may be in the server's own folder.
    pub(super) fn serves_as(&self, expression: &NginxLocation, server: &NginxScope) -> bool {
        let is_alike = |scope: &NginxScope| expression.serves_as(scope);
        self.is_strong || self.scope.alias.is_none() && is_alike(&self.scope) && is_alike(server)
    }

    /// Returns whether a path may be that of a folder's index.
    pub(super) fn has_index(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.indexes().any(|index| index == name)
    }

    /// Returns whether folders without an index are listed.
    pub(super) fn lists(&self) -> bool {
        self.scope.listing == Some(true)
    }

    /// Returns whether patterns leave out the index of a folder, and not the folder itself.
    pub(super) fn loses_index(&self, patterns: &[String]) -> bool {
        let loses = |pattern: &String, index: &str| {
            let mut ends = (0..pattern.len()).filter_map(|at| pattern.get(at..));
            ends.any(|end| is_matched(end, index.as_bytes()) && !is_matched(end, b"/"))
        };
        let mut indexes = self.indexes().map(|index| format!("/{index}"));
        indexes.any(|index| patterns.iter().any(|pattern| loses(pattern, &index)))
    }

    fn indexes(&self) -> impl Iterator<Item = &str> {
        let usual = self.scope.index.is_none().then_some("index.html");
        usual.into_iter().chain(self.scope.index.iter().flatten().map(String::as_str))
    }

    /// Returns the patterns of what a prefix is for: no other folder serves that, neither by its
    /// path nor as a fallback. `/admin` is for `/administrator`, too.
    pub(super) fn of_prefix(&self, path: &str) -> Option<String> {
        if is_plain(path) && path.trim_end_matches('/') == self.path {
            return None;
        }
        self.below(&format!("{}*", literal(path)))
    }

    /// Returns the pattern of a path of its own.
    pub(super) fn of_exact(&self, path: &str) -> Option<String> {
        self.below(&literal(path))
    }

    /// Returns the patterns of what an expression is for.
    ///
    /// - `patterns`: those of whole paths.
    pub(super) fn of_expression(&self, patterns: &[String]) -> Vec<String> {
        patterns.iter().flat_map(|one| behind(one, &self.path)).collect()
    }

    /// Returns a pattern of paths as one of those below the folder, if it is for some of them
    /// alone.
    fn below(&self, pattern: &str) -> Option<String> {
        let rest = pattern.strip_prefix(&self.path).filter(|rest| rest.starts_with('/'));
        rest.map(str::to_owned)
    }
}

/// Returns a path as a pattern that matches it. What is too long for a pattern ends in a star.
fn literal(path: &str) -> String {
    let letter = |one: char| if one.is_ascii_graphic() && !"*?,".contains(one) { one } else { '*' };
    let end = if path.chars().count() > 200 { "*" } else { "" };
    path.chars().map(letter).take(200).collect::<String>() + end
}

/// Returns what may follow the path of a folder where a pattern matches the whole.
fn behind(pattern: &str, mount: &str) -> Vec<String> {
    let mut ends: Vec<&str> = Vec::new();
    for at in 0..=pattern.len() {
        let (before, rest) = pattern.split_at(at);
        if is_matched(before, mount.as_bytes()) {
            ends.push(rest);
            // A star goes on behind the folder's path.
            if before.ends_with('*') {
                ends.push(&pattern[at - 1..]);
            }
        }
    }
    let mut all = Vec::new();
    for end in ends {
        // What follows begins with a slash.
        match end.bytes().next() {
            Some(b'/') => all.push(end.to_owned()),
            Some(b'?') => all.push(format!("/{}", &end[1..])),
            Some(b'*') => {
                all.push(end.to_owned());
                if is_matched(end, b"/") {
                    all.push("/".to_owned());
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_leaves_behind_a_folder_matches_what_it_matches() {
        for pattern in ["*.php", "*.php/*", "/wp-*/x?*", "/a*b", "*/.*", "/wp-admin*", "*p/x"] {
            for mount in ["", "/wp-admin", "/wp-a/x", "/a", "/x.php", "/wp"] {
                for rest in ["/", "/a.php", "/x.php/y", "/b", "/.git/x", "/xy", "/x", "/q/b"] {
                    let whole = format!("{mount}{rest}");
                    if !is_matched(pattern, whole.as_bytes()) {
                        continue;
                    }
                    let patterns = behind(pattern, mount);
                    let found = crate::forbidden::is_forbidden(
                        &patterns,
                        rest.trim_matches('/').as_bytes(),
                        rest == "/",
                    );
                    assert!(found, "{pattern} on {mount} {rest}: {patterns:?}");
                }
            }
        }
    }
}
