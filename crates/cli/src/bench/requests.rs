//! Reads what is requested: URLs, methods, fields, bodies, and the file of targets.

use super::flags::{all, one};
use super::targets::{self, TargetLine, weighted};
use crate::usage_error::UsageError;
use clap::ArgMatches;
use gustnado_lab::plan::RequestSpec;
use std::net::SocketAddr;

/// Methods of a file of targets that are sent without the body of the flags.
const WITHOUT_BODY: [&str; 2] = ["GET", "HEAD"];

/// Reads the requests of a plan.
///
/// # Errors
/// The first mistake in a URL, a flag or the file of targets.
pub(super) fn read(matches: &ArgMatches) -> Result<Vec<RequestSpec>, UsageError> {
    let body = body(matches)?;
    let usual = if body.is_empty() { "GET" } else { "POST" };
    let method = one(matches, "method").unwrap_or(usual);
    let is_token = !method.is_empty() && method.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_token {
        let line = format!("--method: expected a method such as GET or POST, found {method:?}");
        return Err(UsageError::of_usage(line));
    }
    let fields = all(matches, "header").map(field).collect::<Result<Vec<_>, _>>()?;
    let addresses = all(matches, "target").map(target).collect::<Result<Vec<_>, _>>()?;
    let file = one(matches, "targets").map(|path| Ok((path, targets::text(path)?))).transpose()?;
    let mut lines = Vec::new();
    for text in all(matches, "url") {
        let (weight, url) = weighted(text)?;
        lines.push(TargetLine { method: None, weight, url });
    }
    if let Some((path, text)) = &file {
        lines.extend(targets::lines(path, text)?);
    }
    let request = |line: TargetLine<'_>| {
        let has_body = line.method.is_none_or(|of| !WITHOUT_BODY.contains(&&*of.to_uppercase()));
        RequestSpec {
            url: line.url.to_owned(),
            targets: addresses.clone(),
            method: line.method.unwrap_or(method).to_ascii_uppercase(),
            fields: fields.clone(),
            body: if has_body { body.clone() } else { Vec::new() },
            weight: line.weight,
        }
    };
    let asks: Vec<RequestSpec> = lines.into_iter().map(request).collect();
    if asks.is_empty() {
        return Err(UsageError::of_usage(
            "bench: expected a URL such as http://127.0.0.1:8080/, found none",
        ));
    }
    Ok(asks)
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
