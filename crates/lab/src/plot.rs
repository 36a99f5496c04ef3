//! Plots: from numbers to a drawing, and from a drawing to SVG and PNG.
//!
//! A chart ([`lines::Chart`], [`bars::Bars`]) lays itself out as a [`drawing::Drawing`], a list of
//! shapes. Two writers render it: [`svg`] for the page, where it follows light and dark, and
//! [`png`] for everywhere else. What does not live here: which plots a report has, and their
//! numbers.

pub mod bars;
pub mod drawing;
pub mod font;
mod frame;
pub mod lines;
pub mod palette;
pub mod png;
pub mod scale;
pub mod svg;
pub mod ticks;
pub mod units;
