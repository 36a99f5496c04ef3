//! One pattern of paths, and what its named parts match.

use gustnado_http::path::pattern::{before_rest, path_names, pattern};
use matchit::Router;

/// A pattern: `/exact`, `/{name}` or `/{*rest}`.
#[derive(Clone)]
pub(crate) struct PathPattern {
    router: Router<()>,
    /// The name of its rest, which the path before it matches as an empty one.
    rest: Option<String>,
}

impl PathPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(path: &str) -> Result<Self, String> {
        let canonical = pattern(path)?;
        let mut router = Router::new();
        let failed = |error: matchit::InsertError| error.to_string();
        router.insert(canonical.clone(), ()).map_err(failed)?;
        let mut rest = None;
        if let Some(before) = before_rest(&canonical) {
            router.insert(before, ()).map_err(failed)?;
            rest = path_names(path).pop();
        }
        Ok(Self { router, rest })
    }

    /// Returns whether a canonical path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.router.at(path).is_ok()
    }

    /// Returns what the named parts match in a canonical path; `None` if it does not match.
    pub(crate) fn parts(&self, path: &str) -> Option<Vec<(String, String)>> {
        let found = self.router.at(path).ok()?;
        let part = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut parts: Vec<(String, String)> = found.params.iter().map(part).collect();
        if let Some(rest) = &self.rest
            && !parts.iter().any(|(name, _)| name == rest)
        {
            parts.push((rest.clone(), String::new()));
        }
        Some(parts)
    }
}

impl std::fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PathPattern")
    }
}
