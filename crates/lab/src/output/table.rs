//! The outcome as a page of text, with the terms and the order of `ApacheBench`.

use super::tables;
use crate::figures::{bytes, counted, decimal, grouped, ms, percent, real};
use crate::outcome::{ConnectionCounts, Deliveries, Errors, GeneratorUsage, Kernel, Outcome};
use crate::plan::HttpVersion;
use crate::steal::WORTH_A_WORD;
use std::fmt::Write;

/// URLs that are shown, at most.
const URLS_SHOWN: usize = 10;
/// Column at which values begin.
const WIDTH: usize = 21;

/// Formats the page, with a line end.
pub fn text(outcome: &Outcome) -> String {
    let mut page = TableText(String::new());
    what(&mut page, outcome);
    page.gap();
    how_much(&mut page, outcome);
    page.gap();
    page.0.push_str(&tables::parts(outcome));
    page.gap();
    page.0.push_str(&tables::percentiles(outcome));
    if !outcome.steps.is_empty() {
        page.gap();
        page.0.push_str(&tables::steps(&outcome.steps));
    }
    page.gap();
    who_worked(&mut page, outcome);
    for warning in &outcome.warnings {
        page.line("Warning", warning);
    }
    page.0
}

/// Lines of names and values.
pub(super) struct TableText(pub(super) String);

impl TableText {
    pub(super) fn line(&mut self, name: &str, value: &str) {
        let name = if name.is_empty() { String::new() } else { format!("{name}:") };
        writeln!(self.0, "{name:WIDTH$} {value}").expect("memory takes all");
    }

    pub(super) fn gap(&mut self) {
        self.0.push('\n');
    }
}

fn what(page: &mut TableText, outcome: &Outcome) {
    let model = &outcome.model;
    page.line("Measured by", &outcome.tool);
    for (index, url) in outcome.urls.iter().take(URLS_SHOWN).enumerate() {
        page.line(if index == 0 { "URL" } else { "" }, url);
    }
    let others = outcome.urls.len().saturating_sub(URLS_SHOWN);
    if others > 0 {
        page.line("", &format!("and {} more", grouped(others as u64)));
    }
    page.line("Model", &model.sentence);
    let threads = counted(u64::from(model.threads), "thread");
    let connections = counted(model.connections, "connection");
    page.line("Concurrency Level", &format!("{connections}, {threads}, {}", model.io));
    if !model.protocol.is_empty() {
        page.line("Protocol", &model.protocol);
    }
    if model.pipeline > 1 {
        let depth = format!("{} requests at once on each connection", model.pipeline);
        let is_http2 = model.protocol == HttpVersion::Http2.name();
        let name = match outcome.websocket {
            Some(_) => "At once",
            None if is_http2 => "Streams",
            None => "Pipelining",
        };
        page.line(name, &depth);
    }
    if let Some(tls) = &outcome.tls {
        let (all, resumed) = (grouped(tls.handshakes), grouped(tls.resumed));
        let agreed = format!("{}, {}, {}", tls.version, tls.cipher, tls.group);
        page.line("TLS", &format!("{agreed}; {all} handshakes, {resumed} resumed"));
    }
    if let Some(websocket) = &outcome.websocket {
        let [opened, refused, closed] =
            [websocket.opened, websocket.refused, websocket.closed].map(grouped);
        page.line("WebSockets", &format!("{opened} opened, {refused} refused, {closed} closed"));
    }
    if let Some(held) = &outcome.held {
        let (opened, asked) = (grouped(held.opened), grouped(held.asked));
        let lost = grouped(held.lost);
        let opening = format!("{:.1} s", held.opening_s);
        let text = format!("{opened} of {asked} asked for, {lost} lost, opened in {opening}");
        page.line("Held connections", &text);
    }
}

fn how_much(page: &mut TableText, outcome: &Outcome) {
    let latency = &outcome.latency_us;
    page.line("Time taken for tests", &format!("{:.3} s", outcome.duration_s));
    page.line("Complete requests", &complete(outcome));
    page.line("Failed requests", &failures(&outcome.errors));
    page.line("Non-2xx responses", &statuses(outcome));
    let opened = grouped(outcome.connections_opened);
    page.line("Connections opened", &opened);
    if let Some(connections) = &outcome.connections {
        page.line("Connections served", &served(connections, outcome.ramp_up_s));
    }
    let (received, sent) = (real(outcome.bytes_received), real(outcome.bytes_sent));
    page.line("Total transferred", &format!("{} received, {} sent", bytes(received), bytes(sent)));
    page.line("Requests per second", &format!("{} /s (mean)", decimal(outcome.requests_per_s)));
    if let Some(all) = outcome.websocket.as_ref().and_then(|all| all.deliveries.as_ref()) {
        page.line("Deliveries", &deliveries(all));
    }
    if outcome.requests > 0 {
        page.line("Time per request", &format!("{} ms (mean)", ms(latency.mean)));
    }
    if outcome.requests_per_s > 0.0 {
        let each = 1e6 / outcome.requests_per_s;
        page.line("", &format!("{} ms (mean, across all concurrent requests)", ms(each)));
    }
    if let Some(rate) = outcome.bytes_received_per_s {
        page.line("Transfer rate", &format!("{}/s received", bytes(rate)));
    }
}

fn deliveries(all: &Deliveries) -> String {
    let latency = &all.latency_us;
    let told = ["50", "99", "99.9", "100"]
        .map(|name| latency.percentile(name).map(|us| format!("{name} % within {} ms", ms(us))));
    let told: Vec<String> = told.into_iter().flatten().collect();
    format!("{}, {} /s; {}", grouped(all.count), decimal(all.per_s), told.join(", "))
}

/// The connections that had a response while measuring, and those that were held to the end.
fn served(connections: &ConnectionCounts, ramp_up_s: f64) -> String {
    let held = connections.held.map(|held| format!(", {} held to the end", grouped(held)));
    let ramp_up = format!(" (after {ramp_up_s:.3} s of ramp-up)");
    let ramp_up = if ramp_up_s > 0.0 { ramp_up } else { String::new() };
    let (served, due) = (grouped(connections.served), grouped(connections.due));
    format!("{served} of {due} while measuring{ramp_up}{}", held.unwrap_or_default())
}

/// All successful responses, and those that the rate leaves out.
fn complete(outcome: &Outcome) -> String {
    let all = grouped(outcome.requests);
    match outcome.requests_late {
        0 => all,
        late => format!("{all}, of which {} came after the end", grouped(late)),
    }
}

pub(super) fn failures(errors: &Errors) -> String {
    let kinds: Vec<String> = errors
        .named()
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{kind} {}", grouped(*count)))
        .collect();
    match errors.total() {
        0 => "0".to_owned(),
        total => format!("{} ({})", grouped(total), kinds.join(", ")),
    }
}

fn statuses(outcome: &Outcome) -> String {
    let others = || outcome.statuses.iter().filter(|(status, _)| !(200..300).contains(*status));
    let total: u64 = others().map(|(_, count)| count).sum();
    let each: Vec<String> =
        others().map(|(status, count)| format!("{status}: {}", grouped(*count))).collect();
    match total {
        0 => "0".to_owned(),
        total => format!("{} ({})", grouped(total), each.join(", ")),
    }
}

fn who_worked(page: &mut TableText, outcome: &Outcome) {
    page.line("Generator", &cpu(&outcome.generator, outcome.sent));
    page.line("", &outcome.generator.verdict);
    page.line("Kernel counted", &kernel(&outcome.kernel));
    if outcome.steal_share >= WORTH_A_WORD {
        let text = format!("{} of the whole machine's CPU time", percent(outcome.steal_share));
        page.line("Stolen", &text);
    }
}

fn cpu(generator: &GeneratorUsage, sent: u64) -> String {
    let each = match sent {
        0 => String::new(),
        sent => format!(" ({:.2} µs per request)", generator.cpu_s * 1e6 / real(sent)),
    };
    format!(
        "{:.2} s of CPU{each}, {} of its threads' time; the busiest {}",
        generator.cpu_s,
        percent(generator.cpu_share),
        percent(generator.busiest_thread_share)
    )
}

fn kernel(kernel: &Kernel) -> String {
    let all = [
        ("retransmits", kernel.retransmits),
        ("listen overflows", kernel.listen_overflows),
        ("listen drops", kernel.listen_drops),
        ("SYN cookies", kernel.syn_cookies),
        ("resets sent", kernel.resets),
    ];
    let counts = all.map(|(name, count)| format!("{name} {}", grouped(count)));
    format!("{} (whole machine)", counts.join(", "))
}
