//! The processes of a server: the first one and all its descendants.
//!
//! A process belongs to it by group, by parent, or by a variable in its inherited environment,
//! which a daemon keeps when it leaves both. No other process is counted or stopped.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Identifies one process, even if its number is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    pub(super) id: i32,
    /// Clock ticks between the start of the machine and that of the process.
    started: u64,
}

impl ProcessIdentity {
    /// Sends a signal if it is still the same process. A zombie is past all signals.
    pub(super) fn send(self, signal: Signal) {
        if self.is_alive()
            && let Some(id) = Pid::from_raw(self.id)
        {
            // It may have ended meanwhile, which is as good.
            let _ = kill_process(id, signal);
        }
    }

    /// Returns whether it still runs.
    pub(super) fn is_alive(self) -> bool {
        ProcStat::read(self.id)
            .is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }
}

/// Fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcStat {
    id: i32,
    state: char,
    parent: i32,
    group: i32,
    started: u64,
    /// Clock ticks in user space, with those of its ended children.
    pub(super) user_ticks: u64,
    /// The same in the kernel.
    pub(super) system_ticks: u64,
    /// Its threads.
    pub(super) threads: u64,
}

impl ProcStat {
    /// Reads those of a process; `None` if there is no such process.
    pub(super) fn read(id: i32) -> Option<Self> {
        Self::parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// The name in brackets may hold any character, brackets too.
    fn parse(id: i32, text: &str) -> Option<Self> {
        let behind = &text[text.rfind(')')? + 1..];
        let words: Vec<&str> = behind.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let id_at = |at: usize| words.get(at).and_then(|word| word.parse::<i32>().ok());
        Some(Self {
            id,
            state: words.first()?.chars().next()?,
            parent: id_at(1)?,
            group: id_at(2)?,
            user_ticks: number(11)? + number(13)?,
            system_ticks: number(12)? + number(14)?,
            threads: number(17)?,
            started: number(19)?,
        })
    }
}

/// A process and its descendants.
#[derive(Clone, Debug)]
pub(super) struct ProcessTree {
    leader: ProcessIdentity,
    mark: String,
    known: Vec<ProcessIdentity>,
}

impl ProcessTree {
    /// Returns the tree of a process that leads its own group.
    ///
    /// - `mark`: `NAME=value`, in its environment from the start.
    pub(super) fn of(leader: i32, mark: String) -> Option<Self> {
        let leader = ProcessIdentity { id: leader, started: ProcStat::read(leader)?.started };
        Some(Self { leader, mark, known: vec![leader] })
    }

    /// The first process.
    pub(super) fn leader(&self) -> ProcessIdentity {
        self.leader
    }

    /// All processes found so far; some may have ended.
    pub(super) fn known(&self) -> &[ProcessIdentity] {
        &self.known
    }

    /// Scans all processes of the machine for new ones.
    pub(super) fn look(&mut self) {
        let all = all_processes();
        let young = |stat: &ProcStat| stat.started >= self.leader.started;
        let mut strangers: Vec<ProcStat> = all.into_iter().filter(young).collect();
        self.known.retain(|member| {
            strangers.iter().any(|stat| stat.id == member.id && stat.started == member.started)
        });
        loop {
            let is_ours = |stat: &ProcStat| {
                let known = |id: i32| self.known.iter().any(|member| member.id == id);
                known(stat.id) || known(stat.parent) || stat.group == self.leader.id
            };
            let (ours, others): (Vec<ProcStat>, Vec<ProcStat>) =
                strangers.into_iter().partition(is_ours);
            strangers = others;
            let before = self.known.len();
            for stat in ours {
                let member = ProcessIdentity { id: stat.id, started: stat.started };
                if !self.known.contains(&member) {
                    self.known.push(member);
                }
            }
            if self.known.len() == before {
                break;
            }
        }
        let marked = strangers.iter().filter(|stat| self.is_marked(stat.id));
        let marked: Vec<ProcessIdentity> =
            marked.map(|stat| ProcessIdentity { id: stat.id, started: stat.started }).collect();
        self.known.extend(marked);
    }

    fn is_marked(&self, id: i32) -> bool {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
    }
}

fn all_processes() -> Vec<ProcStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let id = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    entries.flatten().filter_map(id).filter_map(ProcStat::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let text = "7 (a) b (c) S 3 5 5 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 9 0 777 1 2\n";
        let stat = ProcStat::parse(7, text).expect("all fields");
        assert_eq!((stat.parent, stat.group, stat.state), (3, 5, 'S'));
        assert_eq!((stat.user_ticks, stat.system_ticks), (24, 26));
        assert_eq!((stat.threads, stat.started), (9, 777));
    }

    #[test]
    fn this_process_is_found_and_alive() {
        let id = i32::try_from(std::process::id()).expect("process ids are small");
        let stat = ProcStat::read(id).expect("it runs");
        assert!(ProcessIdentity { id, started: stat.started }.is_alive());
        assert!(!ProcessIdentity { id, started: stat.started + 1 }.is_alive());
        assert!(all_processes().iter().any(|other| other.id == id));
    }
}
