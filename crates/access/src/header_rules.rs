//! Rules of header fields, compiled.

use gustnado_config::{HeaderRule, StatusRange};
use gustnado_http::method::Method;

use crate::AccessError;
use crate::paths::PathPattern;

/// Rules in their order.
#[derive(Debug, Default)]
pub struct HeaderRules(Vec<(Option<PathPattern>, HeaderRule)>);

impl HeaderRules {
    /// Compiles rules.
    ///
    /// # Errors
    /// [`AccessError::Rule`]
    pub fn new(rules: &[HeaderRule]) -> Result<Self, AccessError> {
        let failed = |reason| AccessError::Rule(format!("header rule: {reason}"));
        let compiled = rules.iter().map(|rule| {
            rule.check().map_err(failed)?;
            let pattern = rule.path.as_deref().map(PathPattern::new).transpose().map_err(failed)?;
            Ok((pattern, rule.clone()))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules for a response, in their order. A 304 also counts as the 200 that it
    /// stands for: it has the fields that caches keep of that (RFC 9110 §15.4.5).
    ///
    /// - `path`: of the request, in canonical form; `None` if it has none.
    /// - `kind`: the response's content type, if it has one.
    pub fn of<'r>(
        &'r self,
        path: Option<&str>,
        method: Method,
        status: u16,
        kind: Option<&[u8]>,
    ) -> impl Iterator<Item = &'r HeaderRule> {
        let kind = kind.map(|kind| String::from_utf8_lossy(kind).to_ascii_lowercase());
        let stands_for = if status == 304 { 200 } else { status };
        let is_meant = move |pattern: &Option<PathPattern>, rule: &HeaderRule| {
            let has_path = match pattern {
                Some(pattern) => path.is_some_and(|path| pattern.matches(path)),
                None => true,
            };
            let has_status = |range: &StatusRange| range.has(status) || range.has(stands_for);
            has_path
                && (rule.methods.is_empty() || rule.methods.contains(&method))
                && (rule.statuses.is_empty() || rule.statuses.iter().any(has_status))
                && (rule.types.is_empty()
                    || rule.types.iter().any(|wanted| is_type(wanted, kind.as_deref())))
        };
        let rules: Vec<&HeaderRule> = self
            .0
            .iter()
            .filter(|(pattern, rule)| is_meant(pattern, rule))
            .map(|(_, rule)| rule)
            .collect();
        rules.into_iter()
    }
}

/// Returns whether a content type is `wanted`, or of its kind if that is `image/*`; parameters do
/// not matter.
fn is_type(wanted: &str, kind: Option<&str>) -> bool {
    let Some(kind) = kind else { return false };
    let essence = kind.split(';').next().map(str::trim).unwrap_or_default();
    match wanted.strip_suffix('*') {
        Some(begin) => essence.starts_with(begin),
        None => essence == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(
        rule: HeaderRule,
        path: &str,
        method: Method,
        status: u16,
        kind: Option<&str>,
    ) -> usize {
        let rules = HeaderRules::new(&[rule.set("A", "b")]).expect("well formed");
        rules.of(Some(path), method, status, kind.map(str::as_bytes)).count()
    }

    #[test]
    fn each_condition_has_to_be_met() {
        let rule = || HeaderRule::new().path("/a/{*rest}").class(2).status(404).method(Method::Get);
        let rule = || rule().content_type("text/html").content_type("image/*");
        let html = Some("Text/HTML; charset=utf-8");
        assert_eq!(count(rule(), "/a/b/c", Method::Get, 200, html), 1);
        assert_eq!(count(rule(), "/a/", Method::Get, 404, Some("image/png")), 1);
        for (path, method, status, kind) in [
            ("/b", Method::Get, 200, html),
            ("/a/b", Method::Post, 200, html),
            ("/a/b", Method::Get, 301, html),
            ("/a/b", Method::Get, 200, Some("text/plain")),
            ("/a/b", Method::Get, 200, None),
        ] {
            assert_eq!(count(rule(), path, method, status, kind), 0, "{path} {status} {kind:?}");
        }
        assert_eq!(count(HeaderRule::new(), "/", Method::Put, 503, None), 1);
    }

    #[test]
    fn a_304_also_counts_as_the_200_that_it_stands_for() {
        let of = |rule: HeaderRule| count(rule, "/", Method::Get, 304, Some("text/html"));
        for class in [2, 3] {
            assert_eq!(of(HeaderRule::new().class(class)), 1, "{class}xx");
        }
        for (status, wanted) in [(200, 1), (304, 1), (206, 0), (301, 0)] {
            assert_eq!(of(HeaderRule::new().status(status)), wanted, "{status}");
        }
        assert_eq!(of(HeaderRule::new().status(200).content_type("image/*")), 0);
    }
}
