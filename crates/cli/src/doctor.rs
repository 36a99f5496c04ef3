//! `gustnado doctor`: for each limit of a server with many connections, its value, whether it is
//! enough, what to change, and the consequence otherwise.
//!
//! [`facts`] reads. [`machine`], [`descriptors`], [`ring`], [`network`], [`connections`], [`clock`]
//! and [`certificates`] are pure functions of what was read. [`finding`] formats.
//!
//! `--apply` changes the settings that contests on this machine need ([`wanted`]), after it saved
//! the old values in a file ([`state`]). `--restore` writes them back.

mod apply;
mod certificates;
mod clock;
mod clock_facts;
mod connections;
mod descriptors;
mod facts;
mod finding;
mod machine;
mod network;
mod options;
mod ring;
mod settings;
mod shell;
mod state;
mod wanted;

pub(crate) use options::{DoctorOptions, command};

use crate::exit;
use crate::output::{Console, Paint, page, page_paint};
use facts::Facts;
use finding::{Finding, FindingLevel};
use options::DoctorAction;
use settings::KernelSettings;

/// Runs the action and returns the exit code.
pub(crate) fn run(options: &DoctorOptions) -> u8 {
    let output = Console::new(false);
    match options.action {
        DoctorAction::Look => look(options),
        DoctorAction::Apply => apply::apply(options, output),
        DoctorAction::Restore => apply::restore(options, output),
    }
}

/// Returns a warning before a load of this many connections, if the kernel has no room for them.
#[cfg(feature = "lab")]
pub(crate) fn no_room(connections: u64) -> Option<String> {
    connections::no_room(&KernelSettings("/proc/sys".into()), connections)
}

/// Checks this machine and prints the findings.
fn look(options: &DoctorOptions) -> u8 {
    let facts = Facts::read(&KernelSettings(options.settings.clone()), options);
    if facts.is_empty() {
        Console::new(false).error(
            "doctor: nothing could be read below /proc; mount it (`mount -t proc proc /proc`)",
        );
        return exit::FAILED;
    }
    page(&text(&facts, page_paint()))
}

/// Findings, the most important for many connections first.
fn text(facts: &Facts, paint: Paint) -> String {
    let findings: Vec<Finding> = [
        machine::kernel(facts),
        ring::availability(facts),
        machine::processors(facts),
        machine::quota(facts),
        machine::memory(facts),
        descriptors::per_process(facts),
        descriptors::per_machine(facts),
        network::accept_queue(facts),
        network::handshakes(facts),
        connections::overflow(facts),
        connections::tracked(facts),
        connections::tcp_memory(facts),
        network::local_ports(facts),
        network::closed_ports(facts),
        network::closed_listeners(facts),
        clock::synchronized(facts),
        clock::plausible(facts),
    ]
    .into_iter()
    .chain(certificates::all(facts))
    .collect();
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or_default();
    let mut page = format!("{}\n\n", paint.bold(&facts.title()));
    for finding in &findings {
        page.push_str(&finding.text(width, paint));
    }
    page.push('\n');
    page.push_str(&summary(&findings));
    page
}

fn summary(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    if count(FindingLevel::Stops) > 0 {
        return "No server starts with a certificate that is marked `stops`.\n".to_owned();
    }
    match (count(FindingLevel::Change), count(FindingLevel::Unknown)) {
        (0, 0) => "Nothing needs to be changed.\n".to_owned(),
        (0, unknown) => format!("Nothing needs to be changed; {unknown} could not be read.\n"),
        (1, _) => "1 setting worth changing; the server also runs without it.\n".to_owned(),
        (changes, _) => {
            format!("{changes} settings worth changing; the server also runs without them.\n")
        }
    }
}

#[cfg(test)]
mod tests;
