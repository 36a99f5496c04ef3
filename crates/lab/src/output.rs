//! Text forms of an [`Outcome`](crate::outcome::Outcome).
//!
//! This module writes an outcome as a table, JSON, CSV, or a log of `HdrHistogram`, reads the last
//! two forms but CSV back, and checks thresholds. It opens and writes no files.

pub mod csv;
pub mod histogram;
pub mod json;
pub mod merge;
pub mod table;
pub mod threshold;

mod tables;

#[cfg(test)]
mod tests;
