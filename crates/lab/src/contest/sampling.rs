//! Resource usage of a server under load: a thread reads `/proc` and adds up its processes.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::cpus;
use super::process_tree::{ProcStat, ProcessIdentity, ProcessTree};
use crate::record::{Sample, Usage};
use crate::steal::{self, CpuTime};

/// Interval of readings.
const PERIOD: Duration = Duration::from_millis(150);
/// Interval of scans of all processes of the machine.
const LOOK: Duration = Duration::from_millis(900);
/// Threads of a process whose run time is read one by one.
const FINE_THREADS_MAX: u64 = 64;
/// Maximum number of readings; a longer run is read less often.
const READINGS_MAX: u32 = 2_000;

/// Usage of a server at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageReading {
    /// Seconds since 1970-01-01.
    at: f64,
    /// CPU time, as precise as the kernel reports it.
    cpu_s: f64,
    /// CPU time in clock ticks, which separate user and system time.
    user_s: f64,
    system_s: f64,
    memory_bytes: u64,
    descriptors: u64,
    threads: u64,
    processes: u64,
    /// CPU time of the whole machine.
    machine: CpuTime,
}

/// Context switches so far: voluntary and forced.
pub(super) type Switches = (u64, u64);

/// The thread that reads usage.
#[derive(Debug)]
pub(super) struct Sampler {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<UsageReading>>>,
    before: Switches,
    tree: ProcessTree,
}

impl Sampler {
    /// Starts the thread. The first reading is made before it returns.
    ///
    /// - `expected`: the expected duration.
    /// - `on`: the CPUs of the thread, which are not the server's.
    pub(super) fn start(
        mut tree: ProcessTree,
        expected: Duration,
        on: &[u32],
    ) -> std::io::Result<Self> {
        tree.look();
        let first = UsageReading::of(tree.known());
        let before = switches(tree.known());
        let end = Arc::new(AtomicBool::new(false));
        let period = PERIOD.max(expected / READINGS_MAX);
        let (asked, kin, on) = (Arc::clone(&end), tree.clone(), on.to_vec());
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            cpus::stay(&on);
            sample(kin, first, period, &asked)
        })?;
        Ok(Self { end, thread: Some(thread), before, tree })
    }

    /// Stops with a last reading, and returns the usage.
    ///
    /// - `window`: begin and end of measuring, seconds since 1970-01-01; without it all of it
    ///   counts.
    pub(super) fn finish(mut self, window: Option<(f64, f64)>) -> Usage {
        self.tree.look();
        let after = switches(self.tree.known());
        self.end.store(true, Ordering::Relaxed);
        let readings = self.thread.take().and_then(|thread| thread.join().ok());
        let mut usage = usage(&readings.unwrap_or_default(), window);
        usage.switches_voluntary = after.0.saturating_sub(self.before.0);
        usage.switches_forced = after.1.saturating_sub(self.before.1);
        usage
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

fn sample(
    mut tree: ProcessTree,
    first: UsageReading,
    period: Duration,
    end: &AtomicBool,
) -> Vec<UsageReading> {
    let mut readings = vec![first];
    let mut looked = Instant::now();
    loop {
        let until = Instant::now() + period;
        while !end.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10).min(period));
        }
        let last = end.load(Ordering::Relaxed);
        if last || looked.elapsed() > LOOK {
            tree.look();
            looked = Instant::now();
        }
        let reading = UsageReading::of(tree.known());
        // A dead server has no counters any more; its last reading counts.
        if reading.processes > 0 {
            readings.push(reading);
        }
        if last || readings.len() > 2 * READINGS_MAX as usize {
            return readings;
        }
    }
}

impl UsageReading {
    fn of(members: &[ProcessIdentity]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let machine = CpuTime::read();
        let mut sum = Self { at: now.as_secs_f64(), machine, ..Self::default() };
        let per_s = float(rustix::param::clock_ticks_per_second());
        for id in members.iter().map(|member| member.id) {
            let Some(stat) = ProcStat::read(id) else { continue };
            let (user_s, system_s) =
                (float(stat.user_ticks) / per_s, float(stat.system_ticks) / per_s);
            let ticks_s = user_s + system_s;
            sum.cpu_s += run_s(id, stat.threads).map_or(ticks_s, |run_s| run_s.max(ticks_s));
            sum.user_s += user_s;
            sum.system_s += system_s;
            sum.threads += stat.threads;
            sum.processes += 1;
            sum.memory_bytes += memory(id);
            sum.descriptors += descriptors(id);
        }
        sum
    }

    /// Interpolates between two readings; all counters grow linearly.
    fn between(self, other: Self, at: f64) -> Self {
        let span = other.at - self.at;
        let share = if span > 0.0 { ((at - self.at) / span).clamp(0.0, 1.0) } else { 0.0 };
        self.with(other, |from, to| from + (to - from) * share).moved_to(at)
    }

    /// Extrapolates from the reading before this one and this one, at most to the next one.
    fn beyond(self, before: Self, next: Self, at: f64) -> Self {
        let span = self.at - before.at;
        let share = if span > 0.0 { (at - self.at) / span } else { 0.0 };
        let grown = before.with(self, |from, to| to + (to - from) * share);
        grown.with(next, f64::min).moved_to(at)
    }

    /// Combines the counters of two readings; all else is that of the other one.
    fn with(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            cpu_s: of(self.cpu_s, other.cpu_s),
            user_s: of(self.user_s, other.user_s),
            system_s: of(self.system_s, other.system_s),
            machine: CpuTime {
                all: of(self.machine.all, other.machine.all),
                stolen: of(self.machine.stolen, other.machine.stolen),
            },
            ..other
        }
    }

    fn moved_to(self, at: f64) -> Self {
        Self { at, ..self }
    }
}

/// Run time of a process's threads in seconds: precise to the nanosecond, where clock ticks have
/// ten milliseconds. It lacks ended threads, which ticks include.
fn run_s(id: i32, threads: u64) -> Option<f64> {
    if threads > FINE_THREADS_MAX {
        return None;
    }
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten() {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(float(sum) / 1e9)
}

/// Returns the memory of a server now.
pub(super) fn memory_of(mut tree: ProcessTree) -> u64 {
    tree.look();
    tree.known().iter().map(|member| memory(member.id)).sum()
}

/// The proportional set size: memory shared by processes counts once.
fn memory(id: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    field(&text, "Pss:").unwrap_or_default() * 1_024
}

/// Since Linux 6.2 the size of the folder is the number of its entries; before, they are counted.
fn descriptors(id: i32) -> u64 {
    let folder = format!("/proc/{id}/fd");
    let entries = fs::metadata(&folder).map_or(0, |entry| entry.len());
    if entries > 0 {
        return entries;
    }
    fs::read_dir(&folder).map_or(0, |entries| entries.count() as u64)
}

/// Context switches of all live threads.
fn switches(members: &[ProcessIdentity]) -> Switches {
    let mut sum = (0, 0);
    for member in members {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", member.id)) else { continue };
        for thread in threads.flatten() {
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            sum.0 += field(&text, "voluntary_ctxt_switches:").unwrap_or_default();
            sum.1 += field(&text, "nonvoluntary_ctxt_switches:").unwrap_or_default();
        }
    }
    sum
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Reduces the readings to a usage.
fn usage(readings: &[UsageReading], window: Option<(f64, f64)>) -> Usage {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Usage::default();
    };
    let (from, to) = window.unwrap_or((first.at, last.at));
    let (begin, end) = (at(readings, from), at_end(readings, from, to));
    let steal_share = end.machine.stolen_since(&begin.machine);
    let cpu_of = clock(steal_share);
    let most = |of: fn(&UsageReading) -> u64| readings.iter().map(of).max().unwrap_or_default();
    let sample = |reading: &UsageReading| Sample {
        at_s: reading.at - from,
        cpu_s: (cpu_of(reading) - cpu_of(&begin)).max(0.0),
        memory_bytes: reading.memory_bytes,
        descriptors: reading.descriptors,
        threads: reading.threads,
    };
    let grown = |of: fn(&UsageReading) -> f64| (of(&end) - of(&begin)).max(0.0);
    let cpu_s = grown(cpu_of);
    let (user_s, system_s) = (grown(|reading| reading.user_s), grown(|reading| reading.system_s));
    // Less than a tick cannot be divided.
    let user = if user_s + system_s > 0.0 { user_s / (user_s + system_s) } else { 0.5 };
    Usage {
        cpu_user_s: cpu_s * user,
        cpu_system_s: cpu_s * (1.0 - user),
        is_of_window: window.is_some(),
        steal_share,
        memory_before_bytes: first.memory_bytes,
        memory_peak_bytes: most(|reading| reading.memory_bytes),
        descriptors_peak: most(|reading| reading.descriptors),
        threads_peak: most(|reading| reading.threads),
        processes: most(|reading| reading.processes),
        samples: readings.iter().filter(|reading| reading.at >= from).map(sample).collect(),
        ..Usage::default()
    }
}

/// Selects the clock of CPU time: thread run times are finer, but include steal time; ticks do not.
fn clock(steal_share: f64) -> fn(&UsageReading) -> f64 {
    if steal_share >= steal::WORTH_A_WORD {
        |reading| reading.user_s + reading.system_s
    } else {
        |reading| reading.cpu_s
    }
}

/// Interpolates the reading of a moment.
fn at(readings: &[UsageReading], moment: f64) -> UsageReading {
    let behind = readings.iter().position(|reading| reading.at >= moment);
    match behind {
        Some(0) => readings[0],
        Some(behind) => readings[behind - 1].between(readings[behind], moment),
        None => readings[readings.len() - 1],
    }
}

/// Returns the reading of the end of a window. The load stops there, so that most of what is used
/// until the next reading is of the time before: it is extrapolated from the last two readings
/// within the window, where there are two.
fn at_end(readings: &[UsageReading], from: f64, to: f64) -> UsageReading {
    let behind = readings.iter().position(|reading| reading.at >= to);
    match behind.map(|behind| (&readings[..behind], readings[behind])) {
        Some(([.., before, last], next)) if before.at >= from && next.at > to => {
            last.beyond(*before, next, to)
        }
        _ => at(readings, to),
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a run are far below 2^52")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: f64, cpu_s: f64, memory_bytes: u64) -> UsageReading {
        UsageReading {
            at,
            cpu_s,
            user_s: cpu_s,
            memory_bytes,
            processes: 1,
            ..UsageReading::default()
        }
    }

    #[test]
    fn what_was_used_in_a_window_lies_between_its_readings() {
        let readings = [reading(10.0, 1.0, 5), reading(11.0, 2.0, 50), reading(12.0, 4.0, 9)];
        let usage = usage(&readings, Some((10.5, 11.5)));
        assert!((usage.cpu_user_s - 1.5).abs() < 1e-9);
        assert_eq!((usage.memory_before_bytes, usage.memory_peak_bytes), (5, 50));
        assert_eq!(usage.samples.len(), 2);
        assert!((usage.samples[0].at_s - 0.5).abs() < 1e-9);
        assert!((usage.samples[0].cpu_s - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_load_of_a_window_stops_at_its_end() {
        // Half a second of CPU each second until 11.1, and none after it.
        let used = |at: f64| reading(at, (at.min(11.1) - 10.0) * 0.5, 5);
        let readings = [10.0, 10.15, 10.3, 10.9, 11.05, 11.2, 11.35].map(used);
        let cpu_s = |to: f64| usage(&readings, Some((10.1, to))).cpu_user_s;
        assert!((cpu_s(11.1) - 0.5).abs() < 1e-9, "{}", cpu_s(11.1));
        assert!((cpu_s(11.05) - 0.475).abs() < 1e-9, "{}", cpu_s(11.05));
        assert!((cpu_s(11.19) - 0.5).abs() < 1e-9, "no more than was read: {}", cpu_s(11.19));
    }

    #[test]
    fn without_a_window_everything_counts() {
        let readings = [reading(10.0, 1.0, 5), reading(12.0, 4.0, 9)];
        assert!((usage(&readings, None).cpu_user_s - 3.0).abs() < 1e-9);
        assert_eq!(usage(&[], None), Usage::default());
    }

    #[test]
    fn ticks_divide_what_was_used_and_do_not_add_to_it() {
        let mut readings = [reading(10.0, 0.025, 5), reading(11.0, 0.033, 5)];
        (readings[0].user_s, readings[0].system_s) = (0.02, 0.0);
        (readings[1].user_s, readings[1].system_s) = (0.02, 0.01);
        let used = usage(&readings, None);
        assert!((used.cpu_user_s + used.cpu_system_s - 0.008).abs() < 1e-9, "{used:?}");
        assert!(used.cpu_user_s.abs() < 1e-9, "all of the ticks are the kernel's: {used:?}");
        readings[1].system_s = 0.0;
        let used = usage(&readings, None);
        assert!((used.cpu_user_s - 0.004).abs() < 1e-9);
        assert!((used.cpu_system_s - 0.004).abs() < 1e-9, "{used:?}");
    }

    #[test]
    fn stolen_time_is_read_off_and_ticks_are_believed_then() {
        let at = |at: f64, cpu_s: f64, ticks_s: f64, stolen: f64| UsageReading {
            at,
            cpu_s,
            user_s: ticks_s,
            processes: 1,
            machine: CpuTime { all: at * 200.0, stolen },
            ..UsageReading::default()
        };
        let quiet = usage(&[at(10.0, 1.0, 1.0, 5.0), at(20.0, 3.004, 3.0, 6.0)], None);
        assert!((quiet.cpu_user_s - 2.004).abs() < 1e-9 && quiet.steal_share < 0.001, "{quiet:?}");
        let stolen = usage(&[at(10.0, 1.0, 1.0, 5.0), at(20.0, 9.0, 3.0, 805.0)], None);
        assert!((stolen.steal_share - 0.4).abs() < 1e-9, "{stolen:?}");
        assert!((stolen.cpu_user_s - 2.0).abs() < 1e-9, "{stolen:?}");
        assert!((stolen.samples[1].cpu_s - 2.0).abs() < 1e-9, "{stolen:?}");
    }

    #[test]
    fn this_process_can_be_read() {
        let id = i32::try_from(std::process::id()).expect("process ids are small");
        assert!(memory(id) > 100_000);
        assert!(descriptors(id) >= 3);
        assert!(ProcStat::read(id).is_some_and(|stat| stat.threads >= 1));
        assert_eq!(field("a:\t5 kB\nb: 6\n", "b:"), Some(6));
    }

    #[test]
    fn time_is_told_finer_than_by_ticks() {
        let id = i32::try_from(std::process::id()).expect("process ids are small");
        let Some(before) = run_s(id, 1) else {
            println!("skipped: this kernel does not report how long threads ran");
            return;
        };
        // The kernel may add up some milliseconds later. (Other tests run in this process too, and
        // their threads end.)
        let (began, mut ran) = (Instant::now(), 0.0);
        while ran == 0.0 {
            assert!(began.elapsed() < Duration::from_secs(10), "no thread has run for 10 s");
            std::hint::spin_loop();
            // It is unknown where a thread has ended while it was asked for.
            ran = run_s(id, 1).map_or(0.0, |now| now - before);
        }
        let ticks = ran * 100.0;
        assert!((ticks - ticks.round()).abs() > f64::EPSILON, "{ran} s");
        assert_eq!(run_s(id, FINE_THREADS_MAX + 1), None);
    }
}
