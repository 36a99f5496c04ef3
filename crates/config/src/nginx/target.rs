//! Targets of redirects, and paths of routes.

/// The path of a route for all requests.
pub(super) const EVERYTHING: &str = "/{*rest}";

/// Returns the target of a redirect, with `{rest}` in it where the path goes.
///
/// - `host`: the only host of the server, if it has one.
/// - `base`: the beginning of the path of the route, and `rest` what is behind it.
pub(super) fn target(to: &str, host: Option<&str>, (base, rest): (&str, &str)) -> Option<String> {
    let mut to = to.trim_end_matches('?').to_owned();
    for variable in ["$server_name", "$http_host", "$host"] {
        if to.contains(variable) {
            to = to.replace(variable, host?);
        }
    }
    let end = ["$request_uri", "$uri"].into_iter().find_map(|name| to.strip_suffix(name));
    let to = match end {
        Some(before) if rest.is_empty() => format!("{before}{base}"),
        Some(before) => format!("{before}{base}/{rest}"),
        None => to,
    };
    let is_url = ["https://", "http://"].iter().any(|scheme| to.starts_with(scheme));
    let is_path = to.starts_with('/') && !to.starts_with("//");
    let braces = to.replace("{rest}", "");
    let is_plain = braces.chars().all(|one| one.is_ascii_graphic() && !"${}\\".contains(one));
    // The rest stands behind the host.
    let has_path = !is_url || to.splitn(4, '/').count() == 4 || !to.contains("{rest}");
    ((is_url || is_path) && is_plain && has_path).then_some(to)
}

/// Returns the path of a route and its target for `rewrite ^/old/(.*)$ /new/$1`.
pub(super) fn rewrite(expression: &str, to: &str, host: Option<&str>) -> Option<(String, String)> {
    let whole = expression.strip_prefix('^').unwrap_or(expression);
    let anchored = expression.starts_with('^');
    if whole.is_empty() || whole == "/" && !anchored {
        return Some((EVERYTHING.to_owned(), target(to, host, ("", "{rest}"))?));
    }
    let whole = whole.strip_suffix('$').unwrap_or(whole);
    if matches!(whole, "(.*)" | "/(.*)" | "/?(.*)") {
        let to = if whole == "(.*)" {
            to.replace("/$1", "$1").replace("$1", "/{rest}")
        } else {
            to.replace("$1", "{rest}")
        };
        return Some((EVERYTHING.to_owned(), target(&to, host, ("", "{rest}"))?));
    }
    let plain = |text: &str| {
        let text = text.replace("\\.", ".").replace("\\/", "/");
        (is_plain(&text) && !text.contains('+')).then_some(text)
    };
    match whole.strip_suffix("(.*)") {
        Some(before) if before.ends_with('/') && anchored => {
            let path = format!("{}{{*rest}}", plain(before)?);
            Some((path, target(&to.replace("$1", "{rest}"), host, ("", "{rest}"))?))
        }
        // A dot is any letter there; the route is for fewer paths, which are redirected alike.
        None if anchored && expression.ends_with('$') => {
            let path = plain(whole)?;
            Some((path.clone(), target(to, host, (&path, ""))?))
        }
        _ => None,
    }
}

/// Returns whether a path has only letters that a route has as they are.
pub(super) fn is_plain(path: &str) -> bool {
    let is_letter = |one: char| one.is_ascii_alphanumeric() || "-._~/@+".contains(one);
    let is_part = |part: &str| part != "." && part != "..";
    path.starts_with('/')
        && path.len() <= 150
        && !path.contains("//")
        && path.chars().all(is_letter)
        && path.split('/').all(is_part)
}

/// Returns whether a path is that of a page, which is never the source of a program.
pub(super) fn is_page(path: &str) -> bool {
    let is_letter = |one: char| one.is_ascii_alphanumeric() || "-._/".contains(one);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    let ends = [".html", ".htm", ".xhtml", ".txt", ".json"];
    path.len() <= 200
        && path.chars().all(is_letter)
        && path.split('/').all(is_part)
        && ends.iter().any(|end| path.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_the_path_where_nginx_puts_it() {
        for (to, base, rest, expected) in [
            ("https://a.org$request_uri", "", "{rest}", Some("https://a.org/{rest}")),
            ("https://$host$request_uri", "/x", "{rest}", Some("https://h.org/x/{rest}")),
            ("https://a.org/y", "/x", "", Some("https://a.org/y")),
            ("/new", "/x", "{rest}", Some("/new")),
            ("//evil", "", "", None),
            ("https://a.org/$arg_x", "", "", None),
            ("https://a.org{x}", "", "", None),
            ("$scheme://a.org/", "", "", None),
        ] {
            assert_eq!(target(to, Some("h.org"), (base, rest)).as_deref(), expected, "{to}");
        }
        assert_eq!(target("https://$host/", None, ("", "")), None);
    }

    #[test]
    fn simple_rewrites_are_routes() {
        for (expression, to, expected) in [
            ("^/old/(.*)$", "/new/$1", Some(("/old/{*rest}", "/new/{rest}"))),
            ("^", "https://a.org$request_uri?", Some(("/{*rest}", "https://a.org/{rest}"))),
            ("^/(.*)$", "https://a.org/$1", Some(("/{*rest}", "https://a.org/{rest}"))),
            ("^(.*)$", "https://a.org$1", Some(("/{*rest}", "https://a.org/{rest}"))),
            ("^/feed\\.xml$", "/rss", Some(("/feed.xml", "/rss"))),
            ("^/a/(\\d+)$", "/b/$1", None),
            ("/old/(.*)", "/new/$1", None),
        ] {
            let found = rewrite(expression, to, None);
            let found = found.as_ref().map(|(path, to)| (path.as_str(), to.as_str()));
            assert_eq!(found, expected, "{expression}");
        }
    }
}
