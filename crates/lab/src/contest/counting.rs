//! Counts what can be counted exactly: system calls by strace, attached to a running server, and
//! instructions by callgrind, which runs the server itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::file::{ContenderSpec, CountKind, GeneratorKind, ModelSpec, ScenarioSpec};
use super::runner::{ReadyServer, ServerRunner};
use super::tool;
use super::unmeasured::{Unmeasured, failed};
use crate::figures::real;
use crate::record::{Fate, RunRecord};

/// Time-outs of attaching to a server, and of its end under callgrind.
const ATTACH: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(30);
/// A server under callgrind starts some fifty times slower.
const READY: Duration = Duration::from_mins(1);
const TICK: Duration = Duration::from_millis(10);
/// Longest time of the load of a count.
const LOAD: Duration = Duration::from_mins(3);
/// The shorter of the two lives under callgrind has this part of the requests.
const FEW: u64 = 10;

impl ServerRunner<'_> {
    /// Counts what a scenario asks for, into the run. Where that fails, the run has a warning.
    pub(super) fn count(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        scenario: &ScenarioSpec,
        run: &mut RunRecord,
    ) -> Result<(), Unmeasured> {
        for kind in &scenario.counts {
            let counted = match kind {
                CountKind::SystemCalls => self.system_calls(contender, ready, scenario),
                CountKind::Instructions => self.instructions(contender, scenario),
            };
            let count = match counted {
                Ok(count) => Some(count),
                Err(Unmeasured::Interrupted) => return Err(Unmeasured::Interrupted),
                Err(Unmeasured::Fate(fate)) => {
                    let why = reason(fate);
                    let warning = format!("Its {} were not counted: {why}.", kind.word());
                    run.outcome.iter_mut().for_each(|of| of.warnings.push(warning.clone()));
                    None
                }
            };
            match kind {
                CountKind::SystemCalls => run.usage.system_calls_per_request = count,
                CountKind::Instructions => run.usage.instructions_per_request = count,
            }
        }
        Ok(())
    }

    /// System calls of all threads of a running server, for each request.
    fn system_calls(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        scenario: &ScenarioSpec,
    ) -> Result<f64, Unmeasured> {
        find("strace")?;
        let output = self.work(contender)?.join("strace.txt");
        let mut tree = ready.server.tree().clone();
        tree.look();
        let ids: Vec<i32> = tree.known().iter().map(|member| member.id).collect();
        let tracer = Tracer::attach(&ids, &output)
            .map_err(|error| failed(format!("strace cannot be attached: {error}")))?;
        let requests = self.load(contender, ready, scenario, scenario.count_requests)?;
        tracer.end();
        let text = fs::read_to_string(&output).unwrap_or_default();
        match calls(&text) {
            0 => Err(failed("strace counted nothing")),
            calls => Ok(real(calls) / real(requests)),
        }
    }

    /// Instructions in user space for each request: the difference between two lives.
    fn instructions(
        &self,
        contender: &ContenderSpec,
        scenario: &ScenarioSpec,
    ) -> Result<f64, Unmeasured> {
        find("valgrind")?;
        let many = scenario.count_requests;
        let few = many / FEW;
        let count = |requests| self.life(contender, scenario, requests);
        let ((few, of_few), (many, of_many)) = (count(few)?, count(many)?);
        if of_many <= of_few || many <= few {
            return Err(failed("the longer life has no more instructions than the shorter one"));
        }
        Ok(real(of_many - of_few) / real(many - few))
    }

    /// Runs a server under callgrind; returns the requests that it served, and its instructions.
    fn life(
        &self,
        contender: &ContenderSpec,
        scenario: &ScenarioSpec,
        requests: u64,
    ) -> Result<(u64, u64), Unmeasured> {
        let folder = self.work(contender)?;
        for path in outputs(&folder) {
            // It is of the life before.
            let _ = fs::remove_file(path);
        }
        let mut traced = contender.clone();
        let file = format!("--callgrind-out-file={}/callgrind.%p", folder.display());
        let words = ["valgrind", "--tool=callgrind", "--trace-children=yes", &file];
        traced.command = words.map(str::to_owned).into_iter().chain(traced.command).collect();
        traced.ready_timeout = traced.ready_timeout.max(READY);
        traced.stop_timeout = END;
        let ready = self.start(&traced, scenario)?;
        let served = self.load(contender, &ready, scenario, requests)?;
        // It writes its counts when it ends.
        drop(ready);
        let texts = outputs(&folder).into_iter().filter_map(|path| fs::read_to_string(path).ok());
        match texts.map(|text| instructions(&text)).sum() {
            0 => Err(failed("callgrind wrote nothing: the server could only be killed")),
            count => Ok((served, count)),
        }
    }

    /// Sends a number of requests with the built-in generator; returns how many were served.
    fn load(
        &self,
        contender: &ContenderSpec,
        ready: &ReadyServer,
        scenario: &ScenarioSpec,
        requests: u64,
    ) -> Result<u64, Unmeasured> {
        let mut load = scenario.clone();
        if load.generator != GeneratorKind::Own {
            load.arguments.clear();
        }
        (load.generator, load.model, load.rate) = (GeneratorKind::Own, ModelSpec::Closed, None);
        (load.requests, load.duration, load.warm_up) = (Some(requests), LOAD, Duration::ZERO);
        match self.generate(contender, ready, &load)? {
            Ok(outcome) if outcome.requests > 0 && outcome.errors.total() == 0 => {
                Ok(outcome.requests)
            }
            Ok(outcome) => {
                let (right, wrong) = (outcome.requests, outcome.errors.total());
                Err(failed(format!("{right} requests succeeded and {wrong} failed")))
            }
            Err(why) => Err(failed(why)),
        }
    }
}

fn reason(fate: Fate) -> String {
    match fate {
        Fate::Ran => "unknown".to_owned(),
        Fate::NotInstalled(why) | Fate::Failed(why) | Fate::Unequal(why) => why,
    }
}

fn find(program: &str) -> Result<(), Unmeasured> {
    if tool::find(program) {
        return Ok(());
    }
    Err(failed(format!("there is no program {program}; to install it: apt-get install {program}")))
}

/// A strace that is attached to processes; it ends when dropped.
struct Tracer {
    child: Child,
}

impl Tracer {
    /// Attaches to processes with all their threads, and waits until it is.
    fn attach(ids: &[i32], output: &Path) -> io::Result<Self> {
        let mut command = Command::new("strace");
        command.args(["-c", "-f", "-qq", "-o"]).arg(output);
        for id in ids {
            command.arg("-p").arg(id.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut tracer = Self { child: command.spawn()? };
        let until = Instant::now() + ATTACH;
        while !ids.iter().all(|id| is_traced(*id)) {
            if let Some(status) = tracer.child.try_wait()? {
                return Err(io::Error::other(format!("it ended: {status}")));
            }
            if Instant::now() > until {
                return Err(io::Error::other("it took too long"));
            }
            std::thread::sleep(TICK);
        }
        Ok(tracer)
    }

    /// Ends it, so that it writes its table.
    fn end(mut self) {
        self.signal(Signal::INT);
        let until = Instant::now() + ATTACH;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(TICK);
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended meanwhile, which is as good.
            let _ = kill_process(id, signal);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether every thread of a process is traced.
fn is_traced(id: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return false };
    threads.flatten().all(|thread| {
        let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let tracer = text.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    })
}

/// The sum of the column `calls` of strace's table.
fn calls(table: &str) -> u64 {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_row =
            words.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let is_total = words.last() == Some(&"total");
        (is_row && !is_total).then(|| words.get(3)?.parse::<u64>().ok()).flatten()
    };
    table.lines().filter_map(row).sum()
}

/// The files that callgrind has written.
fn outputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("callgrind."))
    };
    entries.filter(is_one).collect()
}

/// The instructions of one file of callgrind: its line `totals: N`.
fn instructions(text: &str) -> u64 {
    let line = |label: &str| text.lines().find_map(|line| line.strip_prefix(label));
    let total = line("totals: ").or_else(|| line("summary: "));
    total.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_table_are_added_up() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.600000           3    200000           recvfrom
 40.00    0.400000           4    100001         7 sendto
------ ----------- ----------- --------- --------- ----------------
100.00    1.000000           3    300001         7 total
";
        assert_eq!(calls(table), 300_001);
        assert_eq!(calls("strace: no such process"), 0);
    }

    #[test]
    fn instructions_are_the_totals_of_a_file() {
        assert_eq!(instructions("version: 1\nevents: Ir\nfn=main\n1 5\n\ntotals: 12345\n"), 12_345);
        assert_eq!(instructions("events: Ir\nsummary: 77\n"), 77);
        assert_eq!(instructions(""), 0);
    }
}
