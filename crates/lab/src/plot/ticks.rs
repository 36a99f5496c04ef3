//! Ticks of an axis: 3 to 10 of them, at round numbers.

/// Maximum number of ticks chosen from finer ones.
const WANTED_MAX: usize = 8;

/// Round numbers from `low` to `high`, in order.
///
/// - `low`, `high`: finite, `low < high`, and apart by more than rounding errors.
pub fn linear(low: f64, high: f64) -> Vec<f64> {
    let step = round_step((high - low) / 8.0);
    // Adding 0 removes the sign of a negative zero.
    let first = (low / step - 1e-9).ceil() + 0.0;
    let last = (high / step + 1e-9).floor();
    let mut ticks = Vec::new();
    let mut at = first;
    while at <= last && ticks.len() < 10 {
        ticks.push((at * step).clamp(low, high));
        at += 1.0;
    }
    ticks
}

/// Round numbers from `low` to `high` for a logarithmic axis, in order: 1, 2 and 5 of each power of
/// ten, or fewer, or those of a linear axis without a power of ten in between.
///
/// - `low`, `high`: positive and finite, `low < high`.
pub fn logarithmic(low: f64, high: f64) -> Vec<f64> {
    for heads in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let ticks = powers(low, high, heads, 1);
        if (3..=WANTED_MAX).contains(&ticks.len()) {
            return ticks;
        }
    }
    for stride in 2..100 {
        let ticks = powers(low, high, &[1.0], stride);
        if ticks.len() < 3 {
            break;
        }
        if ticks.len() <= WANTED_MAX {
            return ticks;
        }
    }
    linear(low, high)
}

/// Powers of two from `low` to `high`, in order, or those of a linear axis if there are too few.
///
/// - `low`, `high`: positive and finite, `low < high`.
pub fn binary(low: f64, high: f64) -> Vec<f64> {
    for stride in 1..100 {
        let exponents = (-60..=60).filter(|power| power % stride == 0);
        let ticks: Vec<f64> = exponents
            .map(|power| 2f64.powi(power))
            .filter(|value| (low..=high).contains(value))
            .collect();
        if ticks.len() < 3 {
            break;
        }
        if ticks.len() <= WANTED_MAX {
            return ticks;
        }
    }
    linear(low, high)
}

/// The next number of 1, 2 or 5 times a power of ten that is at least `least`.
pub fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let head = least / power;
    let rounded = [1.0, 2.0, 5.0].into_iter().find(|round| head <= round + 1e-9);
    power * rounded.unwrap_or(10.0)
}

/// `heads` times each `stride`th power of ten within the range.
fn powers(low: f64, high: f64, heads: &[f64], stride: i32) -> Vec<f64> {
    let mut ticks = Vec::new();
    for power in (-30..=30).filter(|power| power % stride == 0) {
        for head in heads {
            let value = head * 10f64.powi(power);
            if value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9) {
                ticks.push(value.clamp(low, high));
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn are_good(ticks: &[f64], low: f64, high: f64) -> Result<(), TestCaseError> {
        prop_assert!((3..=10).contains(&ticks.len()), "{ticks:?}");
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
        prop_assert!(ticks.iter().all(|tick| (low..=high).contains(tick)), "{ticks:?}");
        Ok(())
    }

    proptest! {
        #[test]
        fn linear_ticks_are_sorted_inside_and_three_to_ten(
            low in -1e9..1e9f64,
            span in 1e-3..1e12f64,
        ) {
            are_good(&linear(low, low + span), low, low + span)?;
        }

        #[test]
        fn logarithmic_ticks_are_sorted_inside_and_three_to_ten(
            power in -3.0..9.0f64,
            factor in 1.01..1e12f64,
        ) {
            let low = 10f64.powf(power);
            are_good(&logarithmic(low, low * factor), low, low * factor)?;
            are_good(&binary(low, low * factor), low, low * factor)?;
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(linear(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(
            logarithmic(100.0, 10_000.0),
            [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0]
        );
        assert_eq!(binary(1024.0, 16384.0), [1024.0, 2048.0, 4096.0, 8192.0, 16384.0]);
        assert!(linear(0.0, 3.0)[0].is_sign_positive(), "“-0” is no label");
        assert_eq!(logarithmic(1.0, 1e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }
}
