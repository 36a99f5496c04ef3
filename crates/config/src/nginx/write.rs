//! The configuration file that an import makes.

use std::path::Path;

use super::fields::STATUSES;
use super::imported::{ImportedAction, ImportedRoute};
use super::server::NginxServer;
use super::settings::{GlobalSettings, push, text_of};
use super::together::ImportedServers;
use super::value::SettingValue;
use super::{LeftOuts, ReadFile};
use super::{pages, routes};
use crate::text::quoted;

/// Returns the file.
///
/// - `read`: returns the text of a page, or why it cannot be read.
pub(super) fn text(
    path: &Path,
    servers: &ImportedServers,
    settings: &GlobalSettings,
    (read, left): (ReadFile<'_>, &mut LeftOuts),
) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace(char::is_control, "");
    let mut out = format!(
        "# Imported from {name}. Look through it, and at what could not be taken over;\n\
         # `gustnado check` reads it.\n\n"
    );
    settings.write(&mut out);
    let certificate = [&servers.main].into_iter().chain(&servers.sites);
    let certificate = certificate.filter(|one| one.certificate.is_some()).collect::<Vec<_>>();
    let default = certificate.first();
    if let Some(server) = default {
        let (cert, key) = (server.certificate.as_deref(), server.key.as_deref());
        push(&mut out, format_args!("tls-cert = {}", text_of(cert.unwrap_or_default())));
        if let Some(key) = key {
            push(&mut out, format_args!("tls-key = {}", text_of(key)));
        }
    }
    site(&mut out, "", &servers.main, (read, left));
    for server in &servers.sites {
        let hosts: Vec<String> = server.hosts.iter().map(|host| text_of(host)).collect();
        push(&mut out, format_args!("\n[[site]]\nhosts = [{}]", hosts.join(", ")));
        if let Some(cert) = &server.certificate
            && default.is_some_and(|one| one.certificate != server.certificate)
        {
            push(&mut out, format_args!("\n[site.tls]\ncert = {}", text_of(cert)));
            if let Some(key) = &server.key {
                push(&mut out, format_args!("key = {}", text_of(key)));
            }
        }
        site(&mut out, "site.", server, (read, left));
    }
    out
}

fn site(
    out: &mut String,
    prefix: &str,
    server: &NginxServer,
    (read, left): (ReadFile<'_>, &mut LeftOuts),
) {
    for (path, one) in routes::of(server, left) {
        push(out, format_args!("\n[[{prefix}route]]\npath = {}", text_of(&path)));
        route(out, prefix, &one);
    }
    if server.scope.is_closed {
        return;
    }
    for (status, page) in &server.scope.pages {
        let Some(file) = pages::file_of(server, page) else {
            let why = format!("the page {page} is not shown to all: left out");
            left.add(&server.directive, &why);
            continue;
        };
        if read(&file).is_ok() {
            push(
                out,
                format_args!(
                    "\n[[{prefix}error-page]]\nstatus = {status}\nfile = {}",
                    text_of(&file.to_string_lossy())
                ),
            );
        } else {
            let shown = file.display();
            left.add(&server.directive, &format!("the page {shown} cannot be read: left out"));
        }
    }
}

fn route(out: &mut String, prefix: &str, one: &ImportedRoute) {
    match &one.action {
        ImportedAction::Folder(folder) => {
            push(out, format_args!("folder = {}", text_of(&folder.to_string_lossy())));
        }
        ImportedAction::Redirect { to, status } => {
            push(out, format_args!("redirect = {}\nstatus = {status}", text_of(to)));
        }
        ImportedAction::Text { text, status, kind } => {
            push(out, format_args!("answer = {}\nstatus = {status}", text_of(text)));
            if let Some(kind) = kind {
                push(out, format_args!("type = {}", text_of(kind)));
            }
        }
    }
    if let (ImportedAction::Folder(_), Some(on)) = (&one.action, one.listing) {
        push(out, format_args!("listing = {}", text_of(if on { "on" } else { "off" })));
    }
    let lists = [("try-files", &one.try_files), ("forbidden", &one.forbidden)];
    let lists = lists.into_iter().filter(|(_, texts)| !texts.is_empty());
    for (name, texts) in one.index.iter().map(|names| ("index", names)).chain(lists) {
        let all: Vec<String> = texts.iter().map(|text| text_of(text)).collect();
        push(out, format_args!("{name} = [{}]", all.join(", ")));
    }
    if let ImportedAction::Folder(_) = &one.action {
        if !one.spa.is_empty() {
            // nginx sets no field by itself.
            push(out, format_args!("spa = {}\ncache-control = \"off\"", text_of(&one.spa)));
        }
        for (name, value) in &one.settings {
            match value {
                SettingValue::Text(text) => push(out, format_args!("{name} = {}", text_of(text))),
                SettingValue::List(all) => {
                    let all: Vec<String> = all.iter().map(|text| text_of(text)).collect();
                    push(out, format_args!("{name} = [{}]", all.join(", ")));
                }
            }
        }
        for (path, value) in &one.cache {
            let (path, value) = (text_of(path), text_of(value));
            push(out, format_args!("\n[[{prefix}route.cache]]\npath = {path}\nvalue = {value}"));
        }
    }
    fields(out, prefix, one);
}

fn fields(out: &mut String, prefix: &str, one: &ImportedRoute) {
    let status = match one.action {
        ImportedAction::Folder(_) => None,
        ImportedAction::Redirect { status, .. } | ImportedAction::Text { status, .. } => {
            Some(status)
        }
    };
    let pair = |(name, value): &(String, String)| format!("{} = {}", quoted(name), text_of(value));
    if !one.fields.of_some.is_empty() && status.is_none_or(|status| STATUSES.contains(&status)) {
        push(out, format_args!("\n[[{prefix}route.header]]\nstatus = {STATUSES:?}"));
        // What a response depends on is more than one of these.
        let (added, set): (Vec<_>, Vec<_>) =
            one.fields.of_some.iter().partition(|(name, _)| name.eq_ignore_ascii_case("Vary"));
        for (key, all) in [("set", set), ("add", added)].iter().filter(|(_, all)| !all.is_empty()) {
            let all: Vec<String> = all.iter().map(|field| pair(field)).collect();
            push(out, format_args!("{key} = {{ {} }}", all.join(", ")));
        }
    }
    if !one.fields.of_all.is_empty() {
        push(out, format_args!("\n[{prefix}route.headers]"));
        for field in &one.fields.of_all {
            push(out, format_args!("{}", pair(field)));
        }
    }
}
