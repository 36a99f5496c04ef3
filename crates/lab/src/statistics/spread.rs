//! The arithmetic: medians, ratios, and confidence intervals.

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Returns the spread of values; `None` without values.
pub(crate) fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    };
    Some(Spread { median, low, high })
}

/// A ratio with its interval, if there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

/// Returns the geometric mean of ratios within rounds, with the 95 % interval of Student's t over
/// their logarithms. One pair or two have no interval: with one degree of freedom it is uselessly
/// wide, or narrow by chance.
///
/// - `pairs`: values with those of the reference. Pairs with a value that is not above 0 are left
///   out.
pub(crate) fn paired(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let positive = pairs.iter().filter(|(value, base)| *value > 0.0 && *base > 0.0);
    let logs: Vec<f64> = positive.map(|(value, base)| (value / base).ln()).collect();
    let Moments { n, mean, variance } = moments(&logs)?;
    let half = variance.filter(|_| n > 2.0).map(|variance| t_95(n - 1.0) * (variance / n).sqrt());
    Some(estimate(mean, half))
}

/// Returns the ratio of the geometric means of two independent samples, with the 95 % interval of
/// Welch's t over their logarithms. A side with a single value has no interval.
pub(crate) fn unpaired(values: &[f64], base: &[f64]) -> Option<Estimate> {
    let logs = |values: &[f64]| -> Vec<f64> {
        values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect()
    };
    let (a, b) = (moments(&logs(values))?, moments(&logs(base))?);
    let half = a.variance.zip(b.variance).map(|(of_a, of_b)| {
        let (a_part, b_part) = (of_a / a.n, of_b / b.n);
        let sum = a_part + b_part;
        let parts = a_part.powi(2) / (a.n - 1.0) + b_part.powi(2) / (b.n - 1.0);
        let freedom = if parts > 0.0 { sum.powi(2) / parts } else { a.n + b.n - 2.0 };
        t_95(freedom) * sum.sqrt()
    });
    Some(estimate(a.mean - b.mean, half))
}

fn estimate(log: f64, half: Option<f64>) -> Estimate {
    let interval = half.map(|half| ((log - half).exp(), (log + half).exp()));
    Estimate { value: log.exp(), interval }
}

struct Moments {
    n: f64,
    mean: f64,
    /// Divides by n - 1; `None` of a single value.
    variance: Option<f64>,
}

fn moments(values: &[f64]) -> Option<Moments> {
    let n = f64::from(u32::try_from(values.len()).ok().filter(|n| *n > 0)?);
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Moments { n, mean, variance: (n > 1.0).then(|| squares / (n - 1.0)) })
}

/// Standard errors to each side that hold 95 % (Student's t, 0.975 quantile).
///
/// - `freedom`: degrees of freedom, 1 and up; rounded down, which makes the interval rather too
///   wide.
fn t_95(freedom: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let within = (1..=TABLE.len()).rev().find(|row| {
        let row = u32::try_from(*row).map_or(f64::MAX, f64::from);
        row <= freedom
    });
    match within {
        _ if freedom > 30.0 => {
            // The first terms of the expansion around the normal distribution; beyond 30 they are
            // exact to three places.
            let z: f64 = 1.959_964;
            z + (z.powi(3) + z) / (4.0 * freedom)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        }
        Some(row) => TABLE[row - 1],
        None => TABLE[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < expected.abs() * 1e-3 + 1e-9, "{found}, {expected}");
    }

    #[test]
    fn the_median_is_in_the_middle_of_odd_and_even_numbers_of_values() {
        let odd = spread(&[3.0, 1.0, 2.0]).expect("values");
        assert_eq!(odd, Spread { median: 2.0, low: 1.0, high: 3.0 });
        let even = spread(&[4.0, 1.0, 2.0, 3.0]).expect("values");
        assert_eq!(even, Spread { median: 2.5, low: 1.0, high: 4.0 });
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (freedom, expected) in
            [(1.0, 12.706), (2.0, 4.303), (9.0, 2.262), (30.0, 2.042), (40.0, 2.021), (120.0, 1.98)]
        {
            near(t_95(freedom), expected);
        }
        near(t_95(2.9), 4.303);
        near(t_95(1e9), 1.96);
    }

    #[test]
    fn pairs_take_out_what_a_whole_round_had_in_common() {
        // The second round was three times slower for both, so the ratio is still 2.
        let of = paired(&[(20.0, 10.0), (60.0, 30.0), (20.0, 10.0)]).expect("pairs");
        near(of.value, 2.0);
        let (low, high) = of.interval.expect("three pairs");
        near(low, 2.0);
        near(high, 2.0);
    }

    #[test]
    fn an_interval_of_pairs_is_that_of_students_t_over_logarithms() {
        // Logarithms 0, 1 and 2: mean 1, sd 1, so 1 ± 4.303 / √3.
        let e = std::f64::consts::E;
        let of = paired(&[(1.0, 1.0), (e, 1.0), (e * e, 1.0)]).expect("pairs");
        near(of.value, e);
        let (low, high) = of.interval.expect("three pairs");
        near(low.ln(), 1.0 - 4.303 / 3f64.sqrt());
        near(high.ln(), 1.0 + 4.303 / 3f64.sqrt());
    }

    #[test]
    fn a_single_pair_has_a_ratio_and_no_interval() {
        let of = paired(&[(3.0, 2.0), (0.0, 1.0), (1.0, 0.0)]).expect("one pair");
        assert_eq!(of, Estimate { value: 1.5, interval: None });
        assert_eq!(paired(&[(0.0, 1.0)]), None);
    }

    #[test]
    fn two_pairs_have_no_interval_however_near_they_are() {
        let of = paired(&[(3.0, 2.0), (3.0, 2.0)]).expect("pairs");
        assert_eq!(of.interval, None);
    }

    #[test]
    fn two_samples_are_compared_by_welch() {
        // Logarithms 0, 1, 2 and 3, 4, 5: difference 3, standard error √(1/3 + 1/3), freedom 4.
        let e = |power: i32| std::f64::consts::E.powi(power);
        let of = unpaired(&[e(3), e(4), e(5)], &[e(0), e(1), e(2)]).expect("values");
        near(of.value.ln(), 3.0);
        let (low, high) = of.interval.expect("three values each");
        let half = 2.776 * (2.0 / 3.0f64).sqrt();
        near(low.ln(), 3.0 - half);
        near(high.ln(), 3.0 + half);
        assert_eq!(unpaired(&[2.0], &[1.0]).expect("values").interval, None);
    }
}
