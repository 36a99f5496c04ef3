//! Renders a drawing as SVG.
//!
//! Colours are classes, so a drawing within a page follows its light and dark mode. A separate file
//! carries the same style sheet.

use std::fmt::Write as _;

use super::drawing::{Anchor, Drawing, DrawingPart, Point, Shape};
use super::palette;
use crate::markup::Markup;

/// Renders a drawing as a file.
pub fn file(drawing: &Drawing) -> String {
    let mut svg = Markup::default();
    write(&mut svg, drawing, "plot", Some(&palette::style_sheet()));
    svg.finish()
}

/// Renders a drawing as an element of a page. `id` is unique in it.
pub fn element(page: &mut Markup, drawing: &Drawing, id: &str) {
    write(page, drawing, id, None);
}

fn write(svg: &mut Markup, drawing: &Drawing, id: &str, style: Option<&str>) {
    let (width, height) = (number(drawing.width), number(drawing.height));
    let view = format!("0 0 {width} {height}");
    let (title, summary) = (format!("{id}-t"), format!("{id}-d"));
    svg.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("class", "plot"),
            ("viewBox", &view),
            ("width", &width),
            ("height", &height),
            ("role", "img"),
            ("aria-labelledby", &format!("{title} {summary}")),
        ],
    );
    svg.element("title", &[("id", &title)], &drawing.title);
    svg.element("desc", &[("id", &summary)], &drawing.summary);
    if let Some(style) = style {
        svg.open("style", &[]);
        svg.trusted(style);
        svg.close();
    }
    for part in &drawing.parts {
        write_part(svg, part);
    }
    svg.close();
}

fn write_part(svg: &mut Markup, part: &DrawingPart) {
    let mut class = format!("{} {}", look(&part.shape), palette::class(part.ink));
    if let Some(owner) = part.owner {
        let _ = write!(class, " o{owner}");
    }
    let (name, attributes) = shape(&part.shape);
    let mut all = vec![("class", class.as_str())];
    all.extend(attributes.iter().map(|(name, value)| (*name, value.as_str())));
    match (&part.shape, &part.tip) {
        (Shape::Text { text, .. }, _) => svg.element(name, &all, text),
        (_, Some(tip)) => {
            svg.open(name, &all);
            svg.element("title", &[], tip);
            svg.close();
        }
        (_, None) => svg.empty(name, &all),
    }
}

/// The class for a shape's fill, defined in the palette's style sheet.
fn look(shape: &Shape) -> &'static str {
    match shape {
        Shape::Line { .. } => "l",
        Shape::Area(_) => "a",
        Shape::Polygon { hollow: true, .. } | Shape::Circle { hollow: true, .. } => "h",
        Shape::Polygon { .. } | Shape::Circle { .. } => "f",
        Shape::Text { .. } => "t",
    }
}

fn shape(shape: &Shape) -> (&'static str, Vec<(&'static str, String)>) {
    match shape {
        Shape::Line { points, width, dashes } => {
            let mut attributes = vec![("points", list(points)), ("stroke-width", number(*width))];
            if !dashes.is_empty() {
                let lengths: Vec<String> = dashes.iter().map(|length| number(*length)).collect();
                attributes.push(("stroke-dasharray", lengths.join(" ")));
            }
            ("polyline", attributes)
        }
        Shape::Area(points) | Shape::Polygon { points, .. } => {
            ("polygon", vec![("points", list(points))])
        }
        Shape::Circle { centre, radius, .. } => {
            let (x, y) = (number(centre.0), number(centre.1));
            ("circle", vec![("cx", x), ("cy", y), ("r", number(*radius))])
        }
        Shape::Text { at, size, anchor, bold, .. } => {
            let mut attributes =
                vec![("x", number(at.0)), ("y", number(at.1)), ("font-size", number(*size))];
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => attributes.push(("text-anchor", "middle".to_owned())),
                Anchor::End => attributes.push(("text-anchor", "end".to_owned())),
            }
            if *bold {
                attributes.push(("font-weight", "bold".to_owned()));
            }
            ("text", attributes)
        }
    }
}

fn list(points: &[Point]) -> String {
    let mut text = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let gap = if at == 0 { "" } else { " " };
        let _ = write!(text, "{gap}{},{}", number(*x), number(*y));
    }
    text
}

/// A tenth of a pixel is fine enough.
fn number(value: f64) -> String {
    debug_assert!(value.is_finite(), "a drawing holds {value}");
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
