//! The order in which requests of several weights are sent.

/// Maximum length of a round; [`LoadPlan::check`](super::LoadPlan::check) refuses larger weights.
pub(super) const ROUND_MAX: u64 = 100_000;

/// Returns the length of a round with these weights.
pub(super) fn round_len(weights: impl Iterator<Item = u32> + Clone) -> u64 {
    let divisor = weights.clone().fold(0, greatest_common).max(1);
    weights.map(|weight| u64::from(weight / divisor)).sum()
}

/// Greatest common divisor of two weights.
pub(crate) fn greatest_common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_as_long_as_its_weights_need() {
        assert_eq!(round_len([20, 10].into_iter()), 3);
    }
}
