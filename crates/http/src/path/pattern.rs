//! Patterns of paths: the paths of routes, in the form that paths of requests are compared in.

use super::{CanonicalPath, PathError, push_normal};

/// Returns the pattern of a route: its plain parts in the canonical form of [`CanonicalPath`], its
/// named ones as they are. An exact one is a canonical path, so a path as sent that equals it is,
/// too.
///
/// # Errors
/// What is wrong with the path.
pub fn pattern(path: &str) -> Result<String, String> {
    let Some(below) = path.strip_prefix('/') else {
        return Err("a path begins with a slash: begin it with /".to_owned());
    };
    let mut pattern = String::with_capacity(path.len());
    let mut ends_with_slash = false;
    for segment in below.split('/') {
        check_segment(segment)?;
        ends_with_slash = is_dropped(segment)?;
        if !ends_with_slash {
            pattern.push('/');
            push_segment(&mut pattern, segment);
        }
    }
    if ends_with_slash {
        pattern.push('/');
    }
    Ok(pattern)
}

/// Refuses what other servers take for a named part, and what would be compared letter by letter
/// here.
fn check_segment(segment: &str) -> Result<(), String> {
    let (letter, escaped) = match segment.as_bytes().first() {
        Some(b'*') => ("star", "%2A"),
        Some(b':') => ("colon", "%3A"),
        _ => return Ok(()),
    };
    Err(format!(
        "a {letter} would be compared as a {letter}: write {{name}} for one segment and {{*rest}} \
         for all that follows, or {escaped} for a {letter}"
    ))
}

/// Returns whether a segment is one that no request's canonical path has.
fn is_dropped(segment: &str) -> Result<bool, String> {
    let alone = ["/", segment].concat();
    match CanonicalPath::of(alone.as_bytes()) {
        Ok(path) => Ok(path.as_str() == "/"),
        Err(PathError::Parent) => {
            Err("no request reaches `..`, which gets 400; leave that part out".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Named parts stay as they are. A brace that is meant is written twice, and then escaped.
fn push_segment(pattern: &mut String, segment: &str) {
    let mut rest = segment;
    while let Some(at) = rest.find(['{', '}']) {
        push_normal(pattern, &rest.as_bytes()[..at]);
        rest = &rest[at..];
        let brace = &rest[..1];
        if rest[1..].starts_with(brace) {
            push_normal(pattern, brace.as_bytes());
            rest = &rest[2..];
            continue;
        }
        // (A part that is not closed, or a brace that closes nothing, is the router's to refuse.)
        let end = rest.find('}').map_or(rest.len(), |end| end + 1);
        pattern.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    push_normal(pattern, rest.as_bytes());
}

/// Returns where the rest begins in a pattern that ends in one: `/a/` of `/a/{*rest}` is the
/// pattern that has it empty.
pub fn before_rest(pattern: &str) -> Option<&str> {
    let (before, rest) = pattern.rsplit_once("{*")?;
    (rest.find('}')? + 1 == rest.len()).then_some(before)
}

/// Returns the names of the parts of a path that have one, in order: `id` and `rest` of
/// `/{id}/{*rest}`.
pub fn path_names(path: &str) -> Vec<String> {
    let parts = path.replace("{{", "").replace("}}", "");
    let names = parts.split('{').skip(1).filter_map(|part| part.split_once('}'));
    names.map(|(name, _)| name.trim_start_matches('*').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_spelt_as_canonical_paths_are() {
        for (path, normal) in [
            ("/", "/"),
            ("/caf\u{e9}/{name}", "/caf%C3%A9/{name}"),
            ("/a b/{*rest}", "/a%20b/{*rest}"),
            ("/%7e", "/~"),
            ("/a%2Bb+c/", "/a+b+c/"),
            ("/a%2fb", "/a%2Fb"),
            ("//a/./b/.", "/a/b/"),
            ("/100%", "/100%25"),
            ("/{{x}}/y", "/%7Bx%7D/y"),
            ("/v{major}.{minor}", "/v{major}.{minor}"),
            ("/.{name}", "/.{name}"),
            ("/a*/b:c", "/a*/b:c"),
        ] {
            assert_eq!(pattern(path).as_deref(), Ok(normal), "{path}");
            assert!(normal.contains('{') || pattern(normal).as_deref() == Ok(normal), "{normal}");
        }
        for (path, normal) in [("/%2A", "/*"), ("/a/%3aid", "/a/:id")] {
            assert_eq!(pattern(path).as_deref(), Ok(normal), "{path}");
        }
    }

    #[test]
    fn what_no_request_can_reach_is_no_pattern() {
        for (path, part) in [
            ("", "begin it with /"),
            ("a", "begin it with /"),
            ("{name}", "begin it with /"),
            ("%2fa", "begin it with /"),
            ("/a/../b", "leave that part out"),
            ("/%2e%2e", "leave that part out"),
            ("/*", "{*rest}"),
            ("/a/*/b", "{*rest}"),
            ("/a/:id", "{name}"),
        ] {
            assert!(pattern(path).is_err_and(|error| error.contains(part)), "{path}");
        }
    }

    #[test]
    fn a_rest_is_known_by_its_star() {
        for (pattern, before) in [("/{*rest}", Some("/")), ("/a/{id}/{*x}", Some("/a/{id}/"))] {
            assert_eq!(before_rest(pattern), before);
        }
        for pattern in ["/", "/{rest}", "/a*", "/%7B*a%7D"] {
            assert_eq!(before_rest(pattern), None, "{pattern}");
        }
    }
}
