//! Kernel settings for contests on this machine: 10,000 connections and more over loopback, with
//! both ends on it.

use super::settings::KernelSettings;

/// A setting to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingChange {
    pub(super) key: &'static str,
    pub(super) old: String,
    pub(super) new: String,
    /// The reason.
    pub(super) why: &'static str,
}

/// The goal of a setting.
enum Goal {
    /// At least this number.
    AtLeast(u64),
    /// At most this number.
    AtMost(u64),
    /// A range of this many numbers.
    Range(u64),
}

struct WantedSetting {
    key: &'static str,
    goal: Goal,
    /// The value to set if the goal is not met.
    value: &'static str,
    why: &'static str,
}

const GOALS: [WantedSetting; 7] = [
    WantedSetting {
        key: "fs.nr_open",
        goal: Goal::AtLeast(super::shell::FILES_GOAL),
        value: "1048576",
        why: "a process can be given that many descriptors",
    },
    WantedSetting {
        key: "fs.file-max",
        goal: Goal::AtLeast(400_000),
        value: "1000000",
        why: "both ends of each connection are open here",
    },
    WantedSetting {
        key: "net.core.somaxconn",
        goal: Goal::AtLeast(16_384),
        value: "65535",
        why: "a burst of 10,000 connections fits into a server's queue",
    },
    WantedSetting {
        key: "net.ipv4.tcp_max_syn_backlog",
        goal: Goal::AtLeast(16_384),
        value: "65535",
        why: "their handshakes may all be under way at once",
    },
    WantedSetting {
        key: "net.ipv4.ip_local_port_range",
        goal: Goal::Range(50_000),
        value: "10240 65535",
        why: "more connections from each address",
    },
    WantedSetting {
        key: "net.ipv4.tcp_fin_timeout",
        goal: Goal::AtMost(15),
        value: "15",
        why: "half-closed connections give their ports back sooner",
    },
    WantedSetting {
        key: "net.ipv4.tcp_tw_reuse",
        goal: Goal::AtLeast(1),
        value: "2",
        why: "ports of closed connections are used again on loopback",
    },
];

/// Returns the settings that do not meet their goals. One that is not readable is left alone.
pub(super) fn changes(settings: &KernelSettings) -> Vec<SettingChange> {
    let change = |wanted: &WantedSetting| {
        let old = settings.read(wanted.key)?;
        let met = match wanted.goal {
            Goal::AtLeast(least) => settings.number(wanted.key)? >= least,
            Goal::AtMost(most) => settings.number(wanted.key)? <= most,
            Goal::Range(size) => {
                let (first, last) = settings.pair(wanted.key)?;
                (last + 1).saturating_sub(first) >= size
            }
        };
        let new = wanted.value.to_owned();
        (!met).then_some(SettingChange { key: wanted.key, old, new, why: wanted.why })
    };
    GOALS.iter().filter_map(change).collect()
}
