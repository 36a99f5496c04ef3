//! Everything in effect, written as a file that can be read again.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::ConfigFile;
use super::rewrite::Rewrite;
use super::secrets::HiddenValues;
use super::specs::{RouteAction, RouteSpec, SiteSpec, SiteTls};
use crate::access::{HeaderRule, StatusRange};
use crate::headers::Headers;
use crate::text::quoted;
use crate::{
    CacheRule, Config, Field, FilePlace, FileSetting, Origin, Settings, TUNABLES, Tunable,
};

pub(super) fn text(file: Option<&ConfigFile>, settings: &Settings) -> String {
    let mut text = String::from("# Everything in effect, and where it came from.\n\n");
    write(&mut text, file, settings).expect("a string takes all text");
    match file {
        Some(file) => disguised(&text, &file.secrets),
        None => disguised(&text, &HiddenValues::default()),
    }
}

/// Returns a file with its texts so that they are read as the same, and without secrets: see
/// [`HiddenValues::written`]. Keys stay as they are.
fn disguised(file: &str, secrets: &HiddenValues) -> String {
    let mut out = String::with_capacity(file.len());
    for line in file.split_inclusive('\n') {
        let mut rest = line;
        // What is written above has no other texts than those in double quotes, and no comment
        // before them.
        while let Some(at) = rest.find(['"', '#']).filter(|at| rest.as_bytes()[*at] == b'"') {
            let inner = &rest[at + 1..];
            let mut is_escaped = false;
            let end = inner.bytes().position(|byte| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            });
            let Some(end) = end else { break };
            let (text, behind) = (&inner[..end], &inner[end + 1..]);
            let is_key = behind.trim_start().starts_with('=');
            out.push_str(&rest[..=at]);
            out.push_str(&if is_key { text.to_owned() } else { secrets.written(text) });
            out.push('"');
            rest = behind;
        }
        out.push_str(rest);
    }
    out
}

fn write(out: &mut String, file: Option<&ConfigFile>, settings: &Settings) -> fmt::Result {
    let is_listed = !settings.config.listen.is_empty();
    // A key of that name at the top is either the setting or the pages of the file's own site.
    let has_pages = file.is_some_and(|file| !file.main.pages.is_empty());
    let mut apart = String::new();
    for (effective, tunable) in settings.effective().iter().zip(TUNABLES) {
        // `listen` replaces these, and a file may not have both.
        let is_replaced = is_listed && ["host", "port", "uds"].contains(&effective.name);
        match value(tunable, &settings.config) {
            Some(value) if has_pages && effective.name == "error-page" => {
                writeln!(
                    apart,
                    "\n[settings]\n{} = {value}  # {}",
                    effective.name, effective.origin
                )?;
            }
            Some(value) if !is_replaced => {
                writeln!(out, "{} = {value}  # {}", effective.name, effective.origin)?;
            }
            _ if is_replaced => writeln!(out, "# {}: not used, listen is set", effective.name)?,
            _ => writeln!(out, "# {}: none  # {}", effective.name, effective.origin)?,
        }
    }
    let Some(file) = file else { return Ok(()) };
    out.push_str(&apart);
    headers(out, "headers", &file.headers)?;
    cache(out, "", &file.settings.cache)?;
    header_rules(out, "", &file.header_rules)?;
    site(out, "", &file.main)?;
    for one in &file.sites {
        writeln!(out, "\n[[site]]  # {}", origin(&one.place))?;
        let hosts: Vec<String> = one.hosts.iter().map(|host| quoted(host)).collect();
        writeln!(out, "hosts = [{}]", hosts.join(", "))?;
        if let Some(root) = &one.root {
            writeln!(out, "root = {}", quoted(&root.display().to_string()))?;
        }
        own_settings(out, &one.settings)?;
        one.tls.as_ref().map_or(Ok(()), |own| tls(out, own))?;
        headers(out, "site.headers", &one.headers)?;
        cache(out, "site.", &one.cache)?;
        header_rules(out, "site.", &one.header_rules)?;
        site(out, "site.", one)?;
    }
    Ok(())
}

/// Returns the value of a setting as a file has it; `None` if there is none.
fn value(tunable: &Tunable, config: &Config) -> Option<String> {
    match &tunable.field {
        Field::Path { get, .. } => Some(quoted(&get(config)?.display().to_string())),
        Field::Text { get, .. } => Some(quoted(get(config))),
        Field::List { get, .. } => {
            let texts: Vec<String> = get(config).iter().map(|one| quoted(one)).collect();
            (!texts.is_empty()).then(|| format!("[{}]", texts.join(", ")))
        }
        Field::Switch { .. } => Some(tunable.show(config)),
        Field::Number { .. } | Field::Choice { .. } => {
            let shown = tunable.show(config);
            let is_plain = matches!(tunable.field, Field::Number { .. })
                && shown.bytes().all(|byte| byte.is_ascii_digit());
            Some(if is_plain { shown } else { quoted(&shown) })
        }
    }
}

fn site(out: &mut String, prefix: &str, site: &SiteSpec) -> fmt::Result {
    for Rewrite { from, to } in &site.rewrites {
        writeln!(out, "\n[[{prefix}rewrite]]")?;
        writeln!(out, "from = {}\nto = {}", quoted(from), quoted(&to.to_string()))?;
    }
    for with_line in &site.routes {
        writeln!(out, "\n[[{prefix}route]]  # {}", origin(&with_line.place))?;
        route(out, prefix, with_line)?;
    }
    for with_line in &site.pages {
        writeln!(out, "\n[[{prefix}error-page]]  # {}", origin(&with_line.place))?;
        match with_line.statuses {
            StatusRange::ERRORS => {}
            StatusRange { first, last } if first == last => writeln!(out, "status = {first}")?,
            class => writeln!(out, "status = \"{class}\"")?,
        }
        writeln!(out, "file = {}", quoted(&with_line.file.display().to_string()))?;
    }
    Ok(())
}

fn tls(out: &mut String, own: &SiteTls) -> fmt::Result {
    writeln!(out, "\n[site.tls]")?;
    let files = [("cert", Some(&own.cert)), ("key", own.key.as_ref())];
    let of_clients =
        [("client-ca", own.client_ca.as_ref()), ("client-crl", own.client_crl.as_ref())];
    for (key, file) in files.into_iter().chain(of_clients) {
        if let Some(file) = file {
            writeln!(out, "{key} = {}", quoted(&file.display().to_string()))?;
        }
    }
    writeln!(out, "client-auth = {}", quoted(own.client_auth.as_str()))
}

fn route(out: &mut String, prefix: &str, with_line: &RouteSpec) -> fmt::Result {
    writeln!(out, "path = {}", quoted(&with_line.path))?;
    match &with_line.action {
        RouteAction::Folder(folder) => {
            writeln!(out, "folder = {}", quoted(&folder.display().to_string()))?;
        }
        RouteAction::Redirect { to, status } => {
            writeln!(out, "redirect = {}", quoted(&to.to_string()))?;
            writeln!(out, "status = {}", status.code())?;
        }
        RouteAction::Text { text, status, content_type } => {
            writeln!(out, "answer = {}", quoted(text))?;
            writeln!(out, "status = {}", status.code())?;
            writeln!(out, "type = {}", quoted(content_type))?;
        }
    }
    own_settings(out, &with_line.settings)?;
    if !with_line.merge_slashes {
        writeln!(out, "merge_slashes = false")?;
    }
    if !with_line.methods.is_empty() {
        let methods: Vec<String> =
            with_line.methods.iter().filter_map(|method| method.as_str()).map(quoted).collect();
        writeln!(out, "methods = [{}]", methods.join(", "))?;
    }
    if !with_line.preload.is_empty() {
        let links: Vec<String> = with_line.preload.iter().map(|link| quoted(link)).collect();
        writeln!(out, "preload = [{}]", links.join(", "))?;
    }
    headers(out, &format!("{prefix}route.headers"), &with_line.headers)?;
    cache(out, &format!("{prefix}route."), &with_line.cache)?;
    header_rules(out, &format!("{prefix}route."), &with_line.header_rules)
}

/// Writes rules for the `Cache-Control` of files.
fn cache(out: &mut String, prefix: &str, rules: &[CacheRule]) -> fmt::Result {
    for rule in rules {
        writeln!(out, "\n[[{prefix}cache]]")?;
        writeln!(out, "path = {}", quoted(&rule.path))?;
        writeln!(out, "value = {}", quoted(&rule.value))?;
    }
    Ok(())
}

/// Writes rules of header fields.
fn header_rules(out: &mut String, prefix: &str, rules: &[HeaderRule]) -> fmt::Result {
    let list = |texts: Vec<String>| texts.join(", ");
    for rule in rules {
        writeln!(out, "\n[[{prefix}header]]")?;
        if let Some(path) = &rule.path {
            writeln!(out, "path = {}", quoted(path))?;
        }
        let statuses = rule.statuses.iter().map(|range| quoted(&range.to_string())).collect();
        let types = rule.types.iter().map(|kind| quoted(kind)).collect();
        let methods = rule.methods.iter().filter_map(|method| method.as_str()).map(quoted);
        let remove = rule.remove.iter().map(|name| quoted(name)).collect();
        let lists: [(&str, Vec<String>); 4] = [
            ("status", statuses),
            ("type", types),
            ("methods", methods.collect()),
            ("remove", remove),
        ];
        for (key, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            writeln!(out, "{key} = [{}]", list(texts))?;
        }
        let pair = |(name, value): (&str, &str)| format!("{} = {}", quoted(name), quoted(value));
        let add = rule.add.iter().map(|(name, value)| pair((name, value))).collect();
        for (key, pairs) in [("set", rule.set.iter().map(pair).collect()), ("add", add)] {
            let pairs: Vec<String> = pairs;
            if !pairs.is_empty() {
                writeln!(out, "{key} = {{ {} }}", list(pairs))?;
            }
        }
    }
    Ok(())
}

/// Writes the settings that a site or a route has of its own.
fn own_settings(out: &mut String, settings: &[FileSetting]) -> fmt::Result {
    let mut config = Config::default();
    for own in settings {
        let tunable = own.tunable();
        tunable.set(&mut config, &own.value).expect("it was checked when it was read");
        // An empty one takes the place of the server's.
        let empty = || match tunable.field {
            Field::Path { .. } => quoted("off"),
            _ => "[]".to_owned(),
        };
        let value = value(tunable, &config).unwrap_or_else(empty);
        writeln!(out, "{} = {value}", own.name)?;
    }
    Ok(())
}

fn headers(out: &mut String, name: &str, fields: &Headers) -> fmt::Result {
    if fields.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n[{name}]")?;
    fields
        .iter()
        .try_for_each(|(name, value)| writeln!(out, "{} = {}", quoted(name), quoted(value)))
}

fn origin(place: &FilePlace) -> String {
    let (path, line) = (place.file.to_path_buf(), place.line);
    Origin::File { path, line, variables: Arc::from([]) }.to_string()
}
