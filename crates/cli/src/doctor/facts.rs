//! Facts about the machine. Only [`Facts::read`] does I/O; everything else is a function of the
//! facts.

use super::clock_facts::ClockFacts;
use super::options::DoctorOptions;
use super::settings::KernelSettings;
use crate::certificates::{self, SeenCertificate};
use gustnado::config::{Config, Machine};
use std::path::Path;

pub(super) const TRACKED: &str = "net.netfilter.nf_conntrack_max";
pub(super) const BUCKETS: &str = "net.netfilter.nf_conntrack_buckets";
pub(super) const TCP_MEMORY: &str = "net.ipv4.tcp_mem";
pub(super) const OVERFLOW: &str = "net.ipv4.tcp_abort_on_overflow";

/// Facts; `None` could not be read.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) machine: Machine,
    /// The default settings: the yardstick for the kernel's queues.
    pub(super) config: Config,
    /// `6.1.0-18-amd64`
    pub(super) kernel: Option<String>,
    /// Whether this runs in a container, where `sysctl` belongs to the host.
    pub(super) in_container: bool,
    /// Whether `io_uring` works, and why not.
    pub(super) uring: Result<(), String>,
    /// `kernel.io_uring_disabled`: 0 enabled, 1 for the privileged, 2 disabled.
    pub(super) uring_disabled: Option<u64>,
    /// Open files of the whole machine (`fs.file-max`).
    pub(super) file_max: Option<u64>,
    /// Maximum limit on open files of a process (`fs.nr_open`).
    pub(super) nr_open: Option<u64>,
    pub(super) somaxconn: Option<u64>,
    pub(super) syn_backlog: Option<u64>,
    /// First and last ephemeral port.
    pub(super) local_ports: Option<(u64, u64)>,
    /// 0 no, 1 yes, 2 on loopback.
    pub(super) tw_reuse: Option<u64>,
    pub(super) fin_timeout_s: Option<u64>,
    /// Connections that a firewall may track; `None` where none does.
    pub(super) conntrack_max: Option<u64>,
    pub(super) conntrack_buckets: Option<u64>,
    /// Pages that TCP may take at most.
    pub(super) tcp_mem_pages: Option<u64>,
    /// Whether a connection that finds a full queue is reset.
    pub(super) abort_on_overflow: Option<u64>,
    /// Whether a closing listener passes its queue to another one on its port.
    pub(super) migrate_req: Option<u64>,
    pub(super) clock: ClockFacts,
    /// Those that the settings name.
    pub(super) certificates: Vec<SeenCertificate>,
}

impl Facts {
    pub(super) fn read(settings: &KernelSettings, options: &DoctorOptions) -> Self {
        Self {
            machine: Machine::read(),
            config: Config::default(),
            kernel: settings.read("kernel.osrelease"),
            in_container: is_container(),
            uring: gustnado::probe_io_uring(),
            uring_disabled: settings.number("kernel.io_uring_disabled"),
            file_max: settings.number("fs.file-max"),
            nr_open: settings.number("fs.nr_open"),
            somaxconn: settings.number("net.core.somaxconn"),
            syn_backlog: settings.number("net.ipv4.tcp_max_syn_backlog"),
            local_ports: settings.pair("net.ipv4.ip_local_port_range"),
            tw_reuse: settings.number("net.ipv4.tcp_tw_reuse"),
            fin_timeout_s: settings.number("net.ipv4.tcp_fin_timeout"),
            conntrack_max: settings.number(TRACKED),
            conntrack_buckets: settings.number(BUCKETS),
            tcp_mem_pages: settings.third(TCP_MEMORY),
            abort_on_overflow: settings.number(OVERFLOW),
            migrate_req: settings.number("net.ipv4.tcp_migrate_req"),
            clock: ClockFacts::read(),
            certificates: certificates::seen(&options.config, options.site.as_ref()),
        }
    }

    /// Returns whether nothing could be read.
    pub(super) fn is_empty(&self) -> bool {
        self.kernel.is_none() && self.file_max.is_none() && self.somaxconn.is_none()
    }

    /// The first line: where this was read.
    pub(super) fn title(&self) -> String {
        let kernel = self.kernel.as_deref().unwrap_or("of an unknown version");
        let place = if self.in_container { ", in a container" } else { "" };
        format!("gustnado doctor: Linux {kernel}{place}")
    }

    /// Commands that set a kernel value here.
    pub(super) fn sysctl(&self, key: &str, value: &str) -> Vec<String> {
        let quoted = if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
        if self.in_container && key.starts_with("net.") {
            return vec![
                format!("docker run --sysctl {key}={quoted} …"),
                format!(
                    "# Kubernetes: securityContext.sysctls: [{{name: {key}, value: \"{value}\"}}]"
                ),
            ];
        }
        let place = if self.in_container { "  # on the host" } else { "" };
        vec![
            format!("sudo sysctl -w {key}={quoted}{place}"),
            format!(
                "echo '{key} = {value}' | sudo tee /etc/sysctl.d/60-gustnado-{key}.conf  # keeps it"
            ),
        ]
    }
}

fn is_container() -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    marks.iter().any(|mark| Path::new(mark).exists())
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}
