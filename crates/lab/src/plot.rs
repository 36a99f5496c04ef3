//! Plots: lines as data, which the page of a report draws itself, and numbers with units.
//!
//! [`SCRIPT`] draws a [`chart::Chart`] in the width that a window has. Which plots a report has,
//! and their numbers, is the report's.

pub mod chart;
pub mod units;

/// The JavaScript that draws charts. It needs no library, and no document until it is used.
pub const SCRIPT: &str = include_str!("plot/plot.js");
