//! The machine that ran the contest, read once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::cpus::{CpuSplit, allowed};
use crate::record::Environment;

/// Kernel settings that matter for many connections.
const SYSCTLS: [&str; 12] = [
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "fs.nr_open",
    "kernel.io_uring_disabled",
];

/// Reads it.
///
/// - `program`: the running program, whose commit is looked up.
pub(super) fn read(division: &CpuSplit, program: &Path) -> Environment {
    let information = text("/proc/cpuinfo").unwrap_or_default();
    let memory = text("/proc/meminfo").unwrap_or_default();
    let kib = behind(&memory, "MemTotal:").and_then(|kib| kib.split(' ').next()?.parse().ok());
    let limit = getrlimit(Resource::Nofile);
    let value = |name: &&str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let words = text(&path)?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(((*name).to_owned(), words))
    };
    let release = text("/etc/os-release").unwrap_or_default();
    Environment {
        cpu: behind(&information, "model name").unwrap_or_else(|| "unknown".to_owned()),
        cpus: u32::try_from(allowed().len()).unwrap_or(u32::MAX),
        memory_bytes: kib.unwrap_or(0u64) * 1_024,
        kernel: text("/proc/sys/kernel/osrelease")
            .map_or("unknown".to_owned(), |of| format!("Linux {of}")),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        system: behind(&release, "PRETTY_NAME").map(|name| name.trim_matches('"').to_owned()),
        descriptors: (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX)),
        sysctls: SYSCTLS.iter().filter_map(value).collect::<BTreeMap<_, _>>(),
        server_cpus: division.servers.clone(),
        generator_cpus: division.generator.clone(),
        commit: commit(program),
    }
}

/// Raises the limit on descriptors for this process and its children to the hard limit. Returns it.
pub(super) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // On failure the record has the unchanged limit.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20)
}

/// The user name of this process.
pub(super) fn user() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    let accounts = text("/etc/passwd").unwrap_or_default();
    let is_mine = |line: &&str| line.split(':').nth(2) == Some(id.as_str());
    let name = accounts.lines().find(is_mine).and_then(|line| line.split(':').next());
    name.map_or_else(|| id.clone(), str::to_owned)
}

/// The commit of the repository that contains the program, with a plus for uncommitted changes.
fn commit(program: &Path) -> Option<String> {
    let folder = program.parent()?;
    let git = |words: &[&str]| {
        let done = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
        let output = String::from_utf8(done.stdout).ok()?.trim().to_owned();
        done.status.success().then_some(output)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).filter(|found| !found.is_empty())?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changed.is_none_or(|changes| changes.is_empty()) { "" } else { "+" };
    Some(format!("{commit}{mark}"))
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The value after a name and its colon or equals sign.
fn behind(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([':', '=', ' ', '\t']).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read() {
        let division = CpuSplit { servers: vec![0], generator: vec![1], sentence: String::new() };
        let found = read(&division, Path::new("/nowhere/program"));
        assert!(found.memory_bytes > 0 && found.cpus > 0);
        assert!(found.kernel.starts_with("Linux "), "{}", found.kernel);
        assert!(found.sysctls.contains_key("net.core.somaxconn"), "{:?}", found.sysctls);
        assert_eq!(found.commit, None);
        assert!(!user().is_empty());
    }

    #[test]
    fn names_are_found_with_either_sign() {
        assert_eq!(behind("model name\t: X 1\n", "model name").as_deref(), Some("X 1"));
        assert_eq!(behind("A=b\nPRETTY_NAME=\"D\"\n", "PRETTY_NAME").as_deref(), Some("\"D\""));
    }
}
