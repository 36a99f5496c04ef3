//! A plot of horizontal bars, one for each contender, in groups.

use super::drawing::{Anchor, ColourRole, Drawing, Shape, Size};
use super::frame::{self, SMALL};
use super::scale::Scale;
use super::units::ValueUnit;
use super::{font, palette};

/// A bar chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title.
    pub title: String,
    /// Subtitle: how it was measured.
    pub subtitle: String,
    /// Description in a sentence.
    pub summary: String,
    /// Unit of the values.
    pub unit: ValueUnit,
    /// Groups from top to bottom.
    pub groups: Vec<BarGroup>,
    /// Notes below the plot.
    pub notes: Vec<String>,
}

/// Bars that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Their common name.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The contender's index in the record.
    pub owner: usize,
    /// Its name.
    pub name: String,
    /// Its value; `None`: there is none, and `remark` says why.
    pub value: Option<f64>,
    /// Minimum and maximum of the rounds, if there were several.
    pub spread: Option<(f64, f64)>,
    /// Whether something failed, which is drawn as a cross.
    pub failed: bool,
    /// Whether it is hollow, because the contender did other work.
    pub hollow: bool,
    /// Text after its value.
    pub remark: String,
}

const BAR: f64 = 14.0;
const LEFT: f64 = 10.0;

/// Left end of the bars, length of the longest one, and distance between two, in pixels.
struct BarLayout {
    left: f64,
    length: f64,
    row: f64,
    named_above: bool,
    scale: Scale,
}

impl Bars {
    /// Lays it out.
    pub fn draw(&self, size: Size) -> Drawing {
        let (mut drawing, mut y) = frame::begin(&self.title, &self.subtitle, &self.summary, size);
        let layout = self.layout(size);
        for group in &self.groups {
            let style = super::drawing::Style { size: SMALL, bold: true };
            let width = size.width() - 2.0 * LEFT;
            y = drawing.paragraph(ColourRole::Text, (LEFT, y + 12.0), width, style, &group.title);
            let top = y - 8.0;
            for bar in &group.bars {
                self.draw_bar(&mut drawing, &layout, y, bar);
                y += layout.row;
            }
            drawing.rule(ColourRole::Text, (layout.left, top), (layout.left, y - 8.0));
        }
        frame::end(&mut drawing, y + 18.0, &self.notes);
        drawing
    }

    fn layout(&self, size: Size) -> BarLayout {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let reaches = bars().flat_map(|bar| bar.value.into_iter().chain(bar.spread.map(|s| s.1)));
        let scale = Scale::from_zero(self.unit, reaches);
        let widest = bars().map(|bar| font::width(&bar.name, SMALL)).fold(0.0, f64::max);
        let named_above = size == Size::Narrow;
        let left = if named_above { LEFT } else { LEFT + widest.min(200.0) + 10.0 };
        let remark = bars()
            .filter(|bar| bar.value.is_some())
            .map(|bar| font::width(&self.said(bar), SMALL))
            .fold(0.0, f64::max);
        let right = if named_above { 20.0 } else { remark.min(260.0) + 34.0 };
        let row = if named_above { 38.0 } else { 22.0 };
        BarLayout { left, length: size.width() - left - right, row, named_above, scale }
    }

    fn said(&self, bar: &Bar) -> String {
        let value = bar.value.map(|value| self.unit.write(value));
        match (value, bar.remark.is_empty()) {
            (Some(value), true) => value,
            (Some(value), false) => format!("{value} · {}", bar.remark),
            (None, _) => bar.remark.clone(),
        }
    }

    fn draw_bar(&self, drawing: &mut Drawing, layout: &BarLayout, y: f64, bar: &Bar) {
        let said = self.said(bar);
        let mut y = y;
        if layout.named_above {
            let width = drawing.width - 2.0 * LEFT;
            let line = font::shorten(&format!("{}: {said}", bar.name), SMALL, width);
            drawing.text(ColourRole::Text, (LEFT + 4.0, y + 4.0), Anchor::Start, SMALL, &line);
            y += 18.0;
        } else {
            let name = font::shorten(&bar.name, SMALL, layout.left - LEFT - 10.0);
            let at = (layout.left - 8.0, y + 4.0);
            drawing.text(ColourRole::Text, at, Anchor::End, SMALL, &name);
        }
        let end = match bar.value {
            Some(value) => self.draw_value(drawing, layout, y, bar, value),
            None => layout.left + 12.0,
        };
        if bar.failed || bar.value.is_none() {
            let centre = if bar.value.is_some() { (end + 12.0, y) } else { (end, y) };
            for stroke in palette::cross(centre) {
                drawing.add_of(bar.owner, ColourRole::Text, stroke, Some(&said));
            }
        }
        if !layout.named_above {
            let from = match (bar.value, bar.failed) {
                (Some(_), true) => end + 24.0,
                (None, _) => end + 14.0,
                (Some(_), false) => end + 8.0,
            };
            let said = font::shorten(&said, SMALL, drawing.width - from - 4.0);
            drawing.text(ColourRole::Text, (from, y + 4.0), Anchor::Start, SMALL, &said);
        }
    }

    /// Draws the bar and its whisker. Returns their right end.
    fn draw_value(
        &self,
        drawing: &mut Drawing,
        layout: &BarLayout,
        y: f64,
        bar: &Bar,
        value: f64,
    ) -> f64 {
        let ink = ColourRole::Contender(bar.owner);
        let place = |value: f64| layout.left + layout.scale.place(value) * layout.length;
        let (end, half) = (place(value), BAR / 2.0);
        let tip = format!("{}: {}", bar.name, self.said(bar));
        let points = vec![
            (layout.left, y - half),
            (end, y - half),
            (end, y + half),
            (layout.left, y + half),
        ];
        let shape = Shape::Polygon { points, hollow: bar.hollow || bar.failed };
        drawing.add_of(bar.owner, ink, shape, Some(&tip));
        let Some((low, high)) = bar.spread else { return end };
        let (low, high) = (place(low), place(high));
        for (from, to) in [
            ((low, y), (high, y)),
            ((low, y - 4.0), (low, y + 4.0)),
            ((high, y - 4.0), (high, y + 4.0)),
        ] {
            let shape = Shape::Line { points: vec![from, to], width: 1.4, dashes: &[] };
            drawing.add_of(bar.owner, ColourRole::Text, shape, None);
        }
        end.max(high)
    }
}
