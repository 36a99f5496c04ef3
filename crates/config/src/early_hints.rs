//! Early hints (RFC 8297): who gets them, and the links of a route that are sent in them.

use gustnado_http::fields::check_field;

/// Which requests of HTTP/1.1 get responses with early hints (103). Some clients of HTTP/1.1 take
/// them for the final response (RFC 8297 §3); browsers that navigate do not. By HTTP/2 they are
/// sent unless it is [`Never`](EarlyHints::Never).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyHints {
    /// Those that a browser navigates with: `Sec-Fetch-Mode` is `navigate`.
    #[default]
    Navigations,
    /// All of them.
    Always,
    /// None, also by HTTP/2.
    Never,
}

impl EarlyHints {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Navigations, Self::Always, Self::Never];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 3] = ["navigations", "always", "never"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Returns the value of a `Link` field (RFC 8288 §3) for what a page needs.
///
/// - `text`: such a value, or short for one: `/app.css; as=style`.
///
/// # Errors
/// What is wrong with it.
pub fn preload_link(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let (target, parameters) = match text.strip_prefix('<') {
        Some(full) => full.split_once('>').ok_or("the > behind the target is missing")?,
        None => text.split_at(text.find(';').unwrap_or(text.len())),
    };
    let target = target.trim();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"".contains(&byte);
    if target.is_empty() || !target.bytes().all(is_plain) {
        return Err("it has no target such as /app.css");
    }
    let parameters = parameters.trim();
    if !parameters.is_empty() && !parameters.starts_with(';') {
        return Err("a parameter begins with a semicolon");
    }
    let has = |name: &str| {
        let names = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
        names.into_iter().any(|(known, _)| known.trim().eq_ignore_ascii_case(name))
    };
    let is_short = !text.starts_with('<');
    if is_short && !has("as") {
        return Err(
            "browsers need to know what it is: add as=style, as=script, as=font or another",
        );
    }
    if !is_short && !has("rel") {
        return Err("it does not say rel=preload, or another relation");
    }
    let relation = if is_short && !has("rel") { "; rel=preload" } else { "" };
    let link = format!("<{target}>{relation}{parameters}");
    match check_field("Link", link.as_bytes()) {
        Ok(()) => Ok(link),
        Err(_) => Err("it has a control byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_be_written_short() {
        for (text, link) in [
            ("/app.css; as=style", "</app.css>; rel=preload; as=style"),
            ("/a.woff2;as=font; crossorigin", "</a.woff2>; rel=preload;as=font; crossorigin"),
            ("/a.js; rel=modulepreload; as=script", "</a.js>; rel=modulepreload; as=script"),
            ("<https://cdn.test>; rel=preconnect", "<https://cdn.test>; rel=preconnect"),
            (" </a.css>; rel=preload; as=style ", "</a.css>; rel=preload; as=style"),
        ] {
            assert_eq!(preload_link(text).as_deref(), Ok(link), "{text}");
            assert_eq!(preload_link(link).as_deref(), Ok(link), "{link}");
        }
    }

    #[test]
    fn what_no_browser_would_use_is_refused() {
        for text in [
            "",
            "; as=style",
            "/app.css",
            "/app.css; has=style",
            "/a b.css; as=style",
            "</app.css; rel=preload",
            "</app.css>; as=style",
            "</app.css> rel=preload",
            "<>; rel=preload",
            "/a.css; as=style\r\nX: y",
        ] {
            assert!(preload_link(text).is_err(), "{text}");
        }
    }
}
