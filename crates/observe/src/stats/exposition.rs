//! The counters in the text format of Prometheus, written from the table.
//!
//! Rows that count the same for different things are one metric with a label. The format is that of
//! version 0.0.4, which every scraper reads.

use std::collections::HashMap;
use std::fmt::Write;

use super::table::{COUNTERS, Counter, Kind, Stats, Visibility};
use crate::certificate_end::CertificateEnd;
use crate::process::Process;

/// Returns all shown counters, those of the process, and when certificates end.
pub fn exposition(stats: &Stats, process: &Process, certificates: &[CertificateEnd]) -> String {
    let values: HashMap<&str, u64> = stats.named().collect();
    let mut page = String::new();
    for (at, counter) in COUNTERS.iter().enumerate() {
        let is_shown = counter.visibility != Visibility::InStats && !counter.help.is_empty();
        match counter.label {
            _ if !is_shown => {}
            None => {
                let name = head(&mut page, counter.name, counter.kind, counter.help);
                push(&mut page, &name, "", values.get(counter.name).copied());
            }
            // All rows of a metric have to stand together: the first one writes them.
            Some((family, label, _)) if !COUNTERS[..at].iter().any(|row| is_of(row, family)) => {
                let help = format!("The counters of docs/counters.md that differ by {label}.");
                let name = head(&mut page, family, counter.kind, &help);
                for row in COUNTERS.iter().filter(|row| is_of(row, family)) {
                    let value = row.label.map_or("", |(.., value)| value);
                    let label = format!("{{{label}=\"{value}\"}}");
                    push(&mut page, &name, &label, values.get(row.name).copied());
                }
            }
            Some(_) => {}
        }
    }
    push_process(&mut page, process);
    push_certificates(&mut page, certificates);
    page
}

fn is_of(row: &Counter, family: &str) -> bool {
    row.label.is_some_and(|(other, ..)| other == family)
}

/// Writes what a metric is, and returns its name.
fn head(page: &mut String, name: &str, kind: Kind, help: &str) -> String {
    let (name, kind) = match kind {
        Kind::Counter => (format!("gustnado_{name}_total"), "counter"),
        Kind::Gauge => (format!("gustnado_{name}"), "gauge"),
    };
    // Writing to a string cannot fail, here and below.
    _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
    name
}

fn push(page: &mut String, name: &str, label: &str, value: Option<u64>) {
    if let Some(value) = value {
        _ = writeln!(page, "{name}{label} {value}");
    }
}

/// Writes what every exporter has of its process, by the usual names.
fn push_process(page: &mut String, process: &Process) {
    let Process { cpu_ms, memory_bytes, .. } = process;
    let (whole, millis) = (cpu_ms / 1_000, cpu_ms % 1_000);
    _ = writeln!(
        page,
        "# HELP process_cpu_seconds_total CPU time of the process, user and system together.\n\
         # TYPE process_cpu_seconds_total counter\n\
         process_cpu_seconds_total {whole}.{millis:03}\n\
         # HELP process_resident_memory_bytes Memory of the process that is in RAM.\n\
         # TYPE process_resident_memory_bytes gauge\n\
         process_resident_memory_bytes {memory_bytes}"
    );
}

fn push_certificates(page: &mut String, certificates: &[CertificateEnd]) {
    if certificates.is_empty() {
        return;
    }
    let help = "When the certificate of a site ends, in seconds since 1970.";
    let name = head(page, "certificate_expires_seconds", Kind::Gauge, help);
    for CertificateEnd { host, not_after_s } in certificates {
        let host = host.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        _ = writeln!(page, "{name}{{host=\"{host}\"}} {not_after_s}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(certificates: &[CertificateEnd]) -> String {
        let stats = Stats { requests: 7, answers_2xx: 6, handshakes_slow: 2, ..Stats::default() };
        let process = Process { cpu_ms: 1_050, memory_bytes: 4_096, socket_memory_bytes: 0 };
        exposition(&stats, &process, certificates)
    }

    #[test]
    fn rows_of_a_family_are_one_metric_with_a_label() {
        let page = page(&[]);
        for line in [
            "# TYPE gustnado_requests_total counter\ngustnado_requests_total 7\n",
            "# TYPE gustnado_connections_open gauge\ngustnado_connections_open 0\n",
            "gustnado_answers_total{class=\"1xx\"} 0\ngustnado_answers_total{class=\"2xx\"} 6\n",
            "gustnado_handshakes_failed_by_reason_total{reason=\"slow\"} 2\n",
            "gustnado_handshakes_by_version_total{version=\"TLSv1.3\"} 0\n",
            "gustnado_handshakes_by_cipher_total{cipher=\"other\"} 0\n",
            "process_cpu_seconds_total 1.050\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(!page.contains("certificate_expires"), "there is none: {page}");
    }

    #[test]
    fn every_metric_is_declared_once_before_its_values_which_stand_together() {
        let page = page(&[]);
        let (mut declared, mut current) = (Vec::new(), "");
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                current = rest.split(' ').next().expect("a name");
                assert!(!declared.contains(&current), "{line}");
                declared.push(current);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().expect("a name");
                assert_eq!(name, current, "{line}");
            }
        }
        assert!(declared.len() > 40, "{declared:?}");
    }

    #[test]
    fn certificates_have_their_host_as_a_label() {
        let end = |host: &str| CertificateEnd { host: host.to_owned(), not_after_s: 1_800_000_000 };
        let page = page(&[end("*.a.test"), end("odd\"")]);
        let expected = "# TYPE gustnado_certificate_expires_seconds gauge\n\
            gustnado_certificate_expires_seconds{host=\"*.a.test\"} 1800000000\n\
            gustnado_certificate_expires_seconds{host=\"odd\\\"\"} 1800000000\n";
        assert!(page.ends_with(expected), "{page}");
    }
}
