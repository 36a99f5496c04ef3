//! Steal time: CPU time that a virtual machine was ready to use and the hypervisor gave to others.
//!
//! It is part of every latency and rate, and the kernel's finer clocks of CPU time may count it as
//! used. So it is read for each measured interval and reported.

use std::fs;

/// Share of all CPU time from which on it is worth a warning.
pub const WORTH_A_WORD: f64 = 0.01;

/// Share of all CPU time from which on a round is void.
pub const VOID: f64 = 0.05;

/// Clock ticks that a share needs; fewer are too imprecise.
const TICKS_MIN: f64 = 200.0;

/// CPU time of the whole machine so far, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) all: f64,
    pub(crate) stolen: f64,
}

impl CpuTime {
    /// Reads it; zero if the kernel does not report it.
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line is the sum of all CPUs: user, nice, system, idle, iowait, irq, softirq,
    /// steal. The fields after it are part of the first two.
    fn parse(text: &str) -> Self {
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or("");
        let ticks: Vec<f64> =
            line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0.0) }
    }

    /// The share stolen since an earlier moment, 0 to 1; 0 of a time that is too short.
    pub(crate) fn stolen_since(&self, before: &Self) -> f64 {
        let all = self.all - before.all;
        if all < TICKS_MIN {
            return 0.0;
        }
        ((self.stolen - before.stolen) / all).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuTime;

    #[test]
    fn the_eighth_field_is_stolen_time_and_guests_are_not_counted_twice() {
        let text = "cpu  100 10 50 700 20 5 15 100 40 2\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(CpuTime::parse(text), CpuTime { all: 1_000.0, stolen: 100.0 });
        assert_eq!(CpuTime::parse("cpu  1 2 3 4\n"), CpuTime { all: 10.0, stolen: 0.0 });
        assert_eq!(CpuTime::parse("intr 5\n"), CpuTime::default());
    }

    #[test]
    fn a_share_is_that_of_the_time_between_and_needs_enough_of_it() {
        let of = |all: f64, stolen: f64| CpuTime { all, stolen };
        let share = of(1_400.0, 180.0).stolen_since(&of(1_000.0, 100.0));
        assert!((share - 0.2).abs() < 1e-9, "{share}");
        let short = of(1_010.0, 105.0).stolen_since(&of(1_000.0, 100.0));
        assert!(short.abs() < 1e-9, "ten ticks say nothing: {short}");
    }

    #[test]
    fn this_machine_tells() {
        let now = CpuTime::read();
        assert!(now.all > 0.0 && now.stolen <= now.all, "{now:?}");
    }
}
