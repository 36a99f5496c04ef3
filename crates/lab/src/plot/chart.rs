//! A plot of lines, one for each contender, as data.

use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::units::ValueUnit;

/// A plot of lines.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Chart {
    /// Title.
    #[serde(skip)]
    pub title: String,
    /// Subtitle: model, pipelining, rounds.
    #[serde(skip)]
    pub subtitle: String,
    /// Description in a sentence.
    #[serde(skip)]
    pub summary: String,
    /// Sentence that names the contenders that are not drawn, and why.
    #[serde(skip)]
    pub undrawn: Option<String>,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Whether a value holds until the next one.
    pub step: bool,
    /// Lines.
    pub lines: Vec<Series>,
}

/// One axis of a plot. Its ends and ticks follow from the values and the width.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// Its unit.
    pub unit: ValueUnit,
    /// Its scale.
    pub scale: Scale,
    /// Labels of a named scale, whose values are indices.
    pub names: Vec<String>,
    /// Text after a value of this axis where the values of all lines are shown.
    pub suffix: String,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear, from zero.
    Zero,
    /// Logarithmic if values are far apart, else linear from zero.
    Fit,
    /// Logarithmic.
    Log,
    /// Linear, from 0 to 100 %.
    Share,
    /// Names at equal distances.
    Named,
}

/// The line of one contender.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Series {
    /// Its index in the record.
    #[serde(rename = "of")]
    pub owner: usize,
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Points from left to right.
    #[serde(rename = "points")]
    pub spots: Vec<Spot>,
}

/// One point of a line. In JSON it is an array, as short as possible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spot {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value; `None` without one that can be compared, which leaves a gap.
    pub y: Option<f64>,
    /// Minimum and maximum of the rounds, if there were several.
    pub spread: Option<(f64, f64)>,
}

impl Axis {
    /// Returns an axis of numbers.
    pub fn new(title: impl Into<String>, unit: ValueUnit, scale: Scale) -> Self {
        let (title, names, suffix) = (title.into(), Vec::new(), String::new());
        Self { title, unit, scale, names, suffix }
    }
}

impl Serialize for Spot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ends = self.spread.map(|(low, high)| [low, high]);
        let values = [Some(self.x), self.y].into_iter();
        let all = values.chain(ends.into_iter().flatten().map(Some));
        let mut list = serializer.serialize_seq(None)?;
        for value in all {
            list.serialize_element(&value.map(rounded))?;
        }
        list.end()
    }
}

/// A number with seven significant digits, which is more than is shown of any.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_is_as_short_as_it_can_be() {
        let json = |spot: Spot| serde_json::to_string(&spot).expect("memory takes it");
        let spot = Spot { x: 1.0, y: Some(0.123_456_789), ..Spot::default() };
        assert_eq!(json(spot), "[1.0,0.1234568]");
        assert_eq!(json(Spot { spread: Some((1.0, 2.0)), ..spot }), "[1.0,0.1234568,1.0,2.0]");
        assert_eq!(json(Spot { x: 1.0, ..Spot::default() }), "[1.0,null]");
        // What is not finite is no JSON number.
        assert_eq!(json(Spot { x: 1.0, y: Some(f64::NAN), ..Spot::default() }), "[1.0,null]");
    }
}
