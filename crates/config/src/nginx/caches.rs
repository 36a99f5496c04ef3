//! `Cache-Control`: by fields of a scope, and by rules for the endings that expressions are for.

use super::location::NginxLocation;
use super::scope::NginxScope;
use super::server::NginxServer;

const CACHE_CONTROL: &str = "Cache-Control";
/// The most endings of an expression that become rules.
const ENDINGS_MAX: usize = 50;

/// Returns the rules of a folder: patterns of paths with their values.
///
/// - `scope`: that of the folder.
/// - `is_strong`: expressions have no part in it.
pub(super) fn rules(
    server: &NginxServer,
    scope: &NginxScope,
    is_strong: bool,
) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    if is_strong || scope.alias.is_some() {
        return rules;
    }
    for location in server.locations.iter().filter(|one| one.serves_as(&server.scope)) {
        let endings = location.expression().and_then(endings);
        if let (Some(endings), Some(value)) = (endings, location.scope.cache_control()) {
            let rule = |ending: &String| (format!("/**.{ending}"), value.clone());
            rules.extend(endings.iter().map(rule));
        }
    }
    rules
}

/// Returns whether rules take over all that an expression says of its files.
pub(super) fn are_all_of(server: &NginxServer, location: &NginxLocation) -> bool {
    let (root, own) = (server.root_scope(), &location.scope);
    let known = others_than_cache(root);
    let has_others = others_than_cache(own).iter().any(|field| !known.contains(field));
    let (headers, expires) = (root.headers.clone(), root.expires.clone());
    let is_alike = NginxScope { headers, expires, ..own.clone() };
    let is_ruled = own.cache_control().is_none()
        || location.expression().is_some_and(|one| endings(one).is_some());
    !has_others && is_ruled && is_alike.is_dressed_as(root)
}

/// Returns the fields of a scope's responses.
pub(super) fn headers_of(scope: &NginxScope) -> Vec<(String, String)> {
    let mut headers = others_than_cache(scope);
    headers.extend(scope.cache_control().map(|value| (CACHE_CONTROL.to_owned(), value)));
    headers
}

/// Returns the fields of a scope, but for `Cache-Control`.
fn others_than_cache(scope: &NginxScope) -> Vec<(String, String)> {
    let mut others = scope.headers.clone();
    others.retain(|(name, _)| !name.eq_ignore_ascii_case(CACHE_CONTROL));
    others
}

/// Returns the endings that an expression is for, such as `\\.(css|js)$`; `None`: it is for others,
/// too.
fn endings(expression: &str) -> Option<Vec<String>> {
    let all = expression.strip_prefix("\\.")?.strip_suffix('$')?;
    let group = all.strip_prefix('(').map(|all| all.strip_prefix("?:").unwrap_or(all));
    let all = match group {
        Some(group) => group.strip_suffix(')')?,
        None => all,
    };
    let mut endings = Vec::new();
    for one in all.split('|') {
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // `jpe?g`, `woff2?`
        match one.split_once('?') {
            None if is_plain(one) => endings.push(one.to_owned()),
            Some((before, behind))
                if is_plain(before) && (behind.is_empty() || is_plain(behind)) =>
            {
                endings.push(format!("{before}{behind}"));
                endings.push(format!("{}{behind}", &before[..before.len() - 1]));
            }
            _ => return None,
        }
    }
    (endings.len() <= ENDINGS_MAX).then_some(endings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_read_where_an_expression_is_for_nothing_else() {
        for (expression, expected) in [
            ("\\.css$", Some(&["css"][..])),
            ("\\.(css|js)$", Some(&["css", "js"])),
            ("\\.(?:jpe?g|woff2?)$", Some(&["jpeg", "jpg", "woff2", "woff"])),
            ("\\.(css|js)", None),
            ("/a\\.css$", None),
            ("\\.(c*|js)$", None),
            ("\\.(css$", None),
            ("\\.$", None),
            ("\\.(a|?b)$", None),
        ] {
            let found = endings(expression);
            let found =
                found.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
    }
}
