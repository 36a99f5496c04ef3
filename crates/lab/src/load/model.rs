//! Describes a plan in words, numbers included.

use std::fmt::Write;
use std::time::Duration;

use crate::figures::counted;
use crate::outcome::ModelSummary;
use crate::plan::{BackendChoice, HttpVersion, LoadModel, LoadPlan, RateStage};

/// Stages of one length that are named one by one, at most.
const STAGES_NAMED: usize = 4;

/// The protocol of messages.
pub(super) const WEBSOCKET: &str = "WebSocket";

/// Returns the model of a run.
pub(super) fn model(plan: &LoadPlan, threads: u32, io: BackendChoice) -> ModelSummary {
    let name = match plan.load {
        LoadModel::Closed if !plan.keep_alive => "churn",
        LoadModel::Closed => "closed",
        LoadModel::Open { .. } => "open",
        LoadModel::Ramp { .. } => "ramp",
        LoadModel::Hold { .. } => "hold",
    };
    ModelSummary {
        name: name.to_owned(),
        sentence: sentence(plan),
        connections: plan.connections,
        rate_per_s: plan.last_rate(),
        pipeline: plan.pipeline,
        protocol: match plan.websocket {
            Some(_) => WEBSOCKET.to_owned(),
            None => plan.http.name().to_owned(),
        },
        keep_alive: plan.keep_alive,
        threads,
        io: if io == BackendChoice::Uring { "uring" } else { "epoll" }.to_owned(),
    }
}

fn sentence(plan: &LoadPlan) -> String {
    let connections = counted(plan.connections, "connection");
    let mut text = match plan.load {
        LoadModel::Closed if !plan.keep_alive => {
            let places = counted(plan.connections, "place");
            format!(
                "Churn: each of {places} opens a new connection for every request, one after the \
                 other; latency counts from beginning to connect."
            )
        }
        LoadModel::Closed => format!(
            "Closed loop: each of {connections} sends a request once it has a response, so a \
             stall of the server stops the requests too."
        ),
        LoadModel::Open { rate_per_s } => format!(
            "Open loop: {} are due, evenly, on {connections}; latency counts from when each was \
             due, so nothing is hidden by a stall.",
            rate(rate_per_s)
        ),
        LoadModel::Ramp { ref stages } => format!(
            "Ramp: an open load on {connections}, {}; latency counts from when each was due.",
            steps(stages)
        ),
        LoadModel::Hold { idle, rate_per_s } => {
            let how = rate_per_s.map_or_else(
                || "send a request once they have a response".to_owned(),
                |per_s| format!("send {}, counted from when each is due", rate(per_s)),
            );
            let idle = counted(idle, "idle connection");
            format!("Hold: {idle} are held, while {connections} among them {how}.")
        }
    };
    add_details(plan, &mut text);
    text
}

fn add_details(plan: &LoadPlan, text: &mut String) {
    let mut add = |detail: std::fmt::Arguments<'_>| {
        write!(text, " {detail}").expect("a string takes everything");
    };
    let depth = plan.pipeline;
    match plan.http {
        HttpVersion::Http2 if depth > 1 => {
            add(format_args!("HTTP/2: up to {depth} streams are open on each connection at once."));
        }
        HttpVersion::Http2 => add(format_args!("Requests are of HTTP/2, one stream at a time.")),
        _ if depth > 1 && plan.websocket.is_none() => {
            add(format_args!(
                "Pipelined: up to {depth} requests are under way on each connection."
            ));
        }
        _ => {}
    }
    if let Some(load) = plan.websocket {
        let what = if load.is_broadcast { "is sent to all connections" } else { "comes back" };
        add(format_args!(
            "Over WebSockets: a request is a message of {}, which {what}.",
            counted(load.bytes as u64, "byte")
        ));
    }
    if !plan.keep_alive && !matches!(plan.load, LoadModel::Closed) {
        add(format_args!("Each request has a connection of its own."));
    }
    if plan.http == HttpVersion::Http10 {
        add(format_args!("Requests are of HTTP/1.0."));
    }
    if let Some(rate) = plan.slowness.read_bytes_per_s {
        add(format_args!("Slow readers: each reads {rate} bytes per second."));
    }
    if let Some(rate) = plan.slowness.send_bytes_per_s {
        add(format_args!("Slow senders: each sends {rate} bytes per second."));
    }
    if plan.requests.len() > 1 {
        let count = plan.requests.len();
        add(format_args!("{count} kinds of requests are sent by their weights."));
    }
    if !plan.warm_up.is_zero() {
        add(format_args!("Before that, {} of the same were not counted.", seconds(plan.warm_up)));
    }
}

/// Stages of one length by their number, others one by one.
fn steps(stages: &[RateStage]) -> String {
    let each =
        |stage: &RateStage| format!("{} at {}", seconds(stage.length), rate(stage.rate_per_s));
    let is_even = stages.windows(2).all(|two| two[0].length == two[1].length);
    match stages {
        [first, .., last] if is_even && stages.len() > STAGES_NAMED => format!(
            "in {} steps of {}, from {} to {}",
            stages.len(),
            seconds(first.length),
            rate(first.rate_per_s),
            rate(last.rate_per_s)
        ),
        _ => stages.iter().map(each).collect::<Vec<_>>().join(", then "),
    }
}

fn rate(per_s: f64) -> String {
    format!("{per_s} requests per second")
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::model;
    use crate::figures::grouped;
    use crate::plan::{BackendChoice, HttpVersion, LoadModel, LoadPlan};

    #[test]
    fn every_sentence_holds_its_numbers() {
        let mut plan = LoadPlan::closed("http://a/", 50);
        assert!(model(&plan, 1, BackendChoice::Epoll).sentence.contains("each of 50 connections"));
        plan.pipeline = 16;
        assert!(model(&plan, 1, BackendChoice::Epoll).sentence.contains("up to 16 requests"));
        plan.http = HttpVersion::Http2;
        let streams = model(&plan, 1, BackendChoice::Epoll);
        assert!(streams.sentence.contains("up to 16 streams"), "{}", streams.sentence);
        assert_eq!(streams.protocol, "HTTP/2");
        plan.load = LoadModel::Open { rate_per_s: 10_000.0 };
        let open = model(&plan, 1, BackendChoice::Uring);
        assert!(open.sentence.contains("10000 requests per second"), "{}", open.sentence);
        assert_eq!((open.name.as_str(), open.io.as_str()), ("open", "uring"));
        plan.load = LoadModel::Hold { idle: 100_000, rate_per_s: Some(5.0) };
        let hold = model(&plan, 1, BackendChoice::Uring).sentence;
        assert!(hold.contains("100,000 idle") && hold.contains("send 5 requests"), "{hold}");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped).join(" "), "1 999 1,000 1,234,567");
    }
}
