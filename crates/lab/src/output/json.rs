//! The outcome as one JSON object.

use crate::outcome::{FORMAT, Outcome};
use std::fmt;

/// Formats the outcome as an indented object, with a line end.
///
/// A number that JSON cannot represent (not a number, infinite) becomes `null`.
pub fn text(outcome: &Outcome) -> String {
    let text = serde_json::to_string_pretty(outcome);
    let mut text = text.expect("its keys are text or numbers, and memory is the only sink");
    text.push('\n');
    text
}

/// Parses the output of [`text`].
///
/// # Errors
/// [`OutcomeJsonError`] for any other text, or another format.
pub fn read(text: &str) -> Result<Outcome, OutcomeJsonError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(OutcomeJsonError::Shape)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => return Err(OutcomeJsonError::Format(format)),
        None => return Err(OutcomeJsonError::Foreign),
    }
    serde_json::from_value(value).map_err(OutcomeJsonError::Shape)
}

/// Error of a text that is not an outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutcomeJsonError {
    /// It is not JSON, or an object of another shape.
    Shape(serde_json::Error),
    /// It has this format, which is not [`FORMAT`].
    Format(u64),
    /// It is JSON without `format`.
    Foreign,
}

impl fmt::Display for OutcomeJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(error) => write!(f, "{error}"),
            Self::Format(found) => write!(f, "expected format {FORMAT}, found format {found}"),
            Self::Foreign => f.write_str("expected an object with a key `format`, found none"),
        }
    }
}

impl std::error::Error for OutcomeJsonError {}
