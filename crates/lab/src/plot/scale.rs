//! Maps values to places on an axis.

use super::ticks;
use super::units::{ValueUnit, index};

/// Ratio of values from which on an axis is logarithmic.
const FACTORS_ABOVE: f64 = 20.0;

/// One axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Its unit.
    pub unit: ValueUnit,
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Linear: equal differences are equally far apart.
    Linear {
        /// The first value.
        low: f64,
        /// The last value.
        high: f64,
        /// Base of round numbers: 1, or 1,024 and its powers for bytes.
        base: f64,
    },
    /// Logarithmic: equal factors are equally far apart.
    Log {
        /// The first value, above 0.
        low: f64,
        /// The last value.
        high: f64,
        /// Whether powers of two are round, as for bytes.
        binary: bool,
    },
    /// Categories at equal distances; values are indices from 0.
    Named(Vec<String>),
}

impl Scale {
    /// Returns a linear scale from 0 that includes all values.
    pub fn from_zero(unit: ValueUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let most = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        if most <= 0.0 {
            return Scale::Linear { low: 0.0, high: 1.0, base: 1.0 };
        }
        let base =
            if unit == ValueUnit::Bytes { 1024f64.powf(most.log(1024.0).floor()) } else { 1.0 };
        let step = ticks::round_step(most / base / 8.0);
        Scale::Linear { low: 0.0, high: (most / base / step - 1e-9).ceil() * step * base, base }
    }

    /// Returns a logarithmic scale that includes all values above 0, between round numbers.
    pub fn factors(unit: ValueUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let (least, most) = ends(values);
        let binary = unit == ValueUnit::Bytes;
        let (low, high) = if binary {
            (2f64.powf(least.log2().floor()), 2f64.powf(most.log2().ceil()))
        } else {
            (round_below(least), ticks::round_step(most))
        };
        if low < high {
            Scale::Log { low, high, binary }
        } else {
            Scale::Log { low: low / 2.0, high: high * 2.0, binary }
        }
    }

    /// Returns a logarithmic scale if values are far apart, else a linear one from zero.
    pub fn fitting(unit: ValueUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let (least, most) = ends(values.iter().copied());
        if most / least > FACTORS_ABOVE {
            Self::factors(unit, values)
        } else {
            Self::from_zero(unit, values)
        }
    }

    /// The position of a value: 0 at the beginning, 1 at the end, clamped.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { low, high, .. } => (value - low) / (high - low),
            Scale::Log { low, high, .. } => (value.max(*low) / low).ln() / (high / low).ln(),
            Scale::Named(names) => (value + 0.5) / length(names),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The values with a tick and a label.
    pub fn ticks(&self) -> Vec<f64> {
        match self {
            Scale::Linear { low, high, base } => {
                ticks::linear(low / base, high / base).iter().map(|tick| tick * base).collect()
            }
            Scale::Log { low, high, binary: true } => ticks::binary(*low, *high),
            Scale::Log { low, high, .. } => ticks::logarithmic(*low, *high),
            Scale::Named(names) => (0..names.len()).map(index).collect(),
        }
    }

    /// Returns whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        matches!(self, Scale::Log { .. })
    }
}

impl Axis {
    /// Formats a tick.
    pub fn label(&self, tick: f64) -> String {
        match &self.scale {
            Scale::Named(names) => {
                let name = names.iter().enumerate().find(|(at, _)| (index(*at) - tick).abs() < 0.5);
                name.map_or_else(String::new, |(_, name)| name.clone())
            }
            _ => self.unit.write_tick(tick),
        }
    }
}

/// Minimum and maximum of values above 0; 1 and 10 without any.
fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let usable = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
    let (least, most) = usable.fold((f64::INFINITY, 0.0), |(least, most), value| {
        (f64::min(least, value), f64::max(most, value))
    });
    if most > 0.0 { (least, most) } else { (1.0, 10.0) }
}

/// The greatest 1, 2 or 5 of a power of ten that is not above `value`.
fn round_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let head = value / power;
    power * [5.0, 2.0].into_iter().find(|round| head >= round - 1e-9).unwrap_or(1.0)
}

fn length(names: &[String]) -> f64 {
    index(names.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let linear = Scale::from_zero(ValueUnit::Number, [3.0, 87.0]);
        assert_eq!(linear, Scale::Linear { low: 0.0, high: 100.0, base: 1.0 });
        let factors = Scale::factors(ValueUnit::Number, [130.0, 9000.0]);
        assert_eq!(factors, Scale::Log { low: 100.0, high: 10_000.0, binary: false });
    }

    #[test]
    fn bytes_are_round_in_their_own_units() {
        let mib = 1024.0 * 1024.0;
        for scale in [
            Scale::from_zero(ValueUnit::Bytes, [87.0 * mib]),
            Scale::factors(ValueUnit::Bytes, [3.0 * mib, 500.0 * mib]),
        ] {
            for tick in scale.ticks() {
                let label = ValueUnit::Bytes.write_tick(tick);
                assert!(!label.contains('.'), "{label}");
            }
        }
    }

    #[test]
    fn a_scale_of_nothing_or_of_one_value_still_has_two_ends() {
        let scales = [
            Scale::from_zero(ValueUnit::Number, []),
            Scale::factors(ValueUnit::Number, []),
            Scale::factors(ValueUnit::Number, [100.0]),
            Scale::fitting(ValueUnit::Number, [0.0]),
            Scale::from_zero(ValueUnit::Number, [f64::NAN]),
        ];
        for scale in scales {
            assert!(scale.ticks().len() >= 3, "{scale:?}");
            assert!(scale.place(1.0).is_finite());
        }
    }

    #[test]
    fn far_apart_values_get_factors() {
        assert!(Scale::fitting(ValueUnit::Number, [1.0, 100.0]).is_log());
        assert!(!Scale::fitting(ValueUnit::Number, [10.0, 100.0]).is_log());
    }
}
