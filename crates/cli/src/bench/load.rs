//! Reads the flags that make up the load plan.

use super::flags::{all, duration, number, one, pace, rate};
use super::{rates, requests, sources};
use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado::config::nearest;
use gustnado_lab::plan::{
    BackendChoice, ConnectorSettings, HttpVersion, LoadModel, LoadPlan, SlowClients, StopCondition,
    TlsVersion, Trust, WebSocketLoad,
};
use std::path::PathBuf;
use std::time::Duration;

const CONNECTIONS: u64 = 50;
const DURATION: Duration = Duration::from_secs(10);
const RAMP_UP: Duration = Duration::from_secs(10);

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
        requests: requests::read(matches)?,
        load,
        end,
        ramp_up_max: duration(matches, "ramp-up-max", RAMP_UP)?,
        warm_up: duration(matches, "warm-up", Duration::ZERO)?,
        connections: connections.unwrap_or(usual),
        pipeline: streams(matches)?,
        keep_alive: !matches.get_flag("no-keep-alive"),
        http: version(matches),
        websocket: websocket(matches)?,
        threads: number(matches, "threads", (1, 1_024))?,
        io: io(matches)?,
        sources: sources::read(all(matches, "source"))?,
        tls: tls(matches)?,
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
    check_schemes(matches, &plan)?;
    Ok(plan)
}

fn version(matches: &ArgMatches) -> HttpVersion {
    if matches.get_flag("h2") || matches.get_flag("h2c") {
        HttpVersion::Http2
    } else if matches.get_flag("http1.0") {
        HttpVersion::Http10
    } else {
        HttpVersion::Http11
    }
}

/// Reads what messages over a WebSocket are, if requests are that.
fn websocket(matches: &ArgMatches) -> Result<Option<WebSocketLoad>, UsageError> {
    if !matches.get_flag("ws") {
        return Ok(None);
    }
    let bytes = number(matches, "ws-bytes", (0, 16 << 20))?.unwrap_or(64);
    Ok(Some(WebSocketLoad {
        bytes,
        is_binary: matches.get_flag("ws-binary"),
        is_broadcast: matches.get_flag("ws-broadcast"),
    }))
}

/// Reads how many requests are under way at once on each connection.
fn streams(matches: &ArgMatches) -> Result<u32, UsageError> {
    let found = number(matches, "streams", (1, 1_024)).map_err(|mut error| {
        // Once -m was the method.
        if one(matches, "streams").is_some_and(|text| text.starts_with(char::is_alphabetic)) {
            error.line.push_str("; the method is -X");
        }
        error
    })?;
    Ok(found.unwrap_or(1))
}

/// Checks that HTTP/2 is asked for in the way that the URLs need.
fn check_schemes(matches: &ArgMatches, plan: &LoadPlan) -> Result<(), UsageError> {
    let is_tls = |url: &str| url.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let wrong = |flag: &str, other: &str, scheme: &str, url: &str| {
        let line =
            format!("--{flag}: expected {scheme} URLs, found {url}; for others say --{other}");
        Err(UsageError::of_usage(line))
    };
    for url in plan.requests.iter().map(|ask| &*ask.url) {
        if plan.websocket.is_none() && url.get(..2).is_some_and(|s| s.eq_ignore_ascii_case("ws")) {
            let line = format!("expected URLs of http, found {url}; for messages say --ws");
            return Err(UsageError::of_usage(line));
        }
        if matches.get_flag("h2") && !is_tls(url) {
            return wrong("h2", "h2c", "https", url);
        }
        if matches.get_flag("h2c") && is_tls(url) {
            return wrong("h2c", "h2", "http", url);
        }
    }
    Ok(())
}

fn tls(matches: &ArgMatches) -> Result<ConnectorSettings, UsageError> {
    let file = |name| one(matches, name).map(PathBuf::from);
    let trust = match file("cacert") {
        Some(authorities) => Trust::Authorities(authorities),
        None if matches.get_flag("insecure") => Trust::Anyone,
        None => Trust::System,
    };
    let newest = match one(matches, "tls-max") {
        None | Some("1.3") => TlsVersion::V13,
        Some("1.2") => TlsVersion::V12,
        Some(found) => {
            let line = format!("--tls-max: expected 1.2 or 1.3, found {found:?}");
            return Err(UsageError::of_usage(line));
        }
    };
    Ok(ConnectorSettings {
        trust,
        // As with the server, the key may be in the file of the certificate.
        identity: file("cert").map(|cert| (cert.clone(), file("key").unwrap_or(cert))),
        is_fresh: matches.get_flag("no-resumption"),
        newest,
        groups: all(matches, "tls-group").map(str::to_owned).collect(),
        ..ConnectorSettings::default()
    })
}

fn load(matches: &ArgMatches) -> Result<LoadModel, UsageError> {
    let rate_per_s = one(matches, "rate").map(|text| rate("rate", text)).transpose()?;
    if let Some(idle) = number(matches, "hold", (1, 10_000_000))? {
        return Ok(LoadModel::Hold { idle, rate_per_s });
    }
    if let Some(text) = one(matches, "ramp") {
        return rates::ramp(text);
    }
    if let Some(text) = one(matches, "stages") {
        return rates::stages(text);
    }
    Ok(rate_per_s.map_or(LoadModel::Closed, |rate_per_s| LoadModel::Open { rate_per_s }))
}

fn end(matches: &ArgMatches, load: &LoadModel) -> Result<StopCondition, UsageError> {
    let requests = number(matches, "requests", (1, u64::MAX))?;
    let after = match one(matches, "duration") {
        Some(_) => Some(duration(matches, "duration", DURATION)?),
        None => None,
    };
    if matches!(load, LoadModel::Ramp { .. }) {
        if requests.is_some() || after.is_some() {
            let flag = if one(matches, "ramp").is_some() { "ramp" } else { "stages" };
            let form = if flag == "ramp" { "FROM:TO:STEPS:SECONDS" } else { "TIME:RATE,…" };
            return Err(UsageError::of_usage(format!(
                "--{flag}: it is as long as its steps; leave -n and -d out, or write {form}"
            )));
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

/// `404`, `200-399`, or `3xx` for a whole class.
fn statuses(text: &str) -> Result<(u16, u16), UsageError> {
    LoadPlan::parse_statuses(text).ok_or_else(|| {
        let form = "expected statuses from 200 to 599 such as 200,302 or 200-399,404 or 2xx";
        UsageError::of_usage(format!("--status: {form}, found {text:?}"))
    })
}
