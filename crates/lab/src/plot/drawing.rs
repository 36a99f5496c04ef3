//! A drawing: a list of shapes in pixels from the upper left corner.

use super::font;

/// A point in pixels.
pub type Point = (f64, f64);

/// A finished plot, ready to be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Title.
    pub title: String,
    /// Description in a sentence, for readers who cannot see it.
    pub summary: String,
    /// Shapes, from back to front.
    pub parts: Vec<DrawingPart>,
}

/// One shape of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawingPart {
    /// The shape.
    pub shape: Shape,
    /// Its colour.
    pub ink: ColourRole,
    /// Its contender, by index in the record.
    pub owner: Option<usize>,
    /// Its tooltip.
    pub tip: Option<String>,
}

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A line through points.
    Line {
        /// Its points.
        points: Vec<Point>,
        /// Its width.
        width: f64,
        /// Lengths of dashes and gaps in turn. Empty: solid.
        dashes: &'static [f64],
    },
    /// A faintly filled area within points.
    Area(Vec<Point>),
    /// A polygon.
    Polygon {
        /// Its corners.
        points: Vec<Point>,
        /// Whether only its outline is drawn, on paper.
        hollow: bool,
    },
    /// A circle.
    Circle {
        /// Its centre.
        centre: Point,
        /// Its radius.
        radius: f64,
        /// Whether only its outline is drawn, on paper.
        hollow: bool,
    },
    /// Text on one line.
    Text {
        /// Begin, middle or end of its base line, by `anchor`.
        at: Point,
        /// The text.
        text: String,
        /// Font size.
        size: f64,
        /// The anchor of `at`.
        anchor: Anchor,
        /// Whether it is bold.
        bold: bool,
    },
}

/// The part of a text at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// The role of a colour; the renderers map it for light and dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourRole {
    /// Colour of a contender, by its index in the record.
    Contender(usize),
    /// Text, axes and the crosses of failures.
    Text,
    /// Secondary text.
    Faint,
    /// Grid lines.
    Grid,
}

impl Drawing {
    /// Draws a shape without a contender.
    pub fn add(&mut self, ink: ColourRole, shape: Shape) {
        self.parts.push(DrawingPart { shape, ink, owner: None, tip: None });
    }

    /// Draws a shape of one contender.
    pub fn add_of(&mut self, owner: usize, ink: ColourRole, shape: Shape, tip: Option<&str>) {
        let tip = tip.map(str::to_owned);
        self.parts.push(DrawingPart { shape, ink, owner: Some(owner), tip });
    }

    /// Draws a straight line.
    pub fn rule(&mut self, ink: ColourRole, from: Point, to: Point) {
        self.add(ink, Shape::Line { points: vec![from, to], width: 1.0, dashes: &[] });
    }

    /// Writes one line of text.
    pub fn text(&mut self, ink: ColourRole, at: Point, anchor: Anchor, size: f64, text: &str) {
        self.add(ink, Shape::Text { at, text: text.to_owned(), size, anchor, bold: false });
    }

    /// Writes text from `x` on, wrapped at `width`, the first base line at `y`. Returns the next
    /// base line.
    pub fn paragraph(
        &mut self,
        ink: ColourRole,
        at: Point,
        width: f64,
        style: Style,
        text: &str,
    ) -> f64 {
        let mut y = at.1;
        // Bold letters are about a tenth wider than the measured ones.
        let width = if style.bold { width * 0.9 } else { width };
        for line in font::wrap(text, style.size, width) {
            let shape = Shape::Text {
                at: (at.0, y),
                text: line,
                size: style.size,
                anchor: Anchor::Start,
                bold: style.bold,
            };
            self.add(ink, shape);
            y += style.size * 1.4;
        }
        y
    }
}

/// Text style.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Font size.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
}

/// The layout of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A wide window: labels stand at the ends of their lines.
    Wide,
    /// A phone: labels stand below.
    Narrow,
}

impl Size {
    /// Width in pixels.
    pub fn width(self) -> f64 {
        match self {
            Size::Wide => 760.0,
            Size::Narrow => 360.0,
        }
    }

    /// Height of the part within the axes, in pixels.
    pub fn inner_height(self) -> f64 {
        match self {
            Size::Wide => 300.0,
            Size::Narrow => 230.0,
        }
    }
}
