//! Rewrites: another target for a request, before its route is found.

use gustnado_config::config_file::{Rewrite, Template};

use crate::AccessError;
use crate::paths::PathPattern;

/// The longest target that a rewrite makes, in bytes.
const TARGET_BYTES_MAX: usize = 32 << 10;

/// Rewrites in their order. The first that matches is applied, and no other.
#[derive(Debug, Default)]
pub struct Rewrites(Vec<(PathPattern, Template)>);

impl Rewrites {
    /// Compiles rewrites.
    ///
    /// # Errors
    /// [`AccessError::Rule`]
    pub fn new(rewrites: &[Rewrite]) -> Result<Self, AccessError> {
        let compiled = rewrites.iter().map(|Rewrite { from, to }| {
            let pattern = PathPattern::new(from)
                .map_err(|reason| AccessError::Rule(format!("rewrite {from}: {reason}")))?;
            Ok((pattern, to.clone()))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the target in place of a path and its query; `None` if it stays. One that is too
    /// long is cut to `/..`, which gets 400.
    ///
    /// - `path`: in canonical form.
    pub fn target(&self, path: &str, query: Option<&str>) -> Option<String> {
        let mut all = self.0.iter();
        let (parts, to) = all.find_map(|(pattern, to)| Some((pattern.parts(path)?, to)))?;
        let part = |name: &str| {
            let found = parts.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let target = to.location(part, query);
        Some(if target.len() > TARGET_BYTES_MAX { "/..".to_owned() } else { target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrites(all: &[(&str, &str)]) -> Rewrites {
        let all: Vec<Rewrite> =
            all.iter().map(|(from, to)| Rewrite::new(from, to).expect("well formed")).collect();
        Rewrites::new(&all).expect("well formed")
    }

    #[test]
    fn the_first_that_matches_is_applied_once() {
        let some = rewrites(&[
            ("/blog/{*rest}", "/articles/{rest}"),
            ("/articles/{*rest}", "/never/{rest}"),
            ("/u/{id}/x", "/users/{id}?tab=x"),
        ]);
        let target = |path: &str, query| some.target(path, query);
        assert_eq!(target("/blog/a/b", None).as_deref(), Some("/articles/a/b"));
        assert_eq!(target("/blog/", Some("p=1")).as_deref(), Some("/articles/?p=1"));
        assert_eq!(target("/u/7/x", Some("p=1")).as_deref(), Some("/users/7?tab=x"));
        assert_eq!(target("/other", Some("p=1")), None);
        let grows = rewrites(&[("/{*rest}", "/{rest}{rest}{rest}")]);
        let long = format!("/{}", "x".repeat(20_000));
        assert_eq!(grows.target(&long, None).as_deref(), Some("/.."));
    }
}
