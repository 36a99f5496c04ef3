//! Splits the CPUs between servers and load generator.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs of servers and generator, and the reason for the split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuSplit {
    pub(super) servers: Vec<u32>,
    pub(super) generator: Vec<u32>,
    /// The split in a sentence.
    pub(super) sentence: String,
}

/// The CPUs that this process may use.
pub(super) fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    let is_set = |cpu: &u32| usize::try_from(*cpu).is_ok_and(|cpu| set.is_set(cpu));
    (0..u32::try_from(CpuSet::MAX_CPU).unwrap_or(1_024)).filter(is_set).collect()
}

/// Splits the CPUs: servers get the first half, the generator the rest.
///
/// - `servers`, `generator`: the CPUs named in the file, if any.
pub(super) fn divide(
    allowed: &[u32],
    servers: Option<&[u32]>,
    generator: Option<&[u32]>,
) -> Result<CpuSplit, String> {
    for cpu in servers.iter().chain(&generator).flat_map(|cpus| cpus.iter()) {
        if !allowed.contains(cpu) {
            return Err(format!(
                "expected CPUs of {allowed:?}, which this process may use, found {cpu}; correct \
                 server_cpus or generator_cpus"
            ));
        }
    }
    let without = |taken: &[u32]| {
        let left: Vec<u32> = allowed.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
        if left.is_empty() { allowed.to_vec() } else { left }
    };
    let said = |cpus: Option<&[u32]>| cpus.filter(|cpus| !cpus.is_empty()).map(<[u32]>::to_vec);
    let (servers, generator) = match (said(servers), said(generator)) {
        (Some(servers), Some(generator)) => (servers, generator),
        (Some(servers), None) => (servers.clone(), without(&servers)),
        (None, Some(generator)) => (without(&generator), generator),
        (None, None) => {
            let servers = allowed[..allowed.len().div_ceil(2)].to_vec();
            (servers.clone(), without(&servers))
        }
    };
    let shared = servers.iter().filter(|cpu| generator.contains(cpu)).count();
    let sentence = if shared == 0 {
        format!(
            "The server had CPU {}, and the load generator, a process apart, CPU {}: neither took \
             time from the other. A server that starts more workers than it has CPUs has them \
             share.",
            list(&servers),
            list(&generator)
        )
    } else {
        format!(
            "The server had CPU {} and the load generator, a process apart, CPU {}: they shared \
             {shared}, so that the generator took time from the server. Compare servers with each \
             other here, but take no rate for what a server can do.",
            list(&servers),
            list(&generator)
        )
    };
    Ok(CpuSplit { servers, generator, sentence })
}

/// Runs `start` with this thread on those CPUs, so that a process it starts begins there: servers
/// count their CPUs when they start. Empty: all.
pub(super) fn on<T>(cpus: &[u32], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cpus.is_empty() {
        return start();
    }
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, &set(cpus))?;
    let started = start();
    sched_setaffinity(None, &before)?;
    started
}

/// Pins the calling thread to those CPUs, if possible.
pub(super) fn stay(cpus: &[u32]) {
    if !cpus.is_empty() {
        let _ = sched_setaffinity(None, &set(cpus));
    }
}

fn set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    let known = cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok());
    known.filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    set
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_and_more_are_divided_and_one_is_shared() {
        let two = divide(&[0, 1], None, None).expect("divided");
        assert_eq!((two.servers, two.generator), (vec![0], vec![1]));
        let five = divide(&[1, 3, 5, 7, 9], None, None).expect("divided");
        assert_eq!((five.servers, five.generator), (vec![1, 3, 5], vec![7, 9]));
        let one = divide(&[4], None, None).expect("shared");
        assert_eq!((one.servers, one.generator), (vec![4], vec![4]));
        assert!(one.sentence.contains("they shared 1"), "{}", one.sentence);
    }

    #[test]
    fn what_the_file_says_counts_if_it_can_be_had() {
        let said = divide(&[0, 1, 2], Some(&[2]), None).expect("divided");
        assert_eq!((said.servers, said.generator), (vec![2], vec![0, 1]));
        let refusal = divide(&[0, 1], Some(&[7]), None).expect_err("there is none");
        assert!(refusal.contains("found 7"), "{refusal}");
    }

    #[test]
    fn a_process_begins_on_the_cpus_of_its_starter() {
        let mine = allowed();
        let last = *mine.last().expect("at least one");
        let found = on(&[last], || Ok(allowed())).expect("allowed");
        assert_eq!(found, [last]);
        assert_eq!(allowed(), mine);
    }
}
