//! The file that describes a folder, below its listing: Markdown, or text as it is.
//!
//! Who may write the file may not write the page: its HTML is shown as text, its links lead to
//! pages and nowhere else, and its pictures come from this server.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::text::{escaped, without_odd};
use crate::open_folder::OpenFolder;

/// The most bytes of it that are shown.
const README_BYTES_MAX: u64 = 256 << 10;
/// The most bytes that are read as Markdown; more are shown as text.
const MARKDOWN_BYTES_MAX: usize = 64 << 10;
/// The most bytes that become of that.
const HTML_BYTES_MAX: usize = 512 << 10;
/// The schemes of links; others run programs, or none that a reader would expect.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Returns a file as a part of a page; `None` if it cannot be read.
pub(super) fn rendered(folder: &OpenFolder, name: &[u8]) -> Option<String> {
    let path = folder.path_of(name);
    let located = folder.root().locate(&path).ok()?;
    let (file, _) = folder.root().open_to_read(&located, &path).ok()?;
    let mut bytes = Vec::new();
    file.take(README_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let name = name.to_ascii_lowercase();
    let is_markdown = name.ends_with(b".md") || name.ends_with(b".markdown");
    let html = is_markdown.then(|| of_markdown(&text)).flatten();
    let html = html.unwrap_or_else(|| {
        let lines: Vec<String> = text.lines().map(|line| escaped(line).into_owned()).collect();
        format!("<pre>{}</pre>", lines.join("\n"))
    });
    Some(format!("<article>{html}</article>\n"))
}

/// Returns Markdown as HTML; `None` if it is too long, or becomes too long.
fn of_markdown(text: &str) -> Option<String> {
    if text.len() > MARKDOWN_BYTES_MAX {
        return None;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut is_left_out = Vec::new();
    let events = Parser::new_ext(text, options).filter_map(|event| safe(event, &mut is_left_out));
    let mut html = BoundedText(String::new());
    pulldown_cmark::html::write_html_fmt(&mut html, events).ok()?;
    Some(html.0)
}

/// Returns an event without what a page must not get from a file.
///
/// - `is_left_out`: of each link and picture around it, whether it was left out; its text stays.
fn safe<'t>(event: Event<'t>, is_left_out: &mut Vec<bool>) -> Option<Event<'t>> {
    match event {
        // As text it is escaped.
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(clean(html))),
        Event::Text(text) => Some(Event::Text(clean(text))),
        Event::Code(text) => Some(Event::Code(clean(text))),
        Event::Start(Tag::Link { link_type, dest_url, .. }) => {
            let target = match link_type {
                LinkType::Email => Some(format!("mailto:{dest_url}").into()),
                _ => target(&dest_url).map(|target| CowStr::from(target.into_owned())),
            };
            is_left_out.push(target.is_none());
            let (title, id) = (CowStr::from(""), CowStr::from(""));
            let link_type = LinkType::Inline;
            target.map(|dest_url| Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            let target = target(&dest_url).filter(|target| is_local(target));
            is_left_out.push(target.is_none());
            let (title, id) = (CowStr::from(""), CowStr::from(""));
            let link_type = LinkType::Inline;
            target.map(|target| {
                let dest_url = CowStr::from(target.into_owned());
                Event::Start(Tag::Image { link_type, dest_url, title, id })
            })
        }
        Event::End(TagEnd::Link | TagEnd::Image) if is_left_out.pop() == Some(true) => None,
        event => Some(event),
    }
}

fn clean(text: CowStr<'_>) -> CowStr<'_> {
    match without_odd(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned.into(),
    }
}

/// Returns the target of a link as a browser reads it; `None` if its scheme is none of those that
/// are allowed.
fn target(text: &str) -> Option<Cow<'_, str>> {
    // Browsers leave out all of these, so `java\nscript:` is a scheme (WHATWG URL §4.4).
    let is_seen = |one: char| !one.is_control();
    let text = text.trim_matches(|one: char| one == ' ' || one.is_control());
    let text = if text.chars().all(is_seen) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().filter(|one| is_seen(*one)).collect())
    };
    let is_allowed = match scheme(&text) {
        None => true,
        Some(scheme) => SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)),
    };
    is_allowed.then_some(text)
}

/// Returns what stands before a colon that no path begins before.
fn scheme(text: &str) -> Option<&str> {
    let end = text.find(['/', '\\', '?', '#']).unwrap_or(text.len());
    text[..end].split_once(':').map(|(scheme, _)| scheme)
}

/// Returns whether a target is on this server: a page that is looked at tells nothing to others.
fn is_local(target: &str) -> bool {
    let is_slash = |one: char| matches!(one, '/' | '\\');
    scheme(target).is_none() && !target.starts_with(is_slash)
        || target.starts_with('/') && !target[1..].starts_with(is_slash)
}

/// A text that does not grow beyond a bound.
struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > HTML_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn html(text: &str) -> String {
        of_markdown(text).expect("it is short")
    }

    #[test]
    fn markdown_becomes_a_page() {
        let page =
            html("# Title\n\nA *word*, `code` & a [link](sub/a.md \"title\").\n\n- one\n- two\n");
        for part in [
            "<h1>Title</h1>",
            "<em>word</em>",
            "<code>code</code> &amp; a",
            "<a href=\"sub/a.md\">link</a>",
            "<li>one</li>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(html("| a | b |\n|---|---|\n| 1 | 2 |\n").contains("<td>1</td>"));
        assert!(html("![alt](a.png)").contains("<img src=\"a.png\" alt=\"alt\""));
        assert!(html("<me@example.org>").contains("<a href=\"mailto:me@example.org\">"));
    }

    #[test]
    fn html_is_shown_as_text() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div>\n<b>x</b>\n</div>",
            "<!-- <script> -->",
            "<?php x ?>",
        ] {
            let page = html(text);
            let rest = page.replace("<p>", "").replace("</p>", "");
            assert!(!rest.contains('<'), "{text}: {page}");
            assert!(rest.contains("&lt;"), "{text}: {page}");
        }
    }

    #[test]
    fn links_lead_to_pages_and_nowhere_else() {
        for (target, is_link) in [
            ("a.md", true),
            ("/a?b=c:d#e", true),
            ("https://example.org/", true),
            ("HTTP://example.org", true),
            ("//example.org/a", true),
            ("mailto:me@example.org", true),
            ("./a:b", true),
            ("javascript:alert(1)", false),
            ("JavaScript:alert(1)", false),
            ("java&#10;script:alert(1)", false),
            ("&#1;javascript:alert(1)", false),
            ("<java&Tab;script:alert(1)>", false),
            ("vbscript:x", false),
            ("data:text/html,x", false),
            ("file:///etc/passwd", false),
        ] {
            for text in [format!("[word]({target})"), format!("[word][1]\n\n[1]: {target}")] {
                let page = html(&text);
                assert_eq!(page.contains("<a href"), is_link, "{text}: {page}");
                assert!(page.contains("word") && page.matches("</a>").count() <= 1, "{page}");
                assert_eq!(page.contains("</a>"), is_link, "{text}: {page}");
            }
        }
        assert!(!html("<javascript:alert(1)>").contains("<a"));
    }

    #[test]
    fn pictures_come_from_this_server() {
        for (target, is_shown) in [
            ("a.png", true),
            ("../a/b.png", true),
            ("/a.png", true),
            ("//example.org/a.png", false),
            ("\\\\\\\\example.org/a.png", false),
            ("/\\\\example.org/a.png", false),
            ("https://example.org/a.png", false),
            ("data:image/png;base64,AA", false),
            ("&#9;//example.org/a.png", false),
        ] {
            let page = html(&format!("![the **text**]({target}) and [![x](b.png)](c)"));
            assert_eq!(page.matches("<img").count(), 1 + usize::from(is_shown), "{target}: {page}");
            assert!(page.contains("text") && page.contains("<a href=\"c\">"), "{page}");
        }
    }

    #[test]
    fn what_becomes_too_long_is_shown_as_text() {
        assert!(of_markdown(&">".repeat(MARKDOWN_BYTES_MAX)).is_none());
        assert!(of_markdown(&"a\n".repeat(MARKDOWN_BYTES_MAX)).is_none());
        assert!(of_markdown(&"a\n".repeat(1_000)).is_some());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_tag_of_its_own(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "<script>", "</", ">", "<", "a", "[", "](", ")", "!", "javascript:", "`", "\n", "*",
                "\"", "'", "&lt;", "&#60;", "\\", "onload=", " ", "|", "-", "#", "\u{202e}",
                "&quot;",
            ]), 0..40)
        ) {
            let page = html(&parts.concat());
            prop_assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{}", page);
            for tag in page.split('<').skip(1) {
                let tag = tag.split('>').next().unwrap_or_default();
                let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
                let known = ["p", "a", "img", "em", "strong", "code", "pre", "h1", "h2", "h3", "h4",
                    "h5", "h6", "ul", "ol", "li", "hr", "br", "table", "thead", "tbody", "tr", "th",
                    "td", "blockquote", "del"];
                prop_assert!(known.contains(&name), "{}: {}", tag, page);
                prop_assert!(!tag.contains("=\"javascript:"), "{}", page);
            }
        }
    }
}
