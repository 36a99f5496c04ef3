//! Everything in effect, written as a file that can be read again.

use std::fmt::{self, Write};

use super::ConfigFile;
use super::route::LISTINGS;
use super::specs::{RouteAction, RouteSpec, SiteSpec, SiteTls};
use crate::headers::Headers;
use crate::text::quoted;
use crate::{Effective, Field, Origin, Settings, TUNABLES};

pub(super) fn text(file: Option<&ConfigFile>, settings: &Settings) -> String {
    let mut text = String::from("# Everything in effect, and where it came from.\n\n");
    write(&mut text, file, settings).expect("a string takes all text");
    text
}

fn write(out: &mut String, file: Option<&ConfigFile>, settings: &Settings) -> fmt::Result {
    let is_listed = !settings.config.listen.is_empty();
    for (effective, tunable) in settings.effective().iter().zip(TUNABLES) {
        let line = setting(effective, &tunable.field, settings);
        // `listen` replaces these, and a file may not have both.
        let is_replaced = is_listed && ["host", "port", "uds"].contains(&effective.name);
        match line {
            Some(line) if !is_replaced => writeln!(out, "{line}  # {}", effective.origin)?,
            _ if is_replaced => writeln!(out, "# {}: not used, listen is set", effective.name)?,
            _ => writeln!(out, "# {}: none  # {}", effective.name, effective.origin)?,
        }
    }
    let Some(file) = file else { return Ok(()) };
    let name = file.settings.path.display().to_string();
    headers(out, "headers", &file.headers)?;
    site(out, "", &file.main, &name)?;
    for one in &file.sites {
        writeln!(out, "\n[[site]]  # {}", place(&name, one.line))?;
        let hosts: Vec<String> = one.hosts.iter().map(|host| quoted(host)).collect();
        writeln!(out, "hosts = [{}]", hosts.join(", "))?;
        if let Some(root) = &one.root {
            writeln!(out, "root = {}", quoted(&root.display().to_string()))?;
        }
        one.tls.as_ref().map_or(Ok(()), |own| tls(out, own))?;
        headers(out, "site.headers", &one.headers)?;
        site(out, "site.", one, &name)?;
    }
    Ok(())
}

/// Returns the line of a setting; `None` if it has no value.
fn setting(effective: &Effective, field: &Field, settings: &Settings) -> Option<String> {
    let value = match field {
        Field::Path { get, .. } => quoted(&get(&settings.config)?.display().to_string()),
        Field::Text { get, .. } => quoted(get(&settings.config)),
        Field::List { get, .. } => {
            let texts: Vec<String> = get(&settings.config).iter().map(|one| quoted(one)).collect();
            (!texts.is_empty()).then(|| format!("[{}]", texts.join(", ")))?
        }
        Field::Switch { .. } => effective.value.clone(),
        Field::Number { .. } if effective.value.bytes().all(|byte| byte.is_ascii_digit()) => {
            effective.value.clone()
        }
        Field::Number { .. } | Field::Choice { .. } => quoted(&effective.value),
    };
    Some(format!("{} = {value}", effective.name))
}

fn site(out: &mut String, prefix: &str, site: &SiteSpec, name: &str) -> fmt::Result {
    for with_line in &site.routes {
        writeln!(out, "\n[[{prefix}route]]  # {}", place(name, with_line.line))?;
        route(out, prefix, with_line)?;
    }
    for with_line in &site.pages {
        writeln!(out, "\n[[{prefix}error-page]]  # {}", place(name, with_line.line))?;
        if let Some(status) = with_line.status {
            writeln!(out, "status = {}", status.code())?;
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
    if let Some(on) = with_line.listing {
        writeln!(out, "listing = {}", quoted(LISTINGS[usize::from(!on)]))?;
    }
    if !with_line.merge_slashes {
        writeln!(out, "merge_slashes = false")?;
    }
    if !with_line.methods.is_empty() {
        let methods: Vec<String> =
            with_line.methods.iter().filter_map(|method| method.as_str()).map(quoted).collect();
        writeln!(out, "methods = [{}]", methods.join(", "))?;
    }
    headers(out, &format!("{prefix}route.headers"), &with_line.headers)
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

fn place(name: &str, line: usize) -> String {
    let path = std::path::PathBuf::from(name);
    Origin::File { path, line }.to_string()
}
