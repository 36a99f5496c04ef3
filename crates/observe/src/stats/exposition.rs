//! The counters for Prometheus, from the table.
//!
//! Rows that count the same for different things are one metric with a label. `prometheus-client`
//! writes them: it is kept by Prometheus itself, and has both text formats, where the crate
//! `prometheus` has the older one alone and depends on protobuf. It writes what a collector tells
//! it at the time of asking, so the counters stay where they are.

use std::collections::HashMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, MetricEncoder, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::counter::{Counter, Kind, Visibility};
use super::table::{COUNTERS, Stats};
use crate::certificate_end::CertificateEnd;
use crate::last_reload::LastReload;
use crate::process::Process;

/// A text format of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// The text format of Prometheus, version 0.0.4, which every scraper reads.
    Text,
    /// `OpenMetrics`, version 1.0.
    OpenMetrics,
}

impl Exposition {
    /// Returns its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Returns all shown counters, those of the process, when certificates end, and how the last reload
/// went.
pub fn exposition(
    stats: &Stats,
    process: &Process,
    (certificates, last_reload): (&[CertificateEnd], Option<LastReload>),
    format: Exposition,
) -> String {
    let snapshot = Snapshot {
        values: stats.named().collect(),
        process: *process,
        certificates: certificates.to_vec(),
        last_reload,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut page = String::new();
    let written = match format {
        Exposition::Text => prometheus_text::encode(&mut page, &registry),
        Exposition::OpenMetrics => text::encode(&mut page, &registry),
    };
    written.expect("a string takes all text");
    page
}

/// What a page tells.
#[derive(Debug)]
struct Snapshot {
    values: HashMap<&'static str, u64>,
    process: Process,
    certificates: Vec<CertificateEnd>,
    last_reload: Option<LastReload>,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (at, counter) in COUNTERS.iter().enumerate() {
            let is_shown = counter.visibility != Visibility::InStats && !counter.help.is_empty();
            match counter.label {
                _ if !is_shown => {}
                None => self.write_one(counter, &mut encoder)?,
                // All rows of a metric have to stand together: the first one writes them.
                Some((family, label, _)) => {
                    if !COUNTERS[..at].iter().any(|row| is_of(row, family)) {
                        self.write_family(family, label, counter.kind, &mut encoder)?;
                    }
                }
            }
        }
        self.write_process(&mut encoder)?;
        self.write_certificates(&mut encoder)?;
        self.write_reload(&mut encoder)
    }
}

impl Snapshot {
    fn write_one(&self, counter: &Counter, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let name = format!("gustnado_{}", counter.name);
        let kind = metric_type(counter.kind);
        let mut metric = encoder.encode_descriptor(&name, counter.help, None, kind)?;
        self.write_value(counter, &mut metric)
    }

    fn write_family(
        &self,
        family: &str,
        label: &str,
        kind: Kind,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> fmt::Result {
        let name = format!("gustnado_{family}");
        let help = format!("The counters of docs/counters.md that differ by {label}.");
        let mut metric = encoder.encode_descriptor(&name, &help, None, metric_type(kind))?;
        for row in COUNTERS.iter().filter(|row| is_of(row, family)) {
            let value = row.label.map_or("", |(.., value)| value);
            self.write_value(row, &mut metric.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn write_value(&self, counter: &Counter, metric: &mut MetricEncoder<'_>) -> fmt::Result {
        let value = self.values.get(counter.name).copied().unwrap_or_default();
        match counter.kind {
            Kind::Counter => write_counter(metric, &value),
            Kind::Gauge => metric.encode_gauge(&value),
        }
    }

    /// Writes what every exporter has of its process, by the usual names.
    fn write_process(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) =
            ("process_cpu_seconds", "CPU time of the process, user and system together.");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        #[expect(clippy::cast_precision_loss, reason = "after 285,000 years of CPU time")]
        let seconds = self.process.cpu_ms as f64 / 1_000.0;
        write_counter(&mut metric, &seconds)?;
        let (name, help) =
            ("process_resident_memory_bytes", "Memory of the process that is in RAM.");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&self.process.memory_bytes)
    }

    /// Writes the result of the last reload, as Prometheus itself does; nothing before the first.
    fn write_reload(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(last) = &self.last_reload else { return Ok(()) };
        let name = "gustnado_config_last_reload_successful";
        let help = "Whether the last reload of the configuration was taken.";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&u64::from(last.taken))?;
        let Some(taken_at_s) = last.taken_at_s else { return Ok(()) };
        let name = "gustnado_config_last_reload_success_timestamp_seconds";
        let help = "When a reload was last taken, in seconds since 1970.";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&taken_at_s)
    }

    fn write_certificates(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.certificates.is_empty() {
            return Ok(());
        }
        let help = "When the certificate of a site ends, in seconds since 1970.";
        let name = "gustnado_certificate_expires_seconds";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for CertificateEnd { host, not_after_s } in &self.certificates {
            metric.encode_family(&[("host", &**host)])?.encode_gauge(not_after_s)?;
        }
        Ok(())
    }
}

fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    }
}

/// Writes a counter without an exemplar.
fn write_counter(metric: &mut MetricEncoder<'_>, value: &impl EncodeCounterValue) -> fmt::Result {
    metric.encode_counter::<[(&str, &str); 0], _, f64>(value, None)
}

fn is_of(row: &Counter, family: &str) -> bool {
    row.label.is_some_and(|(other, ..)| other == family)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_in(format: Exposition, certificates: &[CertificateEnd]) -> String {
        page_with(format, certificates, None)
    }

    fn page_with(
        format: Exposition,
        certificates: &[CertificateEnd],
        last_reload: Option<LastReload>,
    ) -> String {
        let stats = Stats { requests: 7, answers_2xx: 6, handshakes_slow: 2, ..Stats::default() };
        let process = Process { cpu_ms: 1_050, memory_bytes: 4_096, socket_memory_bytes: 0 };
        exposition(&stats, &process, (certificates, last_reload), format)
    }

    fn page(certificates: &[CertificateEnd]) -> String {
        page_in(Exposition::Text, certificates)
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
            "process_cpu_seconds_total 1.05\n",
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
    fn open_metrics_names_families_without_their_suffix_and_has_an_end() {
        let page = page_in(Exposition::OpenMetrics, &[]);
        for line in [
            "# TYPE gustnado_requests counter\ngustnado_requests_total 7\n",
            "# TYPE gustnado_connections_open gauge\ngustnado_connections_open 0\n",
            "# TYPE gustnado_answers counter\ngustnado_answers_total{class=\"1xx\"} 0\n",
            "process_cpu_seconds_total 1.05\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(page.ends_with("# EOF\n"), "{page}");
    }

    #[test]
    fn the_last_reload_has_its_result_and_the_time_of_the_last_that_was_taken() {
        let page = |taken, taken_at_s| {
            let (reason, kept) = (String::new(), Vec::new());
            let last = LastReload { at_s: 9, taken, reason, kept, taken_at_s };
            page_with(Exposition::Text, &[], Some(last))
        };
        let refused = page(false, None);
        assert!(refused.ends_with("\ngustnado_config_last_reload_successful 0\n"), "{refused}");
        let before = page(false, Some(7));
        for line in [
            "# TYPE gustnado_config_last_reload_successful gauge\n",
            "\ngustnado_config_last_reload_successful 0\n",
            "\ngustnado_config_last_reload_success_timestamp_seconds 7\n",
        ] {
            assert!(before.contains(line), "{line}: {before}");
        }
        assert!(page(true, Some(9)).contains("\ngustnado_config_last_reload_successful 1\n"));
        assert!(!page_in(Exposition::Text, &[]).contains("last_reload"));
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
