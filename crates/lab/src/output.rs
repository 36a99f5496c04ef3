//! An [`Outcome`](crate::outcome::Outcome) for people and for programs.
//!
//! What lives here: from an outcome to text (a table, JSON, CSV, a log of `HdrHistogram`), back
//! from the forms that can be read, and bounds that an outcome must keep. What does not: where a
//! text goes. It neither opens nor writes a file.

pub mod csv;
pub mod histogram;
pub mod json;
pub mod merge;
pub mod table;
pub mod threshold;

mod tables;

#[cfg(test)]
mod tests;
