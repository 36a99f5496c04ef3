//! The memory that a server may hold, as `gustnado check --effective` prints it: the sum, its
//! parts, and the worst case of a connection in each state. Comments of a configuration file.

use std::fmt::Write as _;

use crate::figures::grouped;
use gustnado::config::{Config, Machine, MemoryPlan, Unit};

/// Returns the lines that follow the settings.
pub(crate) fn text(config: &Config, machine: &Machine) -> String {
    let plan = machine.memory_plan(config);
    let size = |bytes| Unit::Bytes.format(bytes);
    let mut text = String::from("\n# Memory that is held at most, by kind.\n");
    let rest = plan.total.saturating_sub(plan.sum());
    for (kind, bytes, note) in [
        ("heads", plan.heads, "request heads and later requests that are not parsed yet"),
        ("bodies", plan.bodies, "request bodies: limit-body-memory"),
        ("sends", plan.sends, "responses that clients have not taken yet"),
        ("cache", plan.cache, "prepared responses: cache-bytes"),
        ("receives", plan.receives, "buffers that requests are received into"),
        ("queue", plan.queue, "requests that wait for a handler or a thread"),
        ("websockets", plan.websockets, "messages of WebSockets, and what compresses them"),
        ("connections", rest, "what is left"),
        ("sum", plan.total, "max-memory"),
    ] {
        // Writing to a string cannot fail.
        _ = writeln!(text, "#   {kind:<12} {:>8}  {note}", size(bytes));
    }
    push_states(&mut text, &plan);
    text
}

fn push_states(text: &mut String, plan: &MemoryPlan) {
    _ = writeln!(text, "# A connection holds at most, outside these kinds:");
    for (state, bytes) in &plan.per_connection {
        _ = writeln!(text, "#   {:>8}  {state}", Unit::Bytes.format(*bytes));
    }
    let most = grouped(plan.connections());
    _ = writeln!(text, "# So {most} connections fit, were all of them in the worst state.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_the_states_and_the_connections_are_told() {
        let config = Config { max_memory: 64 << 20, workers: 2, ..Config::default() };
        let text = text(&config, &Machine::read());
        assert!(text.lines().skip(1).all(|line| line.starts_with("# ")), "{text}");
        for line in [
            "#   heads              8m  request heads and later requests that are not parsed yet",
            "#   bodies            16m  request bodies: limit-body-memory",
            "#   receives           4m  buffers that requests are received into",
            "#   queue              4m  requests that wait for a handler or a thread",
            "#   websockets         4m  messages of WebSockets, and what compresses them",
            "#   connections        4m  what is left",
            "#   sum               64m  max-memory",
            "#      33024  receiving a request",
            "# So 112 connections fit, were all of them in the worst state.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("HTTP/2"), "it is not spoken without TLS\n{text}");
    }

    #[test]
    fn connections_by_http2_have_a_line_where_they_are_taken() {
        let clear = Config { max_memory: 64 << 20, workers: 2, h2c: true, ..Config::default() };
        let by_tls = Config { h2c: false, tls_cert: Some("cert.pem".into()), ..clear.clone() };
        for (config, is_told) in
            [(clear, true), (Config { http2: false, ..by_tls.clone() }, false), (by_tls, true)]
        {
            let text = text(&config, &Machine::read());
            for line in [
                "#     120064  by HTTP/2, all streams together",
                "# So 34 connections fit, were all of them in the worst state.",
            ] {
                assert_eq!(text.lines().any(|found| found == line), is_told, "{line}\n{text}");
            }
        }
    }
}
