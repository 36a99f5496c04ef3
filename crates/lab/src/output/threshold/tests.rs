use super::*;
use crate::output::tests::outcome;
use proptest::prelude::*;

fn judged(text: &str) -> ThresholdResult {
    Threshold::parse(text).expect(text).evaluate(&outcome())
}

#[test]
fn thresholds_are_read_and_compared() {
    let struck = |text: &str| ThresholdResult::Struck(text.to_owned());
    for (text, expected) in [
        ("p99>5ms", struck("8.191 ms")),
        ("p99>9ms", ThresholdResult::Kept),
        ("p99 > 8191us", ThresholdResult::Kept),
        ("p99>=8191us", struck("8.191 ms")),
        ("  p50 < 1s ", struck("900 us")),
        ("p50<=899µs", ThresholdResult::Kept),
        ("max>1s", struck("1.200 s")),
        ("min>0", struck("120 us")),
        ("mean>=1.25ms", struck("1.250 ms")),
        ("errors>0", struck("17")),
        ("errors>=18", ThresholdResult::Kept),
        ("error_rate>1%", struck("1.7 %")),
        ("error_rate>0.02", ThresholdResult::Kept),
        ("rps<100", struck("98.30 /s")),
        ("rate<98/s", ThresholdResult::Kept),
    ] {
        assert_eq!(judged(text), expected, "{text}");
    }
}

#[test]
fn a_percentile_that_is_not_listed_comes_from_the_histogram() {
    let found = judged("p37>0");
    assert_eq!(found, ThresholdResult::Struck("700 us".to_owned()), "{found:?}");
}

#[test]
fn without_an_answer_there_is_nothing_to_compare() {
    let mut none = outcome();
    none.latency_us = crate::outcome::Latency::default();
    none.requests = 0;
    none.errors = crate::outcome::Errors::default();
    let evaluate = |text: &str| Threshold::parse(text).expect(text).evaluate(&none);
    assert_eq!(evaluate("p99>5ms"), ThresholdResult::Nothing);
    assert_eq!(evaluate("error_rate>1%"), ThresholdResult::Nothing);
    assert_eq!(evaluate("errors>0"), ThresholdResult::Kept);
}

#[test]
fn a_request_without_a_response_is_an_error() {
    let mut silent = outcome();
    silent.errors = crate::outcome::Errors::default();
    silent.unanswered = silent.requests;
    let evaluate = |text: &str| Threshold::parse(text).expect(text).evaluate(&silent);
    let count = silent.requests.to_string();
    assert_eq!(evaluate("errors>0"), ThresholdResult::Struck(count));
    assert_eq!(evaluate("error_rate>49%"), ThresholdResult::Struck("50.0 %".to_owned()));
}

#[test]
fn a_mistake_names_its_place_and_what_belongs_there() {
    for (text, at, part) in [
        ("", 1, "one of >, >=, < and <="),
        ("p99", 4, "one of >, >=, < and <="),
        ("p99=5ms", 4, "one of >, >=, < and <="),
        ("p101>5ms", 1, "a percentile"),
        (" latncy>5ms", 2, "found \"latncy\""),
        ("p99>", 5, "a number"),
        ("p99>fast", 5, "a number"),
        ("p99>-1ms", 5, "a number"),
        ("p99>1.2.3ms", 5, "a number"),
        ("p99>5", 6, "a unit: us, ms or s"),
        ("p99>5 minutes", 6, "a unit: us, ms or s"),
        ("errors>5ms", 9, "a count without a unit"),
        ("error_rate>5ms", 13, "a share such as 0.01 or 1%"),
        ("rps<5%", 6, "requests per second"),
    ] {
        let error = Threshold::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_or_refused_with_a_place_in_it(text in any::<String>()) {
        if let Err(error) = Threshold::parse(&text) {
            prop_assert!(error.at >= 1 && error.at <= text.chars().count() + 1, "{error}");
        }
    }

    #[test]
    fn near_misses_are_read_or_refused_with_a_place_in_them(
        text in "[ pemraxinot_]{0,8}[<>=]{0,3}[ 0-9.]{0,4}[mus%/µ ]{0,3}",
    ) {
        if let Err(error) = Threshold::parse(&text) {
            prop_assert!(error.at >= 1 && error.at <= text.chars().count() + 1, "{error}");
        }
    }

    #[test]
    fn units_are_powers_of_a_thousand(number in 1_u32..1_000_000) {
        let read = |unit: &str| {
            let text = format!("p99>{number}{unit}");
            Threshold::parse(&text).expect("it is right").bound.to_bits()
        };
        prop_assert_eq!(read("us"), f64::from(number).to_bits());
        prop_assert_eq!(read("ms"), (f64::from(number) * 1e3).to_bits());
        prop_assert_eq!(read("s"), (f64::from(number) * 1e6).to_bits());
    }
}
