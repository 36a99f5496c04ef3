//! Writes HTML and SVG: elements, attributes and text, with everything foreign escaped.
//!
//! Text and attribute values can never become markup. Names of elements and attributes are
//! constants and are written as they are.

/// A page or drawing under construction.
#[derive(Debug, Default)]
pub struct Markup {
    written: String,
    open: Vec<&'static str>,
}

/// Attributes of an element: names and values.
pub type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// Opens an element; [`Markup::close`] closes it.
    pub fn open(&mut self, element: &'static str, attributes: Attributes<'_>) {
        self.begin(element, attributes);
        self.written.push('>');
        self.open.push(element);
    }

    /// Closes the innermost open element.
    pub fn close(&mut self) {
        let element = self.open.pop().expect("each element that is closed was opened");
        self.written.push_str("</");
        self.written.push_str(element);
        self.written.push('>');
        if ends_a_line(element) {
            self.written.push('\n');
        }
    }

    /// Adds an element without content: `<line …/>`, `<meta …/>`.
    pub fn empty(&mut self, element: &'static str, attributes: Attributes<'_>) {
        self.begin(element, attributes);
        self.written.push_str("/>");
    }

    /// Adds an element with text only.
    pub fn element(&mut self, element: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(element, attributes);
        self.text(text);
        self.close();
    }

    /// Adds text, escaped.
    pub fn text(&mut self, text: &str) {
        escape_to(text, &mut self.written);
    }

    /// Adds trusted markup, such as our style sheet or a rendered drawing.
    pub fn trusted(&mut self, markup: &str) {
        self.written.push_str(markup);
    }

    /// Returns the result.
    pub fn finish(self) -> String {
        debug_assert!(self.open.is_empty(), "{:?} were not closed", self.open);
        self.written
    }

    fn begin(&mut self, element: &str, attributes: Attributes<'_>) {
        self.written.push('<');
        self.written.push_str(element);
        for (name, value) in attributes {
            self.written.push(' ');
            self.written.push_str(name);
            self.written.push_str("=\"");
            escape_to(value, &mut self.written);
            self.written.push('"');
        }
    }
}

/// Line ends keep the page readable as text; within a paragraph they could show as a space.
fn ends_a_line(element: &str) -> bool {
    !matches!(element, "a" | "b" | "code" | "em" | "span" | "strong" | "text" | "title" | "summary")
}

fn escape_to(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            // Neither XML nor HTML can hold these, escaped or not.
            _ if character.is_control() => out.push('\u{FFFD}'),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_foreign_never_becomes_markup() {
        let mut page = Markup::default();
        page.open("p", &[("title", "\"><script>")]);
        page.text("</p><script>alert('x') & \u{0}\u{1b}");
        page.close();
        assert_eq!(
            page.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">\
             &lt;/p&gt;&lt;script&gt;alert(&#39;x&#39;) &amp; \u{FFFD}\u{FFFD}</p>\n"
        );
    }
}
