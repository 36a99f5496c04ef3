//! Paths below a folder that other routes respond to.
//!
//! A request for one of them never reaches the folder, and may be guarded there: so an archive
//! or a listing of the folder must not have what lies at these paths on the disk.

use gustnado_http::path::decode_into;
use gustnado_http::path::pattern::pattern;

use super::Routes;

/// The paths of a site's routes.
#[derive(Default)]
pub(super) struct SitePaths {
    /// In canonical form; and whether it is a folder's.
    paths: Vec<(String, bool)>,
}

impl SitePaths {
    pub(super) fn of(routes: &Routes) -> Self {
        // (A malformed path is refused where it is added.)
        let canonical = |path: &str| match path {
            "" => Some(String::new()),
            path => pattern(path).ok(),
        };
        let path = |path: &str, is_folder: bool| Some((canonical(path)?, is_folder));
        let all = routes.paths.iter();
        Self { paths: all.filter_map(|(text, route)| path(text, route.folder.is_some())).collect() }
    }

    /// Returns patterns of the paths below a folder that others respond to, for
    /// [`gustnado_config::path_matches`].
    ///
    /// - `base`: the folder's own path, without a slash at its end.
    pub(super) fn below(&self, base: &str) -> Vec<String> {
        let mut patterns = Vec::new();
        for (path, is_folder) in &self.paths {
            // A pattern whose first letters are not the folder's is found after the folder.
            let Some(below) = path.strip_prefix(base).filter(|below| below.starts_with('/')) else {
                continue;
            };
            match below.strip_suffix('/') {
                // The folder itself.
                Some("") => {}
                inner if *is_folder => {
                    let pattern = decoded_pattern(inner.unwrap_or(below));
                    patterns.extend([format!("{pattern}/**"), pattern]);
                }
                // The listing of a folder, or its index, and nothing that lies in it.
                Some(_) => {}
                None => patterns.push(decoded_pattern(below)),
            }
        }
        patterns
    }
}

/// Returns a route's path as a pattern of decoded paths. What cannot be told apart is within it.
fn decoded_pattern(route: &str) -> String {
    let (mut rest, mut bytes) = (route, Vec::new());
    while let Some(at) = rest.find(['{', '}']) {
        decode_into(&rest.as_bytes()[..at], &mut bytes);
        let brace = &rest[at..];
        let name = brace.strip_prefix('{').and_then(|name| name.split_once('}'));
        let (stands_for, length) = match name {
            _ if brace.starts_with("{{") => ("{", 2),
            _ if brace.starts_with("}}") => ("}", 2),
            Some((name, _)) if name.starts_with('*') => ("**", name.len() + 2),
            Some((name, _)) => ("*", name.len() + 2),
            None => ("*", 1),
        };
        bytes.extend_from_slice(stands_for.as_bytes());
        rest = &brace[length..];
    }
    decode_into(rest.as_bytes(), &mut bytes);
    String::from_utf8_lossy(&bytes).replace(char::REPLACEMENT_CHARACTER, "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use crate::routes::route;
    use gustnado_config::path_matches;

    fn is_elsewhere(base: &str, path: &str) -> bool {
        let routes = Routes::new()
            .get("/private/{*rest}", |_: &Request| "")
            .get("/exact", |_: &Request| "")
            .get("/users/{id}/card", |_: &Request| "")
            .get("/caf\u{e9}/%41/a-{name}.txt", |_: &Request| "")
            .get("/index/", |_: &Request| "")
            .get("/{any}/{thing}/below", |_: &Request| "")
            .route("/mounted", route().files("."))
            .route("/mounted/inner", route().files("."));
        let patterns = SitePaths::of(&routes).below(base);
        patterns.iter().any(|pattern| path_matches(pattern, path.as_bytes()))
    }

    #[test]
    fn what_other_routes_respond_to_is_elsewhere() {
        for (path, expected) in [
            ("/private/a/b", true),
            ("/private/", true),
            ("/privates", false),
            ("/exact", true),
            ("/exact/", false),
            ("/exact/x", false),
            ("/users/7/card", true),
            ("/users/7/8/card", false),
            ("/caf\u{e9}/A/a-b.txt", true),
            ("/caf\u{e9}/A/b.txt", false),
            ("/index/", false),
            ("/index/x", false),
            ("/x/y/below", true),
            ("/mounted/", true),
            ("/mounted/x", true),
            ("/mounted", true),
            ("/other", false),
        ] {
            assert_eq!(is_elsewhere("", path), expected, "{path}");
        }
        for (path, expected) in [("/inner/x", true), ("/x", false), ("/x/y/below", false)] {
            assert_eq!(is_elsewhere("/mounted", path), expected, "{path}");
        }
    }
}
