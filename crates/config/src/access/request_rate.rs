//! A rate of requests: `10/s`, `600/m`, `1000/h`.

use std::time::Duration;

/// Requests in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// How many, at least one.
    pub requests: u32,
    /// In how long.
    pub per: Duration,
}

/// The most requests of a rate.
const REQUESTS_MAX: u32 = 1_000_000;

impl RequestRate {
    /// Reads a rate; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (requests, unit) = text.split_once('/')?;
        let per = match unit.trim() {
            "s" | "second" => 1,
            "m" | "minute" => 60,
            "h" | "hour" => 3_600,
            _ => return None,
        };
        let requests = requests.trim();
        let is_number = requests.bytes().all(|byte| byte.is_ascii_digit());
        let requests = requests.parse().ok().filter(|_| is_number)?;
        let is_in_range = (1..=REQUESTS_MAX).contains(&requests);
        is_in_range.then(|| Self { requests, per: Duration::from_secs(per) })
    }

    /// Returns the time from one request to the next, in microseconds, at least one.
    pub fn interval_us(self) -> u64 {
        let per_us = u64::try_from(self.per.as_micros()).unwrap_or(u64::MAX);
        (per_us / u64::from(self.requests)).max(1)
    }

    /// Returns how many requests come in a second, at least one.
    pub fn per_second(self) -> u32 {
        let seconds = u32::try_from(self.per.as_secs()).unwrap_or(u32::MAX).max(1);
        (self.requests / seconds).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_in_a_second_a_minute_or_an_hour() {
        let rate = |text: &str| {
            RequestRate::parse(text).map(|rate| (rate.interval_us(), rate.per_second()))
        };
        assert_eq!(rate("10/s"), Some((100_000, 10)));
        assert_eq!(rate("600/m"), Some((100_000, 10)));
        assert_eq!(rate("1 / hour"), Some((3_600_000_000, 1)));
        assert_eq!(rate("1000000/s"), Some((1, 1_000_000)));
        for text in ["", "10", "/s", "0/s", "-1/s", "+1/s", "1/d", "1000001/s", "1.5/s", "10/s/s"] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
