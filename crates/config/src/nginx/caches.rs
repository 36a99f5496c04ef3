//! `Cache-Control`: by fields of a scope, and by rules for the endings that expressions are for.

use super::fields::{CACHE_CONTROL, NginxField, RouteFields};
use super::location::NginxLocation;
use super::scope::NginxScope;
use super::server::NginxServer;

/// The pattern of all files of a folder.
const ALL: &str = "/**";
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
    let has_expressions = !is_strong && scope.alias.is_none();
    let locations = server.locations.iter().filter(|_| has_expressions);
    for location in locations.filter(|one| one.serves_as(&server.scope)) {
        let endings = location.expression().and_then(endings);
        if let (Some(endings), Some(value)) = (endings, location.scope.cache_control()) {
            let rule = |ending: &String| (format!("/**.{ending}"), value.clone());
            rules.extend(endings.iter().map(rule));
        }
    }
    // The first that matches counts. No other response of the folder may be kept by it.
    if is_of_some(scope) {
        rules.extend(scope.cache_control().map(|value| (ALL.to_owned(), value)));
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

/// Returns the fields of a scope's responses. The files of a folder have `Cache-Control` by rules.
pub(super) fn fields_of(scope: &NginxScope, is_folder: bool) -> RouteFields {
    let (of_all, mut of_some): (Vec<NginxField>, Vec<_>) =
        scope.headers.iter().cloned().partition(|field| field.is_always);
    of_some.retain(|field| !field.is(CACHE_CONTROL));
    let pair = |field: NginxField| (field.name, field.value);
    let mut of_some: Vec<_> = of_some.into_iter().map(pair).collect();
    if !is_folder && is_of_some(scope) {
        of_some.extend(scope.cache_control().map(|value| (CACHE_CONTROL.to_owned(), value)));
    }
    RouteFields { of_all: of_all.into_iter().map(pair).collect(), of_some }
}

/// Returns whether `Cache-Control`, or a part of its value, is not that of all responses.
fn is_of_some(scope: &NginxScope) -> bool {
    let has_own = scope.headers.iter().any(|field| field.is(CACHE_CONTROL) && !field.is_always);
    has_own || scope.expires.is_some()
}

/// Returns the fields of a scope, but for `Cache-Control`.
fn others_than_cache(scope: &NginxScope) -> Vec<NginxField> {
    let mut others = scope.headers.clone();
    others.retain(|field| !field.is(CACHE_CONTROL));
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
