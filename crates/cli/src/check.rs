//! `gustnado check`: every setting in effect, its origin, what `auto` resolves to, and the
//! certificates.

use crate::arguments::ServeOptions;
use crate::figures::grouped;
use crate::output::{Console, Paint, page, page_paint};
use crate::{acme, certificates, exit, kernel_memory, memory, privileges, root};
use gustnado::config::{Config, Machine, Origin, Resolved, SettingGroup, Settings, TUNABLES, Unit};
use gustnado::site::SiteFile;

/// Prints the settings; the exit code says whether a server could start with them.
pub(crate) fn run(options: &ServeOptions) -> u8 {
    let settings = &options.settings;
    let output = Console::new(false);
    let uring = gustnado::probe_io_uring();
    let paint = page_paint();
    let shown = |value: &str| options.shown(value);
    page(&text(settings, &Machine::read(), &uring, paint, &shown));
    page(&format!("\n{}\n", paint.bold("Kernel memory")));
    for line in kernel_memory(settings, uring.is_ok()) {
        page(&format!("  {line}\n"));
    }
    acme::print_status(options);
    let seen = certificates::seen(&settings.config, options.site.as_ref());
    page(&certificates::text(&seen, paint));
    for warning in &settings.warnings {
        output.warn(warning);
    }
    certificates::warnings(&seen).for_each(|line| output.warn(&line));
    verdict(options, output)
}

/// Prints all settings in effect as a configuration file.
pub(crate) fn effective(options: &ServeOptions) -> u8 {
    let output = Console::new(false);
    let file = SiteFile::effective(options.site.as_ref(), &options.settings);
    page(&(file + &memory::text(&options.settings.config, &Machine::read())));
    page("\n# Kernel memory\n");
    for line in kernel_memory(&options.settings, gustnado::probe_io_uring().is_ok()) {
        page(&format!("# {line}\n"));
    }
    for warning in &options.settings.warnings {
        output.warn(warning);
    }
    verdict(options, output)
}

fn kernel_memory(settings: &Settings, uring: bool) -> Vec<String> {
    let connections = Machine::read().connections_max(&settings.config, uring).value;
    kernel_memory::lines(&settings.config, connections as u64)
}

/// Checks that a server could start.
fn verdict(options: &ServeOptions, output: Console) -> u8 {
    let root = options.settings.config.root.as_deref().map_or(Ok(()), root::check);
    let all = root.and_then(|()| options.server().check().map_err(|error| options.line(&error)));
    match all {
        Ok(()) => {
            for line in privileges::try_as_user(options) {
                output.warn(&line);
            }
            if let Some(site) = &options.site {
                output.say(&format!("{}: {}; all is well", site.path().display(), site.summary()));
            }
            exit::CLEAN
        }
        Err(line) => {
            output.error(&line);
            exit::CONFIG
        }
    }
}

struct SettingRow {
    group: SettingGroup,
    name: &'static str,
    value: String,
    origin: Origin,
    because: String,
}

/// Formats one line per setting, in groups and columns.
///
/// - `uring`: whether `io_uring` is available, and why not.
/// - `shown`: returns a value without what must not be shown.
fn text(
    settings: &Settings,
    machine: &Machine,
    uring: &Result<(), String>,
    paint: Paint,
    shown: &dyn Fn(&str) -> String,
) -> String {
    let mut rows = rows(settings, machine, uring);
    for row in &mut rows {
        row.value = shown(&row.value);
    }
    let width = |cell: fn(&SettingRow) -> String| {
        rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or_default()
    };
    let names = width(|row| row.name.to_owned());
    let values = width(|row| row.value.clone());
    let origins = width(|row| row.origin.to_string());
    let line = |row: &SettingRow| {
        let name = row.name;
        let value = paint.bold(&format!("{:values$}", row.value));
        let origin = format!("{:origins$}", row.origin.to_string());
        let origin =
            if row.origin == Origin::Default { paint.dim(&origin) } else { paint.green(&origin) };
        let line = format!("  {name:names$}  {value}  {origin}  {}", row.because);
        format!("{}\n", line.trim_end())
    };
    let mut page = String::new();
    for group in SettingGroup::ALL {
        let lines: String = rows.iter().filter(|row| row.group == group).map(line).collect();
        let gap = if page.is_empty() { "" } else { "\n" };
        page = format!("{page}{gap}{}\n{lines}", paint.bold(group.heading()));
    }
    page
}

fn rows(settings: &Settings, machine: &Machine, uring: &Result<(), String>) -> Vec<SettingRow> {
    let row = |(effective, tunable): (gustnado::config::Effective, &gustnado::config::Tunable)| {
        let set = (effective.name, effective.value);
        let (value, because) = worked_out(set, &settings.config, machine, uring);
        let group = tunable.group;
        SettingRow { group, name: effective.name, value, origin: effective.origin, because }
    };
    settings.effective().into_iter().zip(TUNABLES).map(row).collect()
}

/// The memory of a kind: `part` of `max-memory`, unless less is set.
fn share(value: String, resolved: u64, part: &str) -> (String, String) {
    let resolved = bytes(resolved);
    if value == resolved {
        return (value, String::new());
    }
    (format!("{value} -> {resolved}"), format!("{part} of max-memory"))
}

/// The effective value, and the reason if it differs from the configured one.
fn worked_out(
    (name, value): (&str, String),
    config: &Config,
    machine: &Machine,
    uring: &Result<(), String>,
) -> (String, String) {
    let works = uring.is_ok();
    let number = |resolved: Resolved| match value.as_str() {
        "auto" => (format!("auto -> {}", grouped(resolved.value as u64)), resolved.because),
        set => (set.to_owned(), String::new()),
    };
    let size = |resolved: Resolved| match value.as_str() {
        "auto" => (format!("auto -> {}", bytes(resolved.value as u64)), resolved.because),
        set => (set.to_owned(), String::new()),
    };
    match name {
        "workers" => number(machine.workers(config)),
        "connections-max" => number(machine.connections_max(config, works)),
        "slots" => number(machine.slots(config, works)),
        "max-memory" => size(machine.max_memory(config)),
        "limit-body-memory" => share(value, machine.memory_plan(config).bodies, "a quarter"),
        "limit-head-memory" => share(value, machine.memory_plan(config).heads, "its share"),
        "limit-send-memory" => share(value, machine.memory_plan(config).sends, "its share"),
        "limit-receive-memory" => share(value, machine.memory_plan(config).receives, "its share"),
        "limit-queue-memory" => share(value, machine.memory_plan(config).queue, "its share"),
        "io" => io(value, config.scheduler.is_shared(), uring),
        "root" if config.root.is_none() => (value, "the built-in page".to_owned()),
        "host" | "port" | "uds" if !config.listen.is_empty() => {
            (value, "not used: listen is set".to_owned())
        }
        "host" | "port" if config.uds.is_some() => (value, "not used: uds is set".to_owned()),
        "port" if config.port == 0 => (value, "a free port, printed at the start".to_owned()),
        "listing" if value == "auto" => {
            (value, "on at a terminal, while only loopback is listened on".to_owned())
        }
        "access-log" if config.access_log.is_none() && !config.quiet => {
            (value, "a terminal shows requests".to_owned())
        }
        "cache-bytes" if config.root.is_none() => (value, "not used: no folder".to_owned()),
        _ => (value, String::new()),
    }
}

fn bytes(number: u64) -> String {
    Unit::Bytes.format(number)
}

fn io(value: String, shared: bool, uring: &Result<(), String>) -> (String, String) {
    let to_epoll = |because: String| (format!("{value} -> epoll"), because);
    match (value.as_str(), uring) {
        ("epoll", _) => (value, String::new()),
        _ if shared => to_epoll("the shared schedulers live on epoll".to_owned()),
        (_, Err(why)) => to_epoll(format!("no io_uring: {why}")),
        ("auto", Ok(())) => ("auto -> uring".to_owned(), "io_uring works here".to_owned()),
        (_, Ok(())) => (value, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(flags: &[(&str, &str)], uring: &Result<(), String>) -> String {
        let flags: Vec<_> = flags.iter().map(|(name, value)| (*name, value.into())).collect();
        let variables = [("GUSTNADO_HIDDEN".into(), "yes".into())];
        let settings = Settings::layered(&flags, variables, None).expect("all valid");
        let machine = Machine {
            cpus: 2,
            cpu_quota_milli: None,
            memory_max_bytes: None,
            memory_bytes: 8 << 30,
            files_soft: 1_024,
            files_hard: 20_000,
        };
        text(&settings, &machine, uring, Paint(false), &str::to_owned)
    }

    fn line<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
        let start = format!("  {name} ");
        let line = page.lines().find(|line| line.starts_with(&start)).expect("a line for it");
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
    }

    #[test]
    fn every_setting_has_its_value_its_source_and_its_reason() {
        let page = shown(&[("port", "9000")], &Ok(()));
        assert_eq!(line(&page, "port"), ["port", "9000", "flag --port"]);
        assert_eq!(line(&page, "hidden"), ["hidden", "true", "environment GUSTNADO_HIDDEN"]);
        assert_eq!(line(&page, "backlog"), ["backlog", "4096", "default"]);
        assert_eq!(
            line(&page, "workers"),
            ["workers", "auto -> 2", "default", "2 CPUs by affinity, no cgroup quota"]
        );
        let because = "2 io_uring tables of 20000 less 1000 in reserve";
        assert_eq!(
            line(&page, "connections-max"),
            ["connections-max", "auto -> 38,000", "default", because]
        );
        assert_eq!(page.lines().filter(|line| line.starts_with("  ")).count(), TUNABLES.len());
    }

    #[test]
    fn falling_back_to_epoll_says_why() {
        let page = shown(&[], &Err("not permitted (seccomp)".to_owned()));
        assert_eq!(
            line(&page, "io"),
            ["io", "auto -> epoll", "default", "no io_uring: not permitted (seccomp)"]
        );
        assert_eq!(line(&page, "connections-max")[1], "auto -> 19,872");
        let shared = shown(&[("scheduler", "queue-shared"), ("io", "uring")], &Ok(()));
        assert_eq!(line(&shared, "io")[1], "uring -> epoll");
    }

    #[test]
    fn columns_are_aligned() {
        let page = shown(&[("connections-max", "16777216")], &Ok(()));
        let starts: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with("  "))
            .filter_map(|line| line.find("  default").or_else(|| line.find("  flag ")))
            .collect();
        assert!(starts.windows(2).all(|pair| pair[0] == pair[1]), "{page}");
    }
}
