//! Counters of processes that serve together, in a file in memory that all of them hold.
//!
//! Each process has a place in the file and writes its own numbers there; pages add up all places.
//! A process that ends leaves its totals, and the next one in its place goes on from them: a total
//! that shrinks would look like a restart of the whole server.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use super::table::Stats;
use crate::process::Process;

/// Bytes of a place.
const PLACE_BYTES: u64 = 4_096;
/// Numbers of a place: whether its process lives, CPU time, memory, and the counters.
const NUMBERS: usize = Stats::NUMBERS + 3;
const BYTES: usize = NUMBERS * 8;
const _: () = assert!(BYTES as u64 <= PLACE_BYTES);
/// Places are read up to this one.
const PLACES_MAX: u64 = 4_096;

/// This process's place among processes that serve together.
#[derive(Debug)]
pub struct SharedStats {
    file: File,
    place: u64,
    /// What earlier processes in this place have left.
    left: PlaceNumbers,
}

/// The numbers of a place.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceNumbers {
    is_alive: bool,
    stats: Stats,
    process: Process,
}

impl SharedStats {
    /// Takes a place, with what is left there.
    ///
    /// - `file`: the file, which may be empty.
    ///
    /// # Errors
    /// The file cannot be read, or there is no such place.
    pub fn join(file: OwnedFd, place: u32) -> io::Result<Self> {
        let (file, place) = (File::from(file), u64::from(place));
        if place >= PLACES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such place"));
        }
        let left = PlaceNumbers::read(&file, place)?;
        Ok(Self { file, place, left })
    }

    /// Writes this process's numbers for the others.
    ///
    /// - `is_alive`: false at its end, so that only totals stay.
    ///
    /// # Errors
    /// The file cannot be written to.
    pub fn publish(&self, stats: &Stats, process: &Process, is_alive: bool) -> io::Result<()> {
        let mut numbers = PlaceNumbers { is_alive, stats: *stats, process: *process };
        numbers.add_totals(&self.left);
        numbers.write(&self.file, self.place)
    }

    /// Adds the numbers of all other processes to this one's.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sum(&self, stats: &Stats, process: &Process) -> io::Result<(Stats, Process)> {
        let mut sum = PlaceNumbers { is_alive: true, stats: *stats, process: *process };
        sum.add_totals(&self.left);
        let places = self.file.metadata()?.len().div_ceil(PLACE_BYTES).min(PLACES_MAX);
        for place in (0..places).filter(|place| *place != self.place) {
            let other = PlaceNumbers::read(&self.file, place)?;
            sum.add_totals(&other);
            if other.is_alive {
                sum.add_gauges(&other);
            }
        }
        Ok((sum.stats, sum.process))
    }
}

impl PlaceNumbers {
    fn add_totals(&mut self, other: &Self) {
        self.stats.add_totals(&other.stats);
        self.process.cpu_ms += other.process.cpu_ms;
    }

    fn add_gauges(&mut self, other: &Self) {
        self.stats.add_gauges(&other.stats);
        self.process.memory_bytes += other.process.memory_bytes;
    }

    /// What was never written is 0.
    fn read(file: &File, place: u64) -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            let count = file.read_at(&mut bytes[filled..], place * PLACE_BYTES + filled as u64)?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        let mut numbers = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("it has eight bytes")));
        let mut next = || numbers.next().unwrap_or_default();
        let is_alive = next() != 0;
        let process = Process { cpu_ms: next(), memory_bytes: next(), ..Process::default() };
        Ok(Self { is_alive, stats: Stats::of_numbers(next), process })
    }

    fn write(&self, file: &File, place: u64) -> io::Result<()> {
        let Process { cpu_ms, memory_bytes, .. } = self.process;
        let first = [u64::from(self.is_alive), cpu_ms, memory_bytes];
        let counters = self.stats.all().map(|(_, number, _)| number);
        let bytes: Vec<u8> = first.into_iter().chain(counters).flat_map(u64::to_ne_bytes).collect();
        file.write_all_at(&bytes, place * PLACE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(requests: u64, connections_open: u64, uptime_ms: u64) -> Stats {
        Stats { ready: true, requests, connections_open, uptime_ms, ..Stats::default() }
    }

    fn process(cpu_ms: u64) -> Process {
        Process { cpu_ms, memory_bytes: 100, socket_memory_bytes: 7 }
    }

    #[test]
    fn processes_add_up_and_the_dead_leave_their_totals() {
        let file = tempfile::tempfile().expect("a file");
        let join = |place| {
            SharedStats::join(file.try_clone().expect("a descriptor").into(), place)
                .expect("a place")
        };
        let (first, third) = (join(0), join(2));
        first.publish(&stats(5, 2, 300), &process(10), true).expect("a file");
        let (sum, used) = third.sum(&stats(7, 1, 100), &process(20)).expect("a file");
        assert_eq!((sum.requests, sum.connections_open, sum.uptime_ms), (12, 3, 300));
        assert_eq!((used.cpu_ms, used.memory_bytes, used.socket_memory_bytes), (30, 200, 7));
        assert!(sum.ready);
        first.publish(&stats(6, 2, 400), &process(11), false).expect("a file");
        let (sum, used) = third.sum(&stats(7, 1, 200), &process(20)).expect("a file");
        assert_eq!((sum.requests, sum.connections_open), (13, 1), "it has ended");
        assert_eq!((used.cpu_ms, used.memory_bytes), (31, 100));
        let heir = join(0);
        heir.publish(&stats(1, 4, 10), &process(1), true).expect("a file");
        let (sum, used) = third.sum(&stats(7, 1, 300), &process(20)).expect("a file");
        assert_eq!((sum.requests, sum.connections_open), (14, 5), "it goes on from what is there");
        assert_eq!(used.cpu_ms, 32);
    }

    #[test]
    fn one_that_is_not_ready_makes_the_sum_so() {
        let file = tempfile::tempfile().expect("a file");
        let join = |place| SharedStats::join(file.try_clone().expect("one").into(), place);
        let (first, second) = (join(0).expect("a place"), join(1).expect("a place"));
        let held = Stats { ready: false, ..stats(1, 1, 1) };
        first.publish(&held, &process(1), true).expect("a file");
        let sum = || second.sum(&stats(1, 1, 1), &process(1)).expect("a file").0;
        assert!(!sum().ready);
        first.publish(&held, &process(1), false).expect("a file");
        assert!(sum().ready, "it has ended");
        assert!(join(1 << 20).is_err());
    }
}
