//! Locations of a server.

use super::LeftOuts;
use super::pattern::patterns;
use super::scope::NginxScope;
use super::syntax::Directive;
use crate::forbidden::is_matched;

/// Which paths a location is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LocationMatcher {
    /// `= /path`.
    Exact(String),
    /// `/path` and `^~ /path`; the latter goes before regular expressions.
    Prefix { path: String, is_strong: bool },
    /// `~` and `~*`, by patterns that match at least as much.
    Expression(Vec<String>),
    /// `@name`: no request is for it.
    Named,
}

impl LocationMatcher {
    /// Returns whether a file with an ending may be at its paths.
    fn may_end_in(&self, ending: &str) -> bool {
        let Self::Expression(patterns) = self else { return true };
        let ending = format!(".{ending}");
        // What is before the ending is matched by what is before the end of the pattern.
        let may_end = |pattern: &String| {
            let mut ends = (0..pattern.len()).filter_map(|at| pattern.get(at..));
            ends.any(|end| is_matched(end, ending.as_bytes()))
        };
        patterns.iter().any(may_end)
    }
}

/// A location.
#[derive(Clone, Debug)]
pub(super) struct NginxLocation {
    pub(super) matcher: LocationMatcher,
    pub(super) scope: NginxScope,
    pub(super) directive: Directive,
}

impl NginxLocation {
    /// Reads a location.
    pub(super) fn read(directive: &Directive, server: &NginxScope, left: &mut LeftOuts) -> Self {
        let mut scope = server.inner();
        let matcher = match &directive.args()[..] {
            ["=", path] => LocationMatcher::Exact((*path).to_owned()),
            ["^~", path] => LocationMatcher::Prefix { path: (*path).to_owned(), is_strong: true },
            ["~" | "~*", expression] => LocationMatcher::Expression(of_expression(expression)),
            [path] if path.starts_with('@') => LocationMatcher::Named,
            [path] if path.starts_with("~*") => {
                LocationMatcher::Expression(of_expression(&path[2..]))
            }
            [path] if path.starts_with('~') => {
                LocationMatcher::Expression(of_expression(&path[1..]))
            }
            [path] if path.starts_with("^~") => {
                LocationMatcher::Prefix { path: path[2..].to_owned(), is_strong: true }
            }
            [path] if path.starts_with("=/") => LocationMatcher::Exact(path[1..].to_owned()),
            [path] => LocationMatcher::Prefix { path: (*path).to_owned(), is_strong: false },
            _ => {
                scope.close(directive, "expected a path or an expression", left);
                LocationMatcher::Expression(vec!["*".to_owned()])
            }
        };
        for one in directive.block.iter().flatten() {
            scope.apply(one, left);
        }
        scope.check_types(directive, |ending| matcher.may_end_in(ending), left);
        scope.finish(directive, directive.block.as_deref().unwrap_or_default(), left);
        if scope.pages != server.pages {
            left.add(directive, "pages for errors are those of the server: its own are left out");
        }
        Self { matcher, scope, directive: directive.clone() }
    }

    /// Returns the path of a prefix, if it is one.
    pub(super) fn prefix(&self) -> Option<&str> {
        match &self.matcher {
            LocationMatcher::Prefix { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns whether regular expressions have no part in it.
    pub(super) fn is_strong(&self) -> bool {
        matches!(self.matcher, LocationMatcher::Prefix { is_strong: true, .. })
    }

    /// Returns the expression, if it is for one.
    pub(super) fn expression(&self) -> Option<&str> {
        let LocationMatcher::Expression(_) = &self.matcher else { return None };
        let last = self.directive.args.last().map(String::as_str)?;
        Some(last.trim_start_matches("~*").trim_start_matches('~'))
    }

    /// Returns whether an expression may be left out: the files that it is for are served alike
    /// without it, but for header fields.
    pub(super) fn serves_as(&self, server: &NginxScope) -> bool {
        let scope = &self.scope;
        let LocationMatcher::Expression(patterns) = &self.matcher else { return false };
        // The path of a folder ends in a slash.
        let has_folders = patterns.iter().any(|pattern| pattern.ends_with(['/', '*', '?']));
        if !scope.finds_files_of(server) || has_folders && !scope.lists_folders_of(server) {
            return false;
        }
        let is_open = !scope.is_closed && !scope.responds() && scope.alias.is_none();
        let is_open = is_open && scope.settings.admits_as(&server.settings);
        is_open && scope.root.is_some() && scope.root == server.root && !server.is_closed
    }
}

/// Returns the patterns of an expression. One that is not understood may match everything.
fn of_expression(expression: &str) -> Vec<String> {
    // Hidden names are not served, but for `.well-known`.
    let others: Vec<&str> = match alternatives(expression) {
        Some(all) => all.into_iter().filter(|one| !is_of_hidden(one)).collect(),
        None => vec![expression],
    };
    if others.is_empty() {
        return Vec::new();
    }
    let all = patterns(&others.join("|")).unwrap_or_else(|| vec!["*".to_owned()]);
    // A setting has no place for longer ones, or those with commas.
    let fits = |pattern: &String| pattern.len() <= 200 && !pattern.contains(',');
    let is_plain = |pattern: &String| pattern.chars().all(|one| one.is_ascii_graphic());
    if all.iter().all(|pattern| fits(pattern) && is_plain(pattern)) {
        all
    } else {
        vec!["*".to_owned()]
    }
}

/// Returns whether an expression is for hidden names alone: `/\.(?!well-known)`.
fn is_of_hidden(expression: &str) -> bool {
    let begins = ["/\\.", "^/\\.", "(^|/)\\.", "(?:^|/)\\.", "\\/\\."];
    let ends = [")", "/)", "\\/)", "/|$)", "(/|$))", "(?:/|$))"];
    let mut behind = begins.iter().filter_map(|begin| expression.strip_prefix(begin));
    let behind = behind.find_map(|rest| rest.strip_prefix("(?!well-known"));
    behind.is_some_and(|rest| ends.iter().any(|end| rest.starts_with(end)))
}

/// Splits `a|b`, but for what stands in brackets. Returns `None` if it is not clear where they end.
fn alternatives(expression: &str) -> Option<Vec<&str>> {
    let (mut all, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    let mut letters = expression.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next(),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            // Brackets and bars mean something else in there.
            '[' => return None,
            '|' if depth == 0 => {
                all.push(&expression[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(&expression[begin..]);
    (depth == 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alternatives_for_hidden_names_are_left_out() {
        for (expression, expected) in [
            ("/\\.(?!well-known)", &[][..]),
            ("/\\.(?!well-known).*", &[]),
            ("(^|/)\\.(?!well-known/)", &[]),
            ("/\\.(?!well-known)|\\.(sql|bak)$", &["*.bak", "*.sql"]),
            ("\\.sql$|/\\.(?!well-known)", &["*.sql"]),
            ("/\\.(?!well-known)|^/\\.(?!well-known)", &[]),
            // It is for most of `.well-known`.
            ("/\\.(?!well-known/acme-challenge)", &["*/.*"]),
            ("/\\.well-known/(?!well-known)", &["*/.well-known/*"]),
            ("/\\.(?!well-known)|[|]a", &["*/.*", "*?a*"]),
            ("/\\.(?!well-known)|(", &["*"]),
        ] {
            assert_eq!(of_expression(expression), expected, "{expression}");
        }
    }
}
