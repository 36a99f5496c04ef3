//! A drawing: a list of shapes in pixels from the upper left corner.

use super::font;

/// A point in pixels.
pub type Point = (f64, f64);

/// A finished plot, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Pixels across.
    pub width: f64,
    /// Pixels down.
    pub height: f64,
    /// What it is called.
    pub title: String,
    /// What it shows, in a sentence, for those who do not see it.
    pub summary: String,
    /// What is drawn, undermost first.
    pub parts: Vec<DrawingPart>,
}

/// One shape of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawingPart {
    /// What is drawn.
    pub shape: Shape,
    /// In which colour.
    pub ink: ColourRole,
    /// The contender whose shape it is, by its place in the record.
    pub owner: Option<usize>,
    /// What is said of it when it is pointed at.
    pub tip: Option<String>,
}

/// What can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A line through points.
    Line {
        /// Where it goes.
        points: Vec<Point>,
        /// How thick it is.
        width: f64,
        /// Lengths of dashes and gaps in turn. Empty: unbroken.
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
        /// Where its base line begins, has its middle or ends, by `anchor`.
        at: Point,
        /// What it says.
        text: String,
        /// Height of its letters' square.
        size: f64,
        /// Which end `at` is.
        anchor: Anchor,
        /// Whether it is bold.
        bold: bool,
    },
}

/// Which part of a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// What a colour is for; the writers know which one it is in light and in dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourRole {
    /// That of a contender, by its place in the record.
    Contender(usize),
    /// Text, axes and the crosses of failures.
    Text,
    /// Text of less weight.
    Faint,
    /// Lines of the grid.
    Grid,
}

impl Drawing {
    /// Draws a shape that belongs to nobody.
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

    /// Writes text from `x` on over as many lines as `width` asks for, the first base line at `y`.
    /// Gives the base line that would come next.
    pub fn paragraph(
        &mut self,
        ink: ColourRole,
        at: Point,
        width: f64,
        style: Style,
        text: &str,
    ) -> f64 {
        let mut y = at.1;
        // Bold letters are about a tenth wider than those we measure with.
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

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Height of its letters' square.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
}

/// For whom a plot is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A window with room: names stand beside the ends of their lines.
    Wide,
    /// A telephone: names stand below.
    Narrow,
}

impl Size {
    /// Pixels across.
    pub fn width(self) -> f64 {
        match self {
            Size::Wide => 760.0,
            Size::Narrow => 360.0,
        }
    }

    /// Pixels down of the part within the axes.
    pub fn inner_height(self) -> f64 {
        match self {
            Size::Wide => 300.0,
            Size::Narrow => 230.0,
        }
    }
}
