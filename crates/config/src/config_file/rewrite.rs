//! A rewrite: another path for a request, before its route is found.

use gustnado_http::path::pattern::{path_names, pattern};

use super::redirect::Template;

/// A path that takes the place of another one: `/blog/{*rest}` becomes `/articles/{rest}`. The
/// query is kept, unless the new path has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The path of a request: `/exact`, `/{name}` or `/{*rest}`.
    pub from: String,
    /// What takes its place.
    pub to: Template,
}

impl Rewrite {
    /// Creates a rewrite.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub fn new(from: &str, to: &str) -> Result<Self, String> {
        pattern(from).map_err(|reason| format!("{from} is not well formed: {reason}"))?;
        if !to.starts_with('/') {
            return Err(format!(
                "expected a path such as /new/{{rest}}, found {to:?}; begin it \
                                with / (another host is for a redirect)"
            ));
        }
        let to = Template::read(to, &path_names(from))?;
        Ok(Self { from: from.to_owned(), to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_leads_from_a_path_to_a_path() {
        let rewrite = Rewrite::new("/blog/{*rest}", "/articles/{rest}").expect("well formed");
        assert_eq!(rewrite.to.to_string(), "/articles/{rest}");
        for (from, to, part) in [
            ("blog", "/x", "begin it with /"),
            ("/a", "https://example.org/", "is for a redirect"),
            ("/a", "/{rest}", "the path has no named parts"),
            ("/a/../b", "/x", "leave that part out"),
        ] {
            assert!(Rewrite::new(from, to).is_err_and(|error| error.contains(part)), "{from} {to}");
        }
    }
}
