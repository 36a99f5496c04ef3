//! The frame of every plot: title, subtitle, axes with a grid, labels and notes.

use super::drawing::{Anchor, ColourRole, Drawing, Point, Size, Style};
use super::scale::Axis;
use super::units::index;
use super::{font, palette};

/// Font size of axes, labels and notes.
pub(super) const SMALL: f64 = 12.0;
const MARGIN: f64 = 10.0;
const TITLE: Style = Style { size: 15.0, bold: true };
const PLAIN: Style = Style { size: SMALL, bold: false };
/// Distance between two labels.
const NAME_ROW: f64 = 17.0;
/// Length of the line sample before a label.
const SAMPLE: f64 = 28.0;

/// A label at a line's end or below the plot.
pub(super) struct SeriesLabel<'a> {
    pub(super) owner: usize,
    pub(super) text: &'a str,
    /// The vertical end of its line, in pixels.
    pub(super) end: f64,
    pub(super) hollow: bool,
}

/// The rectangle within the axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotArea {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl PlotArea {
    /// Converts a place on both axes, each from 0 to 1, to pixels.
    pub(super) fn at(&self, across: f64, up: f64) -> Point {
        (self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top))
    }
}

/// Begins a drawing with title and subtitle. Returns the pixel below them.
pub(super) fn begin(title: &str, subtitle: &str, summary: &str, size: Size) -> (Drawing, f64) {
    let mut drawing = Drawing {
        width: size.width(),
        height: 0.0,
        title: title.to_owned(),
        summary: summary.to_owned(),
        parts: Vec::new(),
    };
    let width = size.width() - 2.0 * MARGIN;
    let y = drawing.paragraph(ColourRole::Text, (MARGIN, 22.0), width, TITLE, title);
    let y = drawing.paragraph(ColourRole::Faint, (MARGIN, y), width, PLAIN, subtitle);
    (drawing, y)
}

/// Width of the labels of the vertical axis.
pub(super) fn label_width(axis: &Axis) -> f64 {
    let widths = axis.scale.ticks().into_iter().map(|tick| font::width(&axis.label(tick), SMALL));
    widths.fold(0.0, f64::max)
}

/// Height above the axes for the title of the vertical one.
pub(super) fn title_height(width: f64, axis: &Axis) -> f64 {
    let lines = font::wrap(&axis.title, SMALL, width - 2.0 * MARGIN).len();
    10.0 + index(lines) * SMALL * 1.4
}

/// Draws both axes with grid and labels. The title of the vertical one is above it, horizontally.
/// Returns the base line below them.
pub(super) fn axes(drawing: &mut Drawing, inner: PlotArea, x: &Axis, y: &Axis) -> f64 {
    let title = (MARGIN, inner.top - title_height(drawing.width, y) + 16.0);
    drawing.paragraph(ColourRole::Faint, title, drawing.width - 2.0 * MARGIN, PLAIN, &y.title);
    for tick in y.scale.ticks() {
        let (_, down) = inner.at(0.0, y.scale.place(tick));
        drawing.rule(ColourRole::Grid, (inner.left, down), (inner.right, down));
        let at = (inner.left - 6.0, down + 4.0);
        drawing.text(ColourRole::Text, at, Anchor::End, SMALL, &y.label(tick));
    }
    let mut free_from = 0.0;
    for tick in x.scale.ticks() {
        let (across, _) = inner.at(x.scale.place(tick), 0.0);
        drawing.rule(ColourRole::Grid, (across, inner.top), (across, inner.bottom));
        let label = x.label(tick);
        let half = font::width(&label, SMALL) / 2.0;
        // If labels would touch, every other one is left out.
        if across - half >= free_from && across + half <= drawing.width {
            let at = (across, inner.bottom + 17.0);
            drawing.text(ColourRole::Text, at, Anchor::Middle, SMALL, &label);
            free_from = across + half + 6.0;
        }
    }
    drawing.rule(ColourRole::Text, (inner.left, inner.bottom), (inner.right, inner.bottom));
    let middle = f64::midpoint(inner.left, inner.right);
    let half = font::width(&x.title, SMALL) / 2.0;
    let middle = middle.min(drawing.width - MARGIN - half).max(MARGIN + half);
    drawing.text(ColourRole::Faint, (middle, inner.bottom + 35.0), Anchor::Middle, SMALL, &x.title);
    inner.bottom + 58.0
}

/// Width on the right for labels.
pub(super) fn names_width(names: &[&str]) -> f64 {
    let widest = names.iter().map(|name| font::width(name, SMALL)).fold(0.0, f64::max);
    if names.is_empty() { MARGIN } else { (widest + SAMPLE + 30.0).clamp(MARGIN, 220.0) }
}

/// Minimum height of the plot for labels on its right.
pub(super) fn names_height(count: u32) -> f64 {
    f64::from(count) * NAME_ROW + 10.0
}

/// Writes each label at the end of its line, moved apart if they would touch.
pub(super) fn names_beside(drawing: &mut Drawing, inner: PlotArea, names: &[SeriesLabel<'_>]) {
    let mut order: Vec<(&SeriesLabel<'_>, f64)> =
        names.iter().map(|name| (name, name.end)).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least = inner.top + 6.0;
    for (_, y) in &mut order {
        *y = y.max(least);
        least = *y + NAME_ROW;
    }
    let mut most = inner.bottom - 4.0;
    for (_, y) in order.iter_mut().rev() {
        *y = y.min(most);
        most = *y - NAME_ROW;
    }
    let left = inner.right + 14.0;
    let space = drawing.width - left - SAMPLE - 8.0;
    for (name, y) in order {
        drawing.rule(ColourRole::Grid, (inner.right + 2.0, name.end), (left - 2.0, y));
        one_name(drawing, (left, y), space, name);
    }
}

/// Writes labels in rows below the plot. Returns the base line below them.
pub(super) fn names_below(drawing: &mut Drawing, y: f64, names: &[SeriesLabel<'_>]) -> f64 {
    let (mut x, mut y) = (MARGIN, y);
    let most = drawing.width - MARGIN;
    for name in names {
        let width = SAMPLE + 6.0 + font::width(name.text, SMALL).min(most - MARGIN - SAMPLE);
        if x + width > most && x > MARGIN {
            x = MARGIN;
            y += NAME_ROW + 2.0;
        }
        one_name(drawing, (x, y - 4.0), most - x - SAMPLE, name);
        x += width + 14.0;
    }
    if names.is_empty() { y } else { y + NAME_ROW + 8.0 }
}

fn one_name(drawing: &mut Drawing, at: Point, space: f64, name: &SeriesLabel<'_>) {
    let (x, y) = at;
    let owner = name.owner;
    let ink = ColourRole::Contender(owner);
    let line = super::drawing::Shape::Line {
        points: vec![(x, y), (x + SAMPLE, y)],
        width: 2.0,
        dashes: palette::dashes(owner),
    };
    drawing.add_of(owner, ink, line, None);
    let mark = palette::mark(owner, (x + SAMPLE / 2.0, y), name.hollow);
    drawing.add_of(owner, ink, mark, None);
    let text = font::shorten(name.text, SMALL, space);
    let at = (x + SAMPLE + 6.0, y + 4.0);
    drawing.text(ColourRole::Text, at, Anchor::Start, SMALL, &text);
}

/// Writes the notes below everything and ends the drawing there.
pub(super) fn end(drawing: &mut Drawing, y: f64, notes: &[String]) {
    let width = drawing.width - 2.0 * MARGIN;
    let mut y = y;
    for note in notes {
        y = drawing.paragraph(ColourRole::Text, (MARGIN, y), width, PLAIN, note) + 2.0;
    }
    drawing.height = (y - 6.0).ceil();
}
