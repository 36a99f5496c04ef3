//! Redirects by `rewrite`: they come before locations and before what is served.

use gustnado_http::path::pattern::before_rest;

use super::imported::ImportedAction;
use super::target::{self, EVERYTHING};

/// A redirect of the paths that an expression matches.
#[derive(Clone, Debug)]
pub(super) struct NginxRewrite {
    pub(super) status: u16,
    pub(super) expression: String,
    pub(super) to: String,
}

/// A redirect as a route has it.
#[derive(Clone, Debug)]
pub(super) struct RewriteRoute {
    pub(super) path: String,
    pub(super) action: ImportedAction,
}

impl NginxRewrite {
    /// Returns whether it is for all paths.
    pub(super) fn is_of_all(&self) -> bool {
        target::rewrite(&self.expression, "/", None).is_some_and(|(path, _)| path == EVERYTHING)
    }
}

impl RewriteRoute {
    /// Returns whether it is for all requests of a location.
    ///
    /// - `is_prefix`: the location is for what is beneath its path, too.
    pub(super) fn covers(&self, path: &str, is_prefix: bool) -> bool {
        match before_rest(&self.path) {
            Some(base) => path.starts_with(base) || is_prefix && format!("{path}/") == base,
            None => !is_prefix && path == self.path,
        }
    }
}

/// Returns redirects as routes; `None` if one is not understood, or is for paths elsewhere.
///
/// - `base`: the path of their location; that of a server is `/`.
/// - `is_prefix`: the location is for what is beneath its path, too.
/// - `host`: the only host of the server, if it has one.
pub(super) fn routes_of(
    rewrites: &[NginxRewrite],
    (base, is_prefix): (&str, bool),
    host: Option<&str>,
) -> Option<Vec<RewriteRoute>> {
    let parent = base.trim_end_matches('/');
    let mut routes = Vec::new();
    for rewrite in rewrites {
        let (path, to) = target::rewrite(&rewrite.expression, &rewrite.to, host)?;
        let mut add = |path: String, to: String| {
            let action = ImportedAction::Redirect { to, status: rewrite.status };
            routes.push(RewriteRoute { path, action });
        };
        if path != EVERYTHING {
            path.starts_with(parent).then_some(())?;
            add(path, to);
            continue;
        }
        if !is_prefix || !base.ends_with('/') {
            add(base.to_owned(), to.replace("{rest}", base.trim_start_matches('/')));
        }
        if is_prefix {
            let rest = format!("{parent}/{{rest}}");
            let to = to.replace("{rest}", rest.trim_start_matches('/'));
            add(format!("{parent}{EVERYTHING}"), to);
        }
    }
    Some(routes)
}
