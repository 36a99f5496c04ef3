//! Counters in machine-readable form: a page of JSON, and a periodic line of text.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gustnado_tasks::sleep;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::handler::{Handler, HandlerKind};
use crate::response::Response;
use gustnado_observe::certificate_end::CertificateEnd;
use gustnado_observe::last_reload::LastReload;
use gustnado_observe::process::Process;
use gustnado_observe::server_stats::ServerStats;
use gustnado_observe::stats::Stats;

/// Returns a handler that responds with the server's counters as JSON, in sum and by worker. The
/// names are those of [`Stats`] and `WorkerStats`, with `cpu_ms`, `memory_bytes` and
/// `socket_memory_bytes` of the whole process.
///
/// ```no_run
/// gustnado::Server::new().get("/stats", gustnado::stats_page()).listen("127.0.0.1:0")?.run()
/// # ; gustnado::Result::Ok(())
/// ```
pub fn stats_page() -> Handler {
    Handler(HandlerKind::OfServer(Arc::new(|_, app| {
        Response::json_text(json(app)).header("Cache-Control", "no-store")
    })))
}

fn json(app: &dyn ServerStats) -> String {
    let (stats, process) = app.stats_of_all();
    let Process { cpu_ms, memory_bytes, socket_memory_bytes } = process;
    let mut text = begin_json(
        app,
        [
            ("cpu_ms", cpu_ms),
            ("memory_bytes", memory_bytes),
            ("socket_memory_bytes", socket_memory_bytes),
        ],
    );
    push_numbers(&mut text, stats.named());
    push_certificates(&mut text, &app.certificate_ends());
    if let Some(last) = app.last_reload() {
        push_reload(&mut text, &last);
    }
    text.push_str(",\"by_worker\":[");
    for (place, worker) in app.stats_by_worker().iter().enumerate() {
        text.push_str(if place > 0 { ",{" } else { "{" });
        _ = write!(text, "\"worker\":{}", worker.worker);
        push_numbers(&mut text, worker.named());
        text.push('}');
    }
    text.push_str("]}\n");
    text
}

/// Begins a JSON object with the server's version, backend and scheduler, and some numbers.
pub fn begin_json(
    server: &dyn ServerStats,
    numbers: impl IntoIterator<Item = (&'static str, u64)>,
) -> String {
    // The words are constants of ours without anything that JSON would need escaped.
    let mut text = format!(
        "{{\"version\":\"{}\",\"backend\":\"{}\",\"scheduler\":\"{}\"",
        env!("CARGO_PKG_VERSION"),
        server.backend(),
        server.scheduler(),
    );
    push_numbers(&mut text, numbers);
    text
}

fn push_numbers(text: &mut String, numbers: impl IntoIterator<Item = (&'static str, u64)>) {
    for (name, number) in numbers {
        // Writing to a string cannot fail.
        _ = write!(text, ",\"{name}\":{number}");
    }
}

/// Adds when certificates end. A server without TLS has no such member.
fn push_certificates(text: &mut String, ends: &[CertificateEnd]) {
    for (place, CertificateEnd { host, not_after_s }) in ends.iter().enumerate() {
        text.push_str(if place > 0 { "," } else { ",\"certificates\":[" });
        // A name of a certificate may have what no host has, and JSON would need escaped.
        let is_plain = |one: &char| !one.is_control() && !matches!(one, '"' | '\\');
        let host: String = host.chars().filter(is_plain).collect();
        _ = write!(text, "{{\"host\":\"{host}\",\"expires_s\":{not_after_s}}}");
    }
    text.push_str(if ends.is_empty() { "" } else { "]" });
}

/// Adds the result of the last reload.
fn push_reload(text: &mut String, last: &LastReload) {
    let LastReload { at_s, taken, reason, kept, .. } = last;
    _ = write!(text, ",\"last_reload\":{{\"at_s\":{at_s},\"taken\":{taken},\"reason\":\"");
    for letter in reason.chars() {
        _ = match letter {
            '"' | '\\' => write!(text, "\\{letter}"),
            letter if letter.is_control() => write!(text, "\\u{:04x}", u32::from(letter)),
            letter => write!(text, "{letter}"),
        };
    }
    text.push_str("\",\"needs_restart\":[");
    for (place, name) in kept.iter().enumerate() {
        _ = write!(text, "{}\"{name}\"", if place > 0 { "," } else { "" });
    }
    text.push_str("]}");
}

/// Writes a line of statistics to standard error at each interval, until the server has ended.
pub async fn write_regularly(server: Weak<dyn ServerStats>, interval: Duration) {
    let mut before = Stats::default();
    loop {
        sleep(interval).await;
        let Some(server) = server.upgrade() else { return };
        let stats = server.stats();
        write_line(&line(&stats, &before));
        before = stats;
    }
}

/// Returns a line of logfmt: totals since the start, and rates since the previous line.
fn line(stats: &Stats, before: &Stats) -> String {
    let span_ms = stats.uptime_ms.saturating_sub(before.uptime_ms).max(1);
    let rate = |now: u64, then: u64| now.saturating_sub(then).saturating_mul(1_000) / span_ms;
    let mut text = format!(
        "event=stats requests_per_s={} bytes_per_s={}",
        rate(stats.requests, before.requests),
        rate(stats.bytes_sent, before.bytes_sent)
    );
    for (name, number) in stats.named_in_line() {
        // Writing to a string cannot fail.
        _ = write!(text, " {name}={number}");
    }
    text.push('\n');
    text
}

/// Writes a whole line or nothing: a slow reader must not block a worker.
fn write_line(line: &str) {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let is_open = poll(&mut fds, Some(&at_once)) == Ok(1) && fds[0].revents() == PollFlags::OUT;
    if is_open {
        // The line is smaller than a pipe with room accepts at once. An error cannot be reported
        // anywhere.
        _ = stderr.lock().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_observe::stats::WorkerStats;

    #[test]
    fn a_line_has_totals_and_the_rates_since_the_one_before() {
        let before = Stats { uptime_ms: 1_000, requests: 100, ..Stats::default() };
        let now = Stats { uptime_ms: 3_000, requests: 700, bytes_sent: 4_000, ..before };
        let line = line(&now, &before);
        let start = "event=stats requests_per_s=300 bytes_per_s=2000 ready=0 uptime_ms=3000 ";
        assert!(line.starts_with(start) && line.ends_with("faults=0\n"), "{line}");
        assert!(line.contains(" requests=700 ") && line.len() < 1_024, "{line}");
    }

    #[test]
    fn the_last_reload_is_valid_json_whatever_its_reason() {
        let mut text = String::new();
        let reason = "a \"b\"\nc\\".to_owned();
        let kept = vec!["workers", "io"];
        let last = LastReload { at_s: 9, taken: false, reason, kept, taken_at_s: None };
        push_reload(&mut text, &last);
        let expected = concat!(
            r#","last_reload":{"at_s":9,"taken":false,"reason":"a \"b\"\u000ac\\","#,
            r#""needs_restart":["workers","io"]}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn certificates_are_a_list_where_there_are_some() {
        let text = |ends: &[CertificateEnd]| {
            let mut text = String::new();
            push_certificates(&mut text, ends);
            text
        };
        let end = |host: &str| CertificateEnd { host: host.to_owned(), not_after_s: 9 };
        assert_eq!(text(&[]), "");
        assert_eq!(
            text(&[end("a.test"), end("b\"\n.test")]),
            ",\"certificates\":[{\"host\":\"a.test\",\"expires_s\":9},\
             {\"host\":\"b.test\",\"expires_s\":9}]"
        );
    }

    #[test]
    fn the_names_and_their_order_are_what_readers_know() {
        let names = |all: &mut dyn Iterator<Item = (&'static str, u64)>| -> Vec<&'static str> {
            all.map(|(name, _)| name).collect()
        };
        let server = "ready uptime_ms connections_open connections_accepted connections_added \
            connections_removed tasks_live requests bytes_sent answers_1xx answers_2xx \
            answers_3xx answers_4xx answers_5xx bad_requests proxy_refused http2_connections \
            http2_resets http2_stream_errors http2_refused http2_errors http2_ping_timeouts \
            http2_floods_resets http2_floods_errors http2_floods_idle http2_floods_fields \
            websockets_open websockets websocket_received websocket_sent \
            websocket_closes_normal websocket_closes_error websocket_closes_application \
            websocket_closes_lost websocket_pings_lost websocket_violations \
            websocket_origins_refused handshakes \
            handshakes_resumed handshakes_failed handshakes_refused handshakes_not_tls \
            handshakes_unknown_name handshakes_incompatible handshakes_client_certificate \
            handshakes_alert handshakes_malformed handshakes_plain handshakes_slow \
            handshakes_evicted handshakes_lost handshakes_tls12 handshakes_tls13 \
            handshakes_aes128 handshakes_aes256 handshakes_chacha20 handshakes_ecdsa_aes128 \
            handshakes_ecdsa_aes256 handshakes_ecdsa_chacha20 handshakes_rsa_aes128 \
            handshakes_rsa_aes256 handshakes_rsa_chacha20 handshakes_other_cipher \
            handshakes_x25519mlkem768 handshakes_x25519 handshakes_secp256r1 \
            handshakes_secp384r1 handshakes_other_group clients_over timeouts \
            idle_closed never_asked files_cut files_exhausted \
            archives_open archives_begun archives_refused archives_failed \
            deltas_made deltas_sent accept_exhausted accept_failed \
            evicted accept_paused handlers_running handlers_queued \
            handlers_refused access_refused_address access_refused_rate access_refused_password \
            access_refused_busy access_refused_signature access_refused_expired \
            access_refused_origin responses_gzip responses_zstd responses_brotli compressions \
            compress_bytes_in compress_bytes_out compress_refused variants_cached variant_bytes \
            password_checks \
            panics bodies_cut heads_cut sends_cut bodies_spooled spool_bytes \
            spool_failed memory_heads memory_bodies memory_sends memory_cache memory_receives \
            memory_queue memory_websockets waits log_lines_lost \
            workers_held faults";
        let worker = "connections_open connections_added connections_removed tasks_added \
            tasks_ended requests bytes_sent answers_4xx answers_5xx bad_requests timeouts \
            idle_closed never_asked files_cut panics bodies_cut heads_cut sends_cut waits \
            cpu_ms";
        assert_eq!(names(&mut Stats::default().named()).join(" "), server);
        assert_eq!(names(&mut WorkerStats::default().named()).join(" "), worker);
        let is_left_out =
            |name: &&str| !names(&mut Stats::default().named_in_line()).contains(name);
        let left_out: Vec<_> = server.split_whitespace().filter(is_left_out).collect();
        let is_of_a_family = |name: &&str| {
            let families = [
                "access_",
                "archives_",
                "compress",
                "deltas_",
                "handshakes_",
                "http2_floods_",
                "memory_w",
                "password_",
                "responses_",
                "variant",
                "websocket_",
            ];
            families.iter().any(|family| name.starts_with(family))
        };
        assert!(left_out.len() == 61 && left_out.iter().all(is_of_a_family), "{left_out:?}");
    }
}
