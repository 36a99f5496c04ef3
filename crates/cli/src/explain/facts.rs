//! The lines of an explanation.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado::config::AccessSettings;
use gustnado::files::{LookedUpFile, LookupReason, LookupStep, TriedEntry};
use gustnado::site::SiteFile;
use gustnado::{AskedRequest, Explanation, RefusalReason, Status};

use crate::arguments::ServeOptions;
use crate::figures::counted;

/// A fact: its kind, and the text.
pub(super) type Fact = (&'static str, String);

/// Returns what is to be said, in the order in which a server decides it.
pub(super) fn of(
    options: &ServeOptions,
    asked: &AskedRequest,
    explanation: &Explanation,
) -> Vec<Fact> {
    let scheme = if asked.is_https() { "https" } else { "http" };
    let method = asked.method().as_str().unwrap_or_default();
    let url = format!("{scheme}://{}{}", asked.host(), asked.target());
    let mut facts = vec![("request", format!("{method} {url}, from {}", asked.client()))];
    facts.push(("certificate", certificate(options, asked, explanation)));
    facts.push(("site", site(options, asked, explanation)));
    if explanation.goes_to_https {
        let line = "the request came in clear (https-redirect); no route is looked for";
        facts.push(("redirect", line.to_owned()));
    } else {
        if let Some(target) = &explanation.rewritten {
            facts.push(("rewrite", format!("{} is served as {target}", asked.target())));
        }
        facts.push(("route", route(options, explanation)));
        if let Some(access) = &explanation.access {
            facts.extend(of_access(access, explanation.refusal).map(|line| ("access", line)));
        }
        files(&mut facts, explanation);
    }
    let status = explanation.status;
    let reason = Status::from_code(status).map_or("", |status| status.reason());
    facts.push(("response", format!("{status} {reason}").trim_end().to_owned()));
    facts
}

fn certificate(options: &ServeOptions, asked: &AskedRequest, explanation: &Explanation) -> String {
    let config = &options.settings.config;
    match &explanation.certificate {
        Some(shown) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
            let left = match (shown.not_after_s - now_s) / 86_400 {
                _ if shown.not_after_s < now_s => "it is over".to_owned(),
                days => format!("{} left", counted(days.unsigned_abs(), "day")),
            };
            let names =
                if shown.names.is_empty() { "no name".to_owned() } else { shown.names.join(", ") };
            format!("{}, for {names}; {left}", shown.file.display())
        }
        None if explanation.has_tls => {
            "none for this host: its handshakes are refused (tls-strict-names)".to_owned()
        }
        None if !config.acme.is_empty() => {
            "that of the authority, which is not there yet: the server obtains it".to_owned()
        }
        None if asked.is_https() => {
            "none, as no listener has TLS: explained as behind a proxy that has".to_owned()
        }
        None => "none, as no listener has TLS".to_owned(),
    }
}

fn site(options: &ServeOptions, asked: &AskedRequest, explanation: &Explanation) -> String {
    let file = options.site.as_ref();
    let has_sites = file.is_some_and(|file| file.certificates().next().is_some());
    match &explanation.site {
        Some(host) => {
            let place = file.and_then(|file| file.place_of_site(host));
            let place = place.map_or(String::new(), |place| format!(" ({place})"));
            format!("{host}{place}")
        }
        None if has_sites => {
            let host = asked.host();
            format!("no site has the host {host}: what is outside of all sites serves it")
        }
        None => "the only one".to_owned(),
    }
}

fn route(options: &ServeOptions, explanation: &Explanation) -> String {
    let place = |route: &str| {
        let file: Option<&SiteFile> = options.site.as_ref();
        let found = file?.place_of_route(explanation.site.as_deref(), route)?;
        Some(format!(" ({found})"))
    };
    match &explanation.route {
        Some(route) if route.is_empty() => format!("/{}", place("").unwrap_or_default()),
        Some(route) => format!("{route}{}", place(route).unwrap_or_default()),
        None => "no route has this path: the root serves it, if there is one".to_owned(),
    }
}

/// Returns what the route asks of its clients, and whether this one meets it.
fn of_access(
    access: &AccessSettings,
    refusal: Option<RefusalReason>,
) -> impl Iterator<Item = String> {
    let mut lines = Vec::new();
    let mut add = |is_there: bool, text: String, refused: &[(RefusalReason, &str)]| {
        if is_there {
            let why = refused.iter().find(|(reason, _)| Some(*reason) == refusal);
            let verdict = why.map_or("met, or not reached", |(_, why)| *why);
            lines.push(format!("{text}: {verdict}"));
        }
    };
    let networks = |name: &str, all: &[String]| format!("{name} {}", all.join(", "));
    let address = [(RefusalReason::Address, "refused, by the client's address")];
    let both = [("allow", &access.allow), ("deny", &access.deny)];
    let both: Vec<String> = both
        .into_iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(name, all)| networks(name, all))
        .collect();
    add(!both.is_empty(), both.join("; "), &address);
    let rate = [(RefusalReason::Rate, "refused")];
    add(!access.rate_limit.is_empty(), format!("rate-limit {}", access.rate_limit), &rate);
    let origin = [(RefusalReason::Origin, "refused, by the origin of the page")];
    add(!access.cors.is_empty(), networks("cors", &access.cors), &origin);
    let shown =
        |path: Option<&PathBuf>| path.map_or(String::new(), |path| path.display().to_string());
    let signature = [
        (RefusalReason::Signature, "refused, without a signature or by a wrong one"),
        (RefusalReason::Expired, "refused, as the URL is no longer valid"),
    ];
    let keys = format!("signed-urls {}", shown(access.signed_urls.as_ref()));
    add(access.signed_urls.is_some(), keys, &signature);
    let password = [(RefusalReason::Password, "asked for a user and a password")];
    let users = format!("basic-auth {}", shown(access.basic_auth.as_ref()));
    add(access.basic_auth.is_some(), users, &password);
    lines.into_iter()
}

fn files(facts: &mut Vec<Fact>, explanation: &Explanation) {
    let mut looked = Vec::new();
    for step in &explanation.steps {
        match step {
            LookupStep::Folder { path, why } => {
                let why = match why {
                    LookupReason::Path => "",
                    LookupReason::Page => ", for the page of the application (spa)",
                    LookupReason::FormerRelease => ", a former release (keep-old-assets)",
                };
                looked.push(("folder", format!("{}{why}", path.display())));
            }
            LookupStep::Tried { relative, found } => {
                looked.push(("looked for", format!("/{relative}: {}", entry(*found))));
            }
            LookupStep::Refused => {
                let line = "the path is malformed, or has a name that is never served (hidden)";
                looked.push(("looked for", line.to_owned()));
            }
            LookupStep::Listed => looked.push(("file", "none: the folder is listed".to_owned())),
            LookupStep::Moved => {
                looked.push(("redirect", "to another spelling of the path".to_owned()));
            }
            LookupStep::File(file) => found(&mut looked, file, explanation),
            _ => {}
        }
    }
    facts.append(&mut looked);
}

fn entry(found: TriedEntry) -> &'static str {
    match found {
        TriedEntry::File => "a file",
        TriedEntry::Folder => "a folder",
        TriedEntry::Other => "neither a file nor a folder",
        TriedEntry::Forbidden => "forbidden, and so not there",
        TriedEntry::OtherRoute => "another route responds to that path, and so not there",
        TriedEntry::Denied => "the server may not read it",
        TriedEntry::Unreadable => "it cannot be read",
        TriedEntry::Nothing => "not there",
    }
}

fn found(facts: &mut Vec<Fact>, file: &LookedUpFile, explanation: &Explanation) {
    facts.push(("file", file.path.display().to_string()));
    let sent = explanation.header("Cache-Control");
    facts.push((
        "cache rule",
        match (&file.cache, sent) {
            (Some((name, value)), _) if !file.cache_is_overridden => format!("{value} ({name})"),
            (Some((name, _)), Some(sent)) => {
                format!("{sent} (a header field, in place of the rule {name})")
            }
            (Some((name, _)), None) => format!("none (a header rule removes that of {name})"),
            (None, Some(sent)) => format!("{sent} (a header field)"),
            (None, None) => "none: the client decides how long it keeps the file".to_owned(),
        },
    ));
    let chosen = explanation.header("Content-Encoding").unwrap_or("identity");
    let list = |all: &[&str]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let line = format!(
        "{chosen} is sent; beside the file: {}; made by the server: {}",
        list(&file.on_disk),
        list(&file.made)
    );
    facts.push(("coding", line));
}
