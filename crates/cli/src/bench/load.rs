//! Reads the flags that make up the load plan.

use super::flags::{all, duration, number, one, pace, rate};
use super::sources;
use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado::config::nearest;
use gustnado_lab::plan::{
    BackendChoice, LoadModel, LoadPlan, RequestSpec, SlowClients, StopCondition,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const CONNECTIONS: u64 = 50;
const DURATION: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_secs(5);

/// Reads and validates the load plan.
///
/// # Errors
/// The first mistake in a flag, or flags that exclude each other.
pub(super) fn plan(matches: &ArgMatches) -> Result<LoadPlan, UsageError> {
    let load = load(matches)?;
    let end = end(matches, &load)?;
    let connections = number(matches, "connections", (1, 1_000_000))?;
    // More connections than requests would stay idle, so the default is lower.
    let usual = end.requests.map_or(CONNECTIONS, |requests| requests.clamp(1, CONNECTIONS));
    let plan = LoadPlan {
        requests: requests(matches)?,
        load,
        end,
        warm_up: duration(matches, "warm-up", Duration::ZERO)?,
        connections: connections.unwrap_or(usual),
        pipeline: number(matches, "pipeline", (1, 1_024))?.unwrap_or(1),
        keep_alive: !matches.get_flag("no-keep-alive"),
        http_1_0: matches.get_flag("http1.0"),
        threads: number(matches, "threads", (1, 1_024))?,
        io: io(matches)?,
        sources: sources::read(all(matches, "source"))?,
        unix_socket: one(matches, "unix-socket").map(PathBuf::from),
        statuses: all(matches, "status").map(statuses).collect::<Result<_, _>>()?,
        connect_timeout: duration(matches, "connect-timeout", Duration::from_secs(5))?,
        response_timeout: duration(matches, "timeout", Duration::from_secs(30))?,
        check_every: number(matches, "check-every", (0, u32::MAX))?.unwrap_or(100),
        slowness: SlowClients {
            read_bytes_per_s: pace(matches, "slow-read")?,
            send_bytes_per_s: pace(matches, "slow-send")?,
        },
        trace: one(matches, "trace").map(PathBuf::from),
    };
    plan.check().map_err(|error| UsageError::of_usage(error.to_string()))?;
    Ok(plan)
}

fn load(matches: &ArgMatches) -> Result<LoadModel, UsageError> {
    let rate_per_s = one(matches, "rate").map(|text| rate("rate", text)).transpose()?;
    if let Some(idle) = number(matches, "hold", (1, 10_000_000))? {
        return Ok(LoadModel::Hold { idle, rate_per_s });
    }
    if let Some(text) = one(matches, "ramp") {
        return ramp(text);
    }
    Ok(rate_per_s.map_or(LoadModel::Closed, |rate_per_s| LoadModel::Open { rate_per_s }))
}

/// `FROM:TO:STEPS[:SECONDS]`
fn ramp(text: &str) -> Result<LoadModel, UsageError> {
    let wrong = |what: &str| {
        let form = "expected FROM:TO:STEPS[:SECONDS] such as 1000:20000:10:5";
        UsageError::of_usage(format!("--ramp: {form}, found {text:?}{what}"))
    };
    let parts: Vec<&str> = text.split(':').collect();
    let (from, to, steps, step) = match parts[..] {
        [from, to, steps] => (from, to, steps, STEP),
        [from, to, steps, seconds] => {
            let seconds = seconds.trim_end_matches('s').parse::<f64>().ok();
            let step = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            let step = step.filter(|step| *step >= Duration::from_millis(100));
            (from, to, steps, step.ok_or_else(|| wrong("; a step lasts 0.1 seconds or more"))?)
        }
        _ => return Err(wrong("")),
    };
    let steps = steps.parse().ok().filter(|steps| (2..=1_000).contains(steps));
    Ok(LoadModel::Ramp {
        from_per_s: rate("ramp", from)?,
        to_per_s: rate("ramp", to)?,
        steps: steps.ok_or_else(|| wrong("; there are 2 to 1000 steps"))?,
        step,
    })
}

fn end(matches: &ArgMatches, load: &LoadModel) -> Result<StopCondition, UsageError> {
    let requests = number(matches, "requests", (1, u64::MAX))?;
    let after = match one(matches, "duration") {
        Some(_) => Some(duration(matches, "duration", DURATION)?),
        None => None,
    };
    if matches!(load, LoadModel::Ramp { .. }) {
        if requests.is_some() || after.is_some() {
            return Err(UsageError::of_usage(
                "--ramp: it is as long as its steps; leave -n and -d out, or write \
                 FROM:TO:STEPS:SECONDS",
            ));
        }
        return Ok(StopCondition::default());
    }
    if after == Some(Duration::ZERO) {
        return Err(UsageError::of_usage("--duration: expected more than nothing, found 0"));
    }
    let usual = requests.is_none().then_some(DURATION);
    Ok(StopCondition { requests, after: after.or(usual) })
}

fn io(matches: &ArgMatches) -> Result<Option<BackendChoice>, UsageError> {
    match one(matches, "io") {
        None | Some("auto") => Ok(None),
        Some("epoll") => Ok(Some(BackendChoice::Epoll)),
        Some("uring" | "io_uring") => Ok(Some(BackendChoice::Uring)),
        Some(found) => {
            let near = nearest(found, ["auto", "uring", "epoll"].into_iter());
            let near = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            let line = format!("--io: expected one of auto, uring, epoll, found {found:?}{near}");
            Err(UsageError::of_usage(line))
        }
    }
}

fn requests(matches: &ArgMatches) -> Result<Vec<RequestSpec>, UsageError> {
    let body = body(matches)?;
    let usual = if body.is_empty() { "GET" } else { "POST" };
    let method = one(matches, "method").unwrap_or(usual);
    let is_token = !method.is_empty() && method.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_token {
        let line = format!("--method: expected a method such as GET or POST, found {method:?}");
        return Err(UsageError::of_usage(line));
    }
    let fields = all(matches, "header").map(field).collect::<Result<Vec<_>, _>>()?;
    let targets = all(matches, "target").map(target).collect::<Result<Vec<_>, _>>()?;
    let asks = all(matches, "url").map(|text| {
        let (weight, url) = weighted(text)?;
        Ok(RequestSpec {
            url: url.to_owned(),
            targets: targets.clone(),
            method: method.to_ascii_uppercase(),
            fields: fields.clone(),
            body: body.clone(),
            weight,
        })
    });
    let asks = asks.collect::<Result<Vec<_>, _>>()?;
    if asks.is_empty() {
        return Err(UsageError::of_usage(
            "bench: expected a URL such as http://127.0.0.1:8080/, found none",
        ));
    }
    Ok(asks)
}

/// `404`, or `3xx` for a whole class.
fn statuses(text: &str) -> Result<(u16, u16), UsageError> {
    let class = text.strip_suffix("xx").and_then(|digit| digit.parse::<u16>().ok());
    let found = match class {
        Some(class) => (1..=5).contains(&class).then(|| (class * 100, class * 100 + 99)),
        None => text.parse().ok().map(|status| (status, status)),
    };
    found.filter(|(from, _)| (200..600).contains(from)).ok_or_else(|| {
        let form = "expected statuses from 200 to 599 such as 200,302 or 2xx,404";
        UsageError::of_usage(format!("--status: {form}, found {text:?}"))
    })
}

/// `3:http://host/` is (3, `http://host/`).
fn weighted(text: &str) -> Result<(u32, &str), UsageError> {
    let wrong = |remedy: &str| {
        let form = "expected a URL such as http://127.0.0.1:8080/ or 3:http://127.0.0.1:8080/";
        UsageError::of_usage(format!("{text}: {form}{remedy}"))
    };
    let Some(at) = text.find("http://") else {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.trim_start_matches("//");
            let remedy = format!("; did you mean --unix-socket {path} http://localhost/?");
            return Err(wrong(&remedy));
        }
        let near = format!("; did you mean http://{text}?");
        let is_other = text.contains("://");
        return Err(wrong(if is_other { "; it loads http:// only" } else { &near }));
    };
    match text[..at].strip_suffix(':') {
        None if at == 0 => Ok((1, text)),
        Some(weight) => match weight.parse() {
            Ok(weight) if weight > 0 => Ok((weight, &text[at..])),
            _ => Err(wrong("; a weight is a whole number from 1 on")),
        },
        None => Err(wrong("")),
    }
}

fn body(matches: &ArgMatches) -> Result<Vec<u8>, UsageError> {
    match (one(matches, "body"), one(matches, "body-file")) {
        (Some(text), _) => Ok(text.as_bytes().to_vec()),
        (None, Some(path)) => std::fs::read(path).map_err(|error| {
            UsageError::of_usage(format!("--body-file: {path} cannot be read: {error}"))
        }),
        (None, None) => Ok(Vec::new()),
    }
}

fn field(text: &str) -> Result<(String, String), UsageError> {
    let wrong = || {
        UsageError::of_usage(format!(
            "--header: expected a field such as `Accept: text/html`, found {text:?}"
        ))
    };
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n', '\0']) {
        return Err(wrong());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

fn target(text: &str) -> Result<SocketAddr, UsageError> {
    text.parse().map_err(|_| {
        let form = "expected an address and a port such as 127.0.0.2:8080";
        UsageError::of_usage(format!("--target: {form}, found {text:?}"))
    })
}
