//! Paths below a folder that other routes respond to.
//!
//! A request for one of them never reaches the folder, and may be guarded there: so an archive
//! or a listing of the folder must not have what lies at these paths on the disk, and no other path
//! must lead to it.

use gustnado_config::path_matches;
use gustnado_http::path::decode_into;
use gustnado_http::path::pattern::pattern;

use super::Routes;

/// The paths of a site's routes.
#[derive(Default)]
pub(super) struct SitePaths {
    paths: Vec<SitePath>,
}

/// The path of a route.
struct SitePath {
    /// In canonical form.
    path: String,
    is_folder: bool,
    /// As [`Route::leads_to`](super::Route), in canonical form.
    leads_to: Option<String>,
}

impl SitePaths {
    pub(super) fn of(routes: &Routes) -> Self {
        // (A malformed path is refused where it is added.)
        let canonical = |path: &str| match path {
            "" => Some(String::new()),
            path => pattern(path).ok(),
        };
        let all = routes.paths.iter().filter_map(|(path, route)| {
            let leads_to = route.leads_to.as_deref().and_then(|to| pattern(to).ok());
            Some(SitePath { path: canonical(path)?, is_folder: route.folder.is_some(), leads_to })
        });
        Self { paths: all.collect() }
    }

    /// Returns patterns of the paths below a folder that others respond to, for
    /// [`gustnado_config::path_matches`].
    ///
    /// - `base`: the folder's own path, without a slash at its end.
    /// - `index`: the names of its index.
    pub(super) fn below(&self, base: &str, index: &[String]) -> Vec<String> {
        let mut patterns = Vec::new();
        let guarding = self.paths.iter().filter(|route| !self.is_same_page(route, index));
        for SitePath { path, is_folder, .. } in guarding {
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

    /// Returns whether a route sends clients from the name of a page to the path that the folder
    /// finds it by, as from `/index.html` to `/`: it guards nothing.
    fn is_same_page(&self, route: &SitePath, index: &[String]) -> bool {
        let Some(to) = &route.leads_to else { return false };
        let Some(rest) = route.path.strip_prefix(to.trim_end_matches('/')) else { return false };
        let is_index = |name| index.iter().any(|index| index == name);
        let is_page = rest == ".html" || rest.strip_prefix('/').is_some_and(is_index);
        let mut target = Vec::new();
        decode_into(to.as_bytes(), &mut target);
        let responds = |other: &SitePath| path_matches(&decoded_pattern(&other.path), &target);
        is_page && !self.paths.iter().any(|other| !other.is_folder && responds(other))
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
    use crate::routes::{Route, route};
    use gustnado_http::status::Status;

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
        let patterns = SitePaths::of(&routes).below(base, &[]);
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

    #[test]
    fn a_redirect_to_the_path_of_the_same_page_guards_nothing() {
        let leading = |to: &str| Route {
            leads_to: Some(to.to_owned()),
            ..route().any(|_: &Request| Status::FOUND)
        };
        let is_guarded = |from: &str, to: &str| {
            let routes = Routes::new().route(from, leading(to)).get("/own", |_: &Request| "");
            let patterns = SitePaths::of(&routes).below("", &["index.html".to_owned()]);
            patterns.iter().any(|pattern| path_matches(pattern, from.as_bytes()))
        };
        for (from, to, expected) in [
            ("/index.html", "/", false),
            ("/a/index.html", "/a/", false),
            ("/a/index.html", "/a", false),
            ("/about.html", "/about", false),
            ("/private.html", "/", true),
            ("/private/index.html", "/", true),
            ("/private.html", "/login", true),
            // That path is guarded itself.
            ("/own.html", "/own", true),
        ] {
            assert_eq!(is_guarded(from, to), expected, "{from} {to}");
        }
    }
}
