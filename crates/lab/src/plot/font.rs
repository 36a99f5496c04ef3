//! Text as outlines and as widths, from the one font that comes with the program.
//!
//! `crates/lab/fonts/dejavu-sans-latin.ttf` is the font of that name with Latin letters, digits and
//! some signs left in it; a letter that it lacks is shown as its box. In SVG the reader's own font
//! is used, and these widths, which are those of a wide font, are what the layout keeps free.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FONT: &[u8] = include_bytes!("../../fonts/dejavu-sans-latin.ttf");

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT, 0).expect("the font that comes with us is a font"));

/// Width of `text` on one line in pixels, with letters of `size` pixels.
pub fn width(text: &str, size: f64) -> f64 {
    let units: f64 = text.chars().map(|letter| advance(glyph(letter))).sum();
    units * size / f64::from(FACE.units_per_em())
}

/// Wraps `text` at `width` pixels. A longer word is cut.
pub fn wrap(text: &str, size: f64, width_max: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size) <= width_max {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(line);
        }
        line = shorten(word, size, width_max);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Shortens `text` to `width_max` pixels with an ellipsis.
pub fn shorten(text: &str, size: f64, width_max: f64) -> String {
    if width(text, size) <= width_max {
        return text.to_owned();
    }
    let space = width_max - width("…", size);
    let mut short = String::new();
    let mut used = 0.0;
    for letter in text.chars() {
        used += width(letter.encode_utf8(&mut [0; 4]), size);
        if used > space {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

/// Draws `text` letter by letter. `begin` receives the offset of a letter's outline in pixels and
/// the pixels of one unit of the outline, and returns the builder that takes the outline.
pub fn outline<Builder: OutlineBuilder>(
    text: &str,
    size: f64,
    mut begin: impl FnMut(f64, f64) -> Builder,
    mut end: impl FnMut(Builder),
) {
    let scale = size / f64::from(FACE.units_per_em());
    let mut x = 0.0;
    for letter in text.chars() {
        let id = glyph(letter);
        let mut builder = begin(x, scale);
        // A letter without an outline is a space.
        let _ = FACE.outline_glyph(id, &mut builder);
        end(builder);
        x += advance(id) * scale;
    }
}

fn glyph(letter: char) -> GlyphId {
    // Glyph 0 is the box for letters that the font lacks.
    FACE.glyph_index(letter).unwrap_or(GlyphId(0))
}

fn advance(id: GlyphId) -> f64 {
    f64::from(FACE.glyph_hor_advance(id).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_asked() {
        let text = "latency by percentile, 10,000 connections, and a-very-long-word-that-is-cut";
        for line in wrap(text, 12.0, 90.0) {
            assert!(width(&line, 12.0) <= 90.0, "{line}");
        }
        assert_eq!(wrap("", 12.0, 90.0).len(), 0);
    }

    #[test]
    fn every_sign_that_plots_use_is_in_the_font() {
        for letter in "aZ09 %.,:;/()+-–—…·×±µ≤≥−'’\"°éßÅ".chars() {
            assert_ne!(glyph(letter), GlyphId(0), "{letter}");
        }
    }
}
