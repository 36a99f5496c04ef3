//! Describes a scenario in a sentence.

use super::{GeneratorKind, ModelSpec, ScenarioSpec};
use crate::figures::{counted, grouped, grouped_text};

impl ScenarioSpec {
    /// Describes the load in a sentence.
    pub fn sentence(&self) -> String {
        let connections = counted(self.connections, "connection");
        let probes = grouped(self.probes);
        let load = match (self.model, self.rate) {
            (ModelSpec::Closed, _) => {
                format!("{connections}, each of which sends a request once it has a response")
            }
            (ModelSpec::Open, rate) => format!(
                "{} requests per second over {connections}, independent of the server; latency \
                 counts from when each was due",
                grouped_text(&rate.unwrap_or_default().to_string())
            ),
            (ModelSpec::Hold, None) => format!(
                "{connections}, idle, are held, while {probes} among them send one request after \
                 the other"
            ),
            (ModelSpec::Hold, Some(rate)) => format!(
                "{connections}, idle, are held, while {probes} among them send {} requests per \
                 second",
                grouped_text(&rate.to_string())
            ),
            (ModelSpec::Churn, _) => {
                format!("{connections} at once, a new one for each request")
            }
        };
        let end = match self.requests {
            Some(requests) => format!("until {} have a response", counted(requests, "request")),
            None => format!("for {} s", self.duration.as_secs_f64()),
        };
        let warm = match self.warm_up {
            warm_up if warm_up.is_zero() => String::new(),
            warm_up => format!(", after {} s of the same that do not count", warm_up.as_secs_f64()),
        };
        let kept = match (self.model, self.keep_alive) {
            (ModelSpec::Churn, _) | (_, true) => "",
            (_, false) => ", with a connection for each request",
        };
        let depth = match self.pipeline {
            1 if self.http2 => ", by HTTP/2".to_owned(),
            1 => String::new(),
            depth if self.http2 => format!(", {depth} streams at once on each by HTTP/2"),
            depth => format!(", {depth} requests under way at once on each (pipelined)"),
        };
        let coded = match self.coding {
            Some(coding) => format!(", which accepts {} alone", coding.name()),
            None => String::new(),
        };
        let who = match self.generator {
            GeneratorKind::Own => String::new(),
            other => format!("by {}: ", other.word()),
        };
        format!("{who}{load}{kept}{depth}{coded}, {end}{warm}.")
    }
}
