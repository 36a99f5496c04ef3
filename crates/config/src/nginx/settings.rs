//! Settings of the whole server that an import takes over, and where it listens.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::LeftOuts;
use super::syntax::Directive;
use super::value::{default_of, setting_of};
use crate::text::quoted;

/// Directives at the top of the file that need no counterpart.
const OF_MAIN: &[&str] = &[
    "daemon",
    "env",
    "error_log",
    "events",
    "load_module",
    "lock_file",
    "master_process",
    "pcre_jit",
    "pid",
    "thread_pool",
    "timer_resolution",
    "worker_cpu_affinity",
    "worker_priority",
    "worker_rlimit_core",
    "worker_rlimit_nofile",
    "worker_shutdown_timeout",
];

/// Settings of the whole server.
#[derive(Default)]
pub(super) struct GlobalSettings {
    values: BTreeMap<&'static str, String>,
    /// Addresses, each with whether it speaks TLS.
    listeners: Vec<(String, bool)>,
    pub(super) redirects_to_https: bool,
    /// Proxies that are trusted to name the client's address.
    proxies: Vec<String>,
}

impl GlobalSettings {
    /// Trusts proxies to name the client's address.
    pub(super) fn trust(&mut self, proxies: Vec<String>) {
        self.proxies = proxies;
    }

    /// Takes a directive at the top of the file.
    pub(super) fn take_main(&mut self, one: &Directive, left: &mut LeftOuts) {
        match &*one.name {
            _ if self.take(one, left) => {}
            "include" => left.add(one, "the file cannot be read: left out"),
            "user" => left.add(one, "a server that root starts has the setting user: left out"),
            name if OF_MAIN.contains(&name) => {}
            _ => left.add(one, "it has no counterpart: left out"),
        }
    }

    /// Takes a directive that is a setting; returns whether it is one.
    pub(super) fn take(&mut self, one: &Directive, left: &mut LeftOuts) -> bool {
        let Some((name, value)) = setting_of(one) else { return false };
        match value {
            Some(value) => {
                let known = self.values.entry(name).or_insert_with(|| value.clone());
                if *known != value {
                    left.add(one, &format!("{name} is {known} for all sites: left out"));
                }
            }
            None => left.add(one, &format!("{name} takes no such value: left out")),
        }
        true
    }

    /// Notes that versions of TLS of one server are left out, unless they are those of all.
    pub(super) fn compare(&self, one: &Directive, left: &mut LeftOuts) {
        let Some((name, value)) = setting_of(one) else { return };
        let of_all = self.values.get(name).map_or_else(|| default_of(name), String::as_str);
        if value.as_deref() != Some(of_all) {
            left.add(one, &format!("{name} is {of_all} for all sites: left out"));
        }
    }

    /// Adds listeners. One that speaks TLS for one server does for all.
    pub(super) fn listen(&mut self, all: impl Iterator<Item = (String, bool)>) {
        for (address, has_tls) in all {
            match self.listeners.iter_mut().find(|(known, _)| *known == address) {
                Some((_, known)) => *known |= has_tls,
                None => self.listeners.push((address, has_tls)),
            }
        }
    }

    /// Writes all of them.
    pub(super) fn write(&self, out: &mut String) {
        let has_tls = self.listeners.iter().any(|(_, has_tls)| *has_tls);
        let one = |(address, is_tls): &(String, bool)| {
            let scheme = match (has_tls, is_tls) {
                _ if address.starts_with("unix:") => "",
                (true, true) => "https://",
                (true, false) => "http://",
                _ => "",
            };
            text_of(&format!("{scheme}{address}"))
        };
        let all: Vec<String> = self.listeners.iter().map(one).collect();
        if !all.is_empty() {
            push(out, format_args!("listen = [{}]", all.join(", ")));
        }
        if !self.proxies.is_empty() {
            let all: Vec<String> = self.proxies.iter().map(|one| text_of(one)).collect();
            push(out, format_args!("forwarded-allow-ips = [{}]", all.join(", ")));
        }
        if self.redirects_to_https {
            push(out, format_args!("https-redirect = true"));
        }
        for (name, value) in &self.values {
            push(out, format_args!("{name} = {}", text_of(value)));
        }
    }
}

/// Returns a text as a value of the file: nothing in it is a variable.
pub(super) fn text_of(text: &str) -> String {
    quoted(&text.replace("${", "$${"))
}

/// Writes a line.
pub(super) fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("a string takes all text");
}
