//! Pages for errors: which files they are, and which of them nginx shows to all.

use std::path::PathBuf;

use super::location::{LocationMatcher, NginxLocation};
use super::scope::{ClosedFor, NginxScope};
use super::server::NginxServer;
use crate::forbidden::is_matched;

/// Returns the file of a page, where nginx shows one to all. It looks for it as for a request of
/// that path, which `internal` does not keep.
pub(super) fn file_of(server: &NginxServer, page: &str) -> Option<PathBuf> {
    let exact =
        |one: &&NginxLocation| matches!(&one.matcher, LocationMatcher::Exact(path) if path == page);
    let prefixes = server
        .locations
        .iter()
        .filter(|one| one.prefix().is_some_and(|path| page.starts_with(path)));
    let longest = prefixes.max_by_key(|one| one.prefix().map(str::len));
    let own = server.locations.iter().find(exact);
    let scope = own.or(longest).map_or(&server.scope, |one| &one.scope);
    let is_of_other = |one: &NginxLocation| match &one.matcher {
        LocationMatcher::Expression(patterns) => {
            patterns.iter().any(|pattern| is_matched(pattern, page.as_bytes()))
                && !(one.scope.root == scope.root && is_shown(&one.scope))
        }
        _ => false,
    };
    let is_other = own.is_none() && server.locations.iter().any(is_of_other);
    let root = scope.root.as_ref().filter(|_| is_shown(scope) && !is_other)?;
    Some(root.join(page.trim_start_matches('/')))
}

/// Returns whether all clients may read the files of a scope, as pages at least.
fn is_shown(scope: &NginxScope) -> bool {
    let is_open = !scope.is_closed || scope.closed_for == ClosedFor::Requests;
    is_open && !scope.responds() && scope.alias.is_none() && scope.settings.admits_all()
}
