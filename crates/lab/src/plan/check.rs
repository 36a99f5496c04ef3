//! Validates a plan before anything is opened.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gustnado_tasks::descriptor_limit;

use super::round::{ROUND_MAX, round_len};
use super::{
    BackendChoice, DESCRIPTORS_APART, HttpVersion, LoadModel, LoadPlan, PlanError, RateStage,
    RequestSpec, STAMP_BYTES, SlowClients, StopCondition, UrlParts,
};

/// Descriptors that every run needs apart from its connections.
const DESCRIPTORS_APART_MIN: u64 = 24;
/// Bytes of the longest message over a WebSocket.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Descriptors that a ring needs for itself.
const RING_DESCRIPTORS: u64 = 6;

impl LoadPlan {
    /// Returns a closed loop of `connections` connections on one URL with default values. It has no
    /// end yet.
    pub fn closed(url: &str, connections: u64) -> Self {
        let ask = RequestSpec {
            url: url.to_owned(),
            targets: Vec::new(),
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
            weight: 1,
        };
        Self {
            requests: vec![ask],
            load: LoadModel::Closed,
            end: StopCondition::default(),
            ramp_up_max: Duration::from_secs(10),
            warm_up: Duration::ZERO,
            connections,
            pipeline: 1,
            keep_alive: true,
            http: super::HttpVersion::default(),
            websocket: None,
            threads: None,
            io: None,
            sources: Vec::new(),
            tls: super::ConnectorSettings::default(),
            unix_socket: None,
            statuses: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(30),
            check_every: 100,
            slowness: SlowClients::default(),
            trace: None,
        }
    }

    /// Validates the plan, without resolving names or opening anything.
    ///
    /// # Errors
    /// [`PlanError`]: the first mistake.
    pub fn check(&self) -> Result<(), PlanError> {
        self.check_numbers()?;
        self.check_websocket()?;
        self.check_requests()?;
        self.check_load()?;
        self.check_sources()?;
        self.check_room()
    }

    /// Returns whether every connection is to have a response before measuring begins.
    pub(crate) fn ramps_up(&self) -> bool {
        self.end.requests.is_none() && !self.ramp_up_max.is_zero()
    }

    /// Connections with requests, and idle ones.
    pub(crate) fn all_connections(&self) -> u64 {
        let idle = if let LoadModel::Hold { idle, .. } = self.load { idle } else { 0 };
        self.connections.saturating_add(idle)
    }

    /// Requests per second in all, if the plan has a rate.
    pub(crate) fn last_rate(&self) -> Option<f64> {
        match &self.load {
            LoadModel::Closed => None,
            LoadModel::Open { rate_per_s } => Some(*rate_per_s),
            LoadModel::Ramp { stages } => stages.last().map(|stage| stage.rate_per_s),
            LoadModel::Hold { rate_per_s, .. } => *rate_per_s,
        }
    }

    /// Returns whether there are more connections than descriptors.
    pub(crate) fn needs_rings(&self) -> bool {
        self.all_connections() > descriptors_for_connections(limit())
    }

    /// Returns whether a response with this status is successful.
    pub(crate) fn accepts(&self, status: u16) -> bool {
        let is_in = |(from, to): &(u16, u16)| (*from..=*to).contains(&status);
        if self.statuses.is_empty() { is_in(&(200, 299)) } else { self.statuses.iter().any(is_in) }
    }

    fn check_requests(&self) -> Result<(), PlanError> {
        if self.requests.is_empty() {
            return wrong("there is nothing to request: give a URL");
        }
        let mut hosts = Vec::new();
        for ask in &self.requests {
            let url = UrlParts::parse(&ask.url)?;
            if ask.weight == 0 {
                let why = "its weight must be 1 or more".to_owned();
                return Err(PlanError::Request { url: ask.url.clone(), why });
            }
            hosts.push((url.authority(), ask.targets.clone()));
        }
        if round_len(self.requests.iter().map(|ask| ask.weight)) > ROUND_MAX {
            return wrong(format!("the weights come to more than {ROUND_MAX}: give smaller ones"));
        }
        hosts.sort();
        hosts.dedup();
        if (hosts.len() as u64) > self.connections {
            let hosts = hosts.len();
            return wrong(format!(
                "{} connections cannot reach {hosts} hosts: give {hosts} connections or more",
                self.connections
            ));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        if !(1..=1_000_000).contains(&self.connections) {
            return wrong(format!("connections must be 1 to 1,000,000, not {}", self.connections));
        }
        if !(1..=1024).contains(&self.pipeline) {
            return wrong(format!(
                "requests at once on a connection must be 1 to 1,024, not {}",
                self.pipeline
            ));
        }
        if self.pipeline > 1 && !self.keep_alive {
            return wrong(
                "several requests at once on a connection need connections that are kept: take \
                 one of the two away",
            );
        }
        if self.threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return wrong("threads must be 1 to 1,024");
        }
        let SlowClients { read_bytes_per_s, send_bytes_per_s } = self.slowness;
        if read_bytes_per_s == Some(0) || send_bytes_per_s == Some(0) {
            return wrong("a slow client needs 1 byte per second at least");
        }
        if self.connect_timeout.is_zero() || self.response_timeout.is_zero() {
            return wrong("time-outs must be longer than nothing");
        }
        Ok(())
    }

    fn check_websocket(&self) -> Result<(), PlanError> {
        let Some(load) = self.websocket else { return Ok(()) };
        if self.http != HttpVersion::Http11 || !self.keep_alive {
            return wrong(
                "WebSockets are opened by HTTP/1.1, on connections that are kept: take one of the \
                 two away",
            );
        }
        if self.requests.iter().any(|ask| ask.method != "GET" || !ask.body.is_empty()) {
            return wrong("a WebSocket is opened by a GET without a body: leave both out");
        }
        if load.bytes > MESSAGE_BYTES_MAX {
            return wrong(format!("messages must have {MESSAGE_BYTES_MAX} bytes at most"));
        }
        if load.is_broadcast && load.bytes < STAMP_BYTES {
            return wrong(format!(
                "messages to all say when they were sent, so they have {STAMP_BYTES} bytes at \
                 least, not {}",
                load.bytes
            ));
        }
        Ok(())
    }

    fn check_load(&self) -> Result<(), PlanError> {
        let is_ramp = matches!(self.load, LoadModel::Ramp { .. });
        if !is_ramp && self.end == StopCondition::default() {
            return wrong("a run needs an end: a number of requests, or a duration");
        }
        if self.end.requests == Some(0) || self.end.after.is_some_and(|after| after.is_zero()) {
            return wrong("the end must come after something: 1 request or more, or some time");
        }
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0 && rate <= 1e8;
        match self.load {
            LoadModel::Open { rate_per_s: rate }
            | LoadModel::Hold { rate_per_s: Some(rate), .. }
                if !is_rate(rate) =>
            {
                wrong(format!("a rate must be above 0 and at most 100,000,000, not {rate}"))
            }
            LoadModel::Ramp { ref stages } => {
                let is_good = |of: &RateStage| is_rate(of.rate_per_s) && !of.length.is_zero();
                if !(1..=1000).contains(&stages.len()) || !stages.iter().all(is_good) {
                    return wrong(
                        "a ramp needs 1 to 1,000 steps, each with a rate above 0 and some length",
                    );
                }
                Ok(())
            }
            LoadModel::Hold { idle, .. } if !(1..=10_000_000).contains(&idle) => {
                wrong(format!("connections to hold must be 1 to 10,000,000, not {idle}"))
            }
            LoadModel::Hold { .. } if !self.keep_alive => {
                wrong("connections that are held are kept alive: take one of the two away")
            }
            _ => Ok(()),
        }
    }

    fn check_sources(&self) -> Result<(), PlanError> {
        let Some(first) = self.sources.first() else { return Ok(()) };
        if self.unix_socket.is_some() {
            return wrong("a Unix socket has no source addresses: take one of the two away");
        }
        if self.sources.iter().any(|source| source.is_ipv4() != first.is_ipv4()) {
            return wrong("source addresses must all be IPv4, or all be IPv6");
        }
        for ask in &self.requests {
            let url = UrlParts::parse(&ask.url)?;
            let host = url.host();
            let named: Option<IpAddr> = host.parse().ok();
            let reached: Vec<IpAddr> = if ask.targets.is_empty() {
                named.into_iter().collect()
            } else {
                ask.targets.iter().map(SocketAddr::ip).collect()
            };
            if reached.iter().any(|target| target.is_ipv4() != first.is_ipv4()) {
                return Err(PlanError::Family { host: host.to_owned() });
            }
        }
        Ok(())
    }

    /// Checks that there are ports and descriptors for all connections.
    fn check_room(&self) -> Result<(), PlanError> {
        let connections = self.all_connections();
        self.check_descriptors(connections, limit())?;
        if self.unix_socket.is_some() {
            return Ok(());
        }
        let targets: usize = self.requests.iter().map(|ask| ask.targets.len().max(1)).sum();
        let per_target = connections.div_ceil(targets as u64);
        let sources = per_target.div_ceil(local_ports());
        if sources > (self.sources.len() as u64).max(1) {
            return Err(PlanError::Ports { connections: per_target, sources });
        }
        Ok(())
    }

    /// - `limit`: the descriptors that this process may have.
    fn check_descriptors(&self, connections: u64, limit: u64) -> Result<(), PlanError> {
        let left = descriptors_for_connections(limit);
        if connections <= left {
            return Ok(());
        }
        if self.io == Some(BackendChoice::Epoll) {
            return wrong(format!(
                "{connections} connections are more than the {left} descriptors that are left for \
                 them with epoll: take io_uring, or raise the limit with ulimit -n"
            ));
        }
        // A ring's table of direct descriptors is as long as the limit, and each ring has some
        // ordinary ones for itself.
        let table = limit.saturating_sub(DESCRIPTORS_APART);
        let rings = if table > 0 { connections.div_ceil(table) } else { u64::MAX };
        if rings.saturating_mul(RING_DESCRIPTORS) > left {
            let enough = connections + DESCRIPTORS_APART;
            return wrong(format!(
                "{connections} connections are too many for a process that may have {limit} \
                 descriptors: raise that with ulimit -n {enough}, or give at most {left} \
                 connections"
            ));
        }
        Ok(())
    }
}

/// Ephemeral ports for each pair of addresses.
fn local_ports() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.unwrap_or_default();
    let mut ends = text.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if last >= first => last - first + 1,
        // The kernel's default.
        _ => 28_232,
    }
}

fn limit() -> u64 {
    descriptor_limit() as u64
}

/// Under a low limit fewer are kept apart, so that some are left.
fn descriptors_for_connections(limit: u64) -> u64 {
    limit.saturating_sub(DESCRIPTORS_APART.min(limit / 4).max(DESCRIPTORS_APART_MIN))
}

fn wrong<T>(what: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Wrong(what.into()))
}

#[cfg(test)]
mod tests {
    use super::{LoadModel, LoadPlan, PlanError, StopCondition};
    use std::time::Duration;

    type Spoiling = fn(&mut LoadPlan);

    fn good() -> LoadPlan {
        let end = StopCondition { requests: Some(1), after: None };
        LoadPlan { end, ..LoadPlan::closed("http://127.0.0.1/", 10) }
    }

    #[test]
    fn a_good_plan_has_nothing_wrong() {
        good().check().expect("nothing is wrong");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrongs: [(&str, Spoiling); 12] = [
            ("a run needs an end", |plan| plan.end = StopCondition::default()),
            ("connections must be", |plan| plan.connections = 0),
            ("requests at once on a connection must be", |plan| plan.pipeline = 0),
            ("several requests at once on a connection need", |plan| {
                (plan.pipeline, plan.keep_alive) = (2, false);
            }),
            ("a rate must be above 0", |plan| plan.load = LoadModel::Open { rate_per_s: 0.0 }),
            ("a rate must be above 0", |plan| plan.load = LoadModel::Open { rate_per_s: f64::NAN }),
            ("give a URL", |plan| plan.requests.clear()),
            ("its weight must be", |plan| plan.requests[0].weight = 0),
            ("no address of the family", |plan| {
                plan.sources = vec![[0_u16, 0, 0, 0, 0, 0, 0, 1].into()];
            }),
            ("1 byte per second", |plan| plan.slowness.read_bytes_per_s = Some(0)),
            ("a ramp needs", |plan| {
                let step = Duration::from_secs(1);
                plan.load = LoadModel::rising((1.0, -1.0), 3, step);
            }),
            ("are kept alive", |plan| {
                plan.load = LoadModel::Hold { idle: 1, rate_per_s: None };
                plan.keep_alive = false;
            }),
        ];
        for (what, spoil) in wrongs {
            let mut plan = good();
            spoil(&mut plan);
            let said = plan.check().expect_err(what).to_string();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn too_many_connections_for_the_descriptors_name_the_limit_and_not_the_ring() {
        let plan = good();
        plan.check_descriptors(40, 64).expect("there is room");
        for connections in [41, 200] {
            let refused = plan.check_descriptors(connections, 64).expect_err("no room").to_string();
            let words = "a process that may have 64 descriptors: raise that with ulimit -n ";
            assert!(refused.contains(words) && !refused.contains("uring"), "{refused}");
        }
        plan.check_descriptors(100_000, 20_000).expect("six rings have room for them");
    }

    #[test]
    fn right_answers_are_those_of_2xx_unless_others_are_named() {
        let mut plan = good();
        assert!(plan.accepts(204) && !plan.accepts(304) && !plan.accepts(199));
        plan.statuses = vec![(200, 200), (300, 399)];
        assert!(plan.accepts(200) && plan.accepts(304) && !plan.accepts(204));
    }

    #[test]
    fn too_many_connections_for_the_ports_say_how_many_sources_are_needed() {
        let mut plan = good();
        let ports = super::local_ports();
        plan.load = LoadModel::Hold { idle: ports * 3, rate_per_s: None };
        let Err(PlanError::Ports { sources: 4, .. }) = plan.check() else {
            panic!("{:?}", plan.check());
        };
        plan.sources = (1..=4_u8).map(|last| [127, 0, 0, last].into()).collect();
        plan.check().expect("four are enough");
    }
}
