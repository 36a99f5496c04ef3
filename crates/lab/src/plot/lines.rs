//! A plot of lines, one for each contender.

use super::drawing::{ColourRole, Drawing, Point, Shape, Size};
use super::frame::{self, PlotArea, SeriesLabel};
use super::palette;
use super::scale::Axis;

/// A plot of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Subtitle: model, pipelining, rounds.
    pub subtitle: String,
    /// Description in a sentence.
    pub summary: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines.
    pub lines: Vec<Series>,
    /// Notes below the plot: failures and missing contenders.
    pub notes: Vec<String>,
}

/// The line of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its index in the record.
    pub owner: usize,
    /// Its name.
    pub name: String,
    /// Points from left to right.
    pub spots: Vec<Spot>,
    /// Whether its marks are hollow, because the contender did other work.
    pub hollow: bool,
}

/// One point of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spot {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value; `None` without a measurement, drawn as a cross on the axis.
    pub y: Option<f64>,
    /// Minimum and maximum of the rounds, if there were several.
    pub spread: Option<(f64, f64)>,
    /// Whether something failed here, which is drawn as a cross.
    pub failed: bool,
    /// Whether it has a mark.
    pub marked: bool,
    /// Tooltip.
    pub tip: String,
}

impl Chart {
    /// Lays it out.
    pub fn draw(&self, size: Size) -> Drawing {
        let (mut drawing, y) = frame::begin(&self.title, &self.subtitle, &self.summary, size);
        let texts: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let is_wide = size == Size::Wide;
        let right = if is_wide { frame::names_width(&texts) } else { 26.0 };
        let count = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let tall = if is_wide { frame::names_height(count) } else { 0.0 };
        let top = y + frame::title_height(size.width(), &self.y);
        let inner = PlotArea {
            left: frame::label_width(&self.y) + 16.0,
            right: size.width() - right,
            top,
            bottom: top + size.inner_height().max(tall),
        };
        let below = frame::axes(&mut drawing, inner, &self.x, &self.y);
        for line in &self.lines {
            self.draw_band(&mut drawing, inner, line);
        }
        for line in &self.lines {
            self.draw_line(&mut drawing, inner, line);
        }
        self.draw_lost(&mut drawing, inner);
        let names: Vec<SeriesLabel<'_>> =
            self.lines.iter().map(|line| self.name(inner, line)).collect();
        let below = if is_wide {
            frame::names_beside(&mut drawing, inner, &names);
            below
        } else {
            frame::names_below(&mut drawing, below, &names)
        };
        frame::end(&mut drawing, below, &self.notes);
        drawing
    }

    fn at(&self, inner: PlotArea, x: f64, y: f64) -> Point {
        inner.at(self.x.scale.place(x), self.y.scale.place(y))
    }

    fn name<'a>(&self, inner: PlotArea, line: &'a Series) -> SeriesLabel<'a> {
        let last = line.spots.iter().rev().find_map(|spot| spot.y.map(|y| (spot.x, y)));
        let end = last.map_or(inner.bottom, |(x, y)| self.at(inner, x, y).1);
        SeriesLabel { owner: line.owner, text: &line.name, end, hollow: line.hollow }
    }

    /// Draws the spread over rounds as an area around the line.
    fn draw_band(&self, drawing: &mut Drawing, inner: PlotArea, line: &Series) {
        for piece in line.spots.split(|spot| spot.y.is_none() || spot.spread.is_none()) {
            if piece.len() < 2 {
                continue;
            }
            let edges = piece.iter().filter_map(|spot| Some((spot.x, spot.spread?)));
            let mut area: Vec<Point> =
                edges.clone().map(|(x, (low, _))| self.at(inner, x, low)).collect();
            area.extend(edges.rev().map(|(x, (_, high))| self.at(inner, x, high)));
            let ink = ColourRole::Contender(line.owner);
            drawing.add_of(line.owner, ink, Shape::Area(area), None);
        }
    }

    fn draw_line(&self, drawing: &mut Drawing, inner: PlotArea, line: &Series) {
        let (owner, ink) = (line.owner, ColourRole::Contender(line.owner));
        for piece in line.spots.split(|spot| spot.y.is_none()) {
            let points: Vec<Point> =
                piece.iter().filter_map(|spot| spot.y.map(|y| self.at(inner, spot.x, y))).collect();
            if points.len() > 1 {
                let shape = Shape::Line { points, width: 2.0, dashes: palette::dashes(owner) };
                drawing.add_of(owner, ink, shape, Some(&line.name));
            }
        }
        for spot in &line.spots {
            let Some(y) = spot.y else { continue };
            let centre = self.at(inner, spot.x, y);
            if spot.marked {
                let mark = palette::mark(owner, centre, line.hollow || spot.failed);
                drawing.add_of(owner, ink, mark, Some(&spot.tip));
            }
            if spot.failed {
                for stroke in palette::cross(centre) {
                    drawing.add_of(owner, ColourRole::Text, stroke, Some(&spot.tip));
                }
            }
        }
    }

    /// Draws crosses for missing measurements on the axis, one above the other.
    fn draw_lost(&self, drawing: &mut Drawing, inner: PlotArea) {
        let mut taken: Vec<f64> = Vec::new();
        for line in &self.lines {
            for spot in line.spots.iter().filter(|spot| spot.y.is_none()) {
                let (x, bottom) = inner.at(self.x.scale.place(spot.x), 0.0);
                let below = taken.iter().filter(|other| (**other - x).abs() < 8.0).count();
                let level = u32::try_from(below).unwrap_or(0);
                let centre = (x, bottom - 10.0 - f64::from(level) * 16.0);
                taken.push(x);
                let mark = palette::mark(line.owner, centre, true);
                drawing.add_of(
                    line.owner,
                    ColourRole::Contender(line.owner),
                    mark,
                    Some(&spot.tip),
                );
                for stroke in palette::cross(centre) {
                    drawing.add_of(line.owner, ColourRole::Text, stroke, Some(&spot.tip));
                }
            }
        }
    }
}
