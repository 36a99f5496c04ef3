//! Resource usage of the generator, and kernel counters of the same interval.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::outcome::{GeneratorUsage, Kernel};
use crate::steal::{self, CpuTime};

/// Share of its time from which on a thread counts as saturated.
const BUSY: f64 = 0.95;
/// Share of its time from which on a thread's wait for a CPU is worth a warning.
const CROWDED: f64 = 0.1;

/// CPU time of one thread over an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadClock {
    began: Option<Instant>,
    wall_s: f64,
    cpu_s: f64,
    /// User and system time, in the kernel's ticks.
    user_ticks: f64,
    system_ticks: f64,
    /// Time in the run queue of a CPU.
    delayed_s: f64,
}

impl ThreadClock {
    /// Begins an interval for the running thread.
    pub(super) fn start() -> Self {
        let [user_ticks, system_ticks] = ticks();
        let began = Some(Instant::now());
        Self {
            began,
            wall_s: 0.0,
            cpu_s: cpu_s(),
            user_ticks,
            system_ticks,
            delayed_s: delayed_s(),
        }
    }

    /// Ends the interval, on the same thread.
    pub(super) fn stop(self) -> Self {
        let [user_ticks, system_ticks] = ticks();
        Self {
            began: None,
            wall_s: self.began.map_or(0.0, |began| began.elapsed().as_secs_f64()),
            cpu_s: cpu_s() - self.cpu_s,
            user_ticks: user_ticks - self.user_ticks,
            system_ticks: system_ticks - self.system_ticks,
            delayed_s: delayed_s() - self.delayed_s,
        }
    }
}

/// Returns the usage of all threads, and a warning if they had to share their CPUs.
///
/// - `steal_share`: the share that a hypervisor took meanwhile. A thread that waits for it does not
///   run, and would seem idle.
pub(super) fn generator(
    threads: &[ThreadClock],
    steal_share: f64,
) -> (GeneratorUsage, Option<String>) {
    let sum = |of: fn(&ThreadClock) -> f64| threads.iter().map(of).sum::<f64>();
    let (cpu_s, wall_s) = (sum(|thread| thread.cpu_s), sum(|thread| thread.wall_s));
    let (user, system) = (sum(|thread| thread.user_ticks), sum(|thread| thread.system_ticks));
    let user_share = if user + system > 0.0 { user / (user + system) } else { 0.5 };
    let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
    let busiest =
        threads.iter().map(|thread| share(thread.cpu_s, thread.wall_s)).fold(0.0, f64::max);
    let busy_or_delayed = threads
        .iter()
        .map(|thread| share(thread.cpu_s + thread.delayed_s, thread.wall_s))
        .fold(0.0, f64::max);
    let bottleneck = busiest >= BUSY;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let verdict = if bottleneck {
        format!(
            "The generator was the bottleneck: its busiest thread ran {} of the time. The server \
             can do more than this; give the generator more threads or another machine.",
            percent(busiest)
        )
    } else if steal_share >= steal::VOID {
        format!(
            "Whether the generator was the bottleneck is unknown: the hypervisor took {} of \
             the machine's CPU time.",
            percent(steal_share)
        )
    } else {
        format!(
            "The generator was not the bottleneck: its busiest thread ran {} of the time.",
            percent(busiest)
        )
    };
    let delayed = share(sum(|thread| thread.delayed_s), wall_s);
    let crowded = (delayed >= CROWDED || busy_or_delayed >= BUSY && !bottleneck).then(|| {
        format!(
            "The generator's threads waited for a CPU {} of the time: it shares CPUs with \
             the server or with others, so latencies hold that wait too. Pin them apart, or use \
             two machines.",
            percent(delayed)
        )
    });
    let generator = GeneratorUsage {
        cpu_s,
        cpu_user_s: cpu_s * user_share,
        cpu_system_s: cpu_s * (1.0 - user_share),
        cpu_share: share(cpu_s, wall_s),
        busiest_thread_share: busiest,
        bottleneck,
        verdict,
    };
    (generator, crowded)
}

#[expect(clippy::cast_precision_loss, reason = "seconds of CPU time stay far below 2^53 ns")]
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// User and system time of the running thread, in ticks.
fn ticks() -> [f64; 2] {
    let text = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The name in parentheses may hold any character.
    let rest = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    [11, 12].map(|at| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0.0))
}

/// Seconds that the running thread has waited for a CPU; 0 where the kernel does not report it.
fn delayed_s() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}

/// Counters of the machine at one moment.
#[derive(Debug, Default)]
pub(super) struct MachineSnapshot {
    counters: Counters,
    cpu: CpuTime,
}

/// Counters of the machine over an interval.
#[derive(Debug, Default)]
pub(super) struct MachineDelta {
    pub(super) kernel: Kernel,
    pub(super) steal_share: f64,
}

impl MachineSnapshot {
    pub(super) fn read() -> Self {
        Self { counters: Counters::read(), cpu: CpuTime::read() }
    }

    pub(super) fn since(&self, before: &Self) -> MachineDelta {
        let kernel = self.counters.since(&before.counters);
        MachineDelta { kernel, steal_share: self.cpu.stolen_since(&before.cpu) }
    }
}

/// The kernel's network counters at one moment.
#[derive(Debug, Default)]
pub(crate) struct Counters(HashMap<String, u64>);

impl Counters {
    pub(crate) fn read() -> Self {
        let mut found = HashMap::new();
        for path in ["/proc/net/snmp", "/proc/net/netstat"] {
            take_counters(&fs::read_to_string(path).unwrap_or_default(), &mut found);
        }
        Self(found)
    }

    /// The difference to an earlier moment.
    pub(crate) fn since(&self, before: &Self) -> Kernel {
        let of = |name: &str| {
            let at = |counters: &Self| counters.0.get(name).copied().unwrap_or(0);
            at(self).saturating_sub(at(before))
        };
        Kernel {
            retransmits: of("RetransSegs"),
            listen_overflows: of("ListenOverflows"),
            listen_drops: of("ListenDrops"),
            syn_cookies: of("SyncookiesSent"),
            resets: of("OutRsts"),
        }
    }
}

/// Parses pairs of lines: names, then values.
fn take_counters(text: &str, found: &mut HashMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
        for (name, value) in names.zip(values).skip(1) {
            if let Ok(value) = value.parse() {
                found.insert(name.to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, ThreadClock, generator, take_counters};
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    #[test]
    fn counters_are_read_by_name() {
        let mut found = HashMap::default();
        take_counters("Tcp: RetransSegs OutRsts\nTcp: 7 9\nUdp: A\nUdp: -1\n", &mut found);
        let now = Counters(found);
        let since = now.since(&Counters::default());
        assert_eq!((since.retransmits, since.resets, since.listen_drops), (7, 9, 0));
    }

    #[test]
    fn a_thread_that_runs_all_the_time_is_a_bottleneck() {
        let clock = ThreadClock::start();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let clock = clock.stop();
        assert!(clock.cpu_s > 0.001 && clock.wall_s >= 0.05, "{clock:?}");
        let full = ThreadClock { wall_s: 1.0, cpu_s: 0.96, ..ThreadClock::default() };
        let half = ThreadClock { wall_s: 1.0, cpu_s: 0.5, ..ThreadClock::default() };
        let (found, _) = generator(&[full, half], 0.0);
        assert!(found.bottleneck && found.verdict.contains("96 %"), "{found:?}");
        let crowded = ThreadClock { delayed_s: 0.4, ..half };
        let (found, warning) = generator(&[half, crowded], 0.0);
        assert!(!found.bottleneck);
        assert!(warning.expect("it waited").contains("20 %"));
        let (found, _) = generator(&[half], 0.3);
        assert!(found.verdict.contains("is unknown"), "what is stolen is not idle: {found:?}");
    }
}
