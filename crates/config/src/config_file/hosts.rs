//! Host names of sites.

use super::value::{ValueReader, ValueTable};
use crate::file_settings::FilePlace;

/// Host names that sites already have, each with its place.
#[derive(Default)]
pub(super) struct Hosts(Vec<(String, FilePlace)>);

/// Returns the hosts of a site.
pub(super) fn read_hosts(
    reader: &mut ValueReader<'_>,
    table: ValueTable<'_>,
    taken: &mut Hosts,
) -> Vec<String> {
    let mut hosts = Vec::new();
    if !table.values.contains_key("hosts") {
        let text = "site: expected the key hosts; add it, for instance hosts = [\"example.org\"]";
        reader.problem(table.line, text);
    }
    let found = reader.texts(table, "hosts").unwrap_or_default();
    if found.is_empty() && table.values.get("hosts").is_some_and(|value| value.get_ref().is_array())
    {
        let text = "site.hosts: expected a host such as \"example.org\", found none; add one";
        reader.problem(table.line, text);
    }
    for with_line in found {
        // (Shown as it was written: a value that is not to be shown is known so.)
        let (found, line) = (with_line.value, with_line.line);
        let host = found.to_ascii_lowercase();
        let known =
            taken.0.iter().find(|(known, _)| *known == host).map(|(_, place)| reader.seen(place));
        if let Err(expected) = check(&host) {
            reader.problem(line, format!("site.hosts: {expected}, found {found:?}"));
        } else if let Some(first) = known {
            let text =
                format!("site.hosts: {found:?} has a site already ({first}); merge their routes");
            reader.problem(line, text);
        } else {
            taken.0.push((host.clone(), reader.place(line)));
            hosts.push(host);
        }
    }
    hosts
}

fn check(host: &str) -> Result<(), &'static str> {
    let is_address = host.starts_with('[') && host.ends_with(']');
    if !is_address && host.contains(':') {
        return Err("expected a host without a port");
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.len() <= 63;
    let is_name = name.len() <= 253 && name.bytes().all(letter) && name.split('.').all(is_part);
    if is_address || is_name {
        return Ok(());
    }
    Err("expected a host such as example.org, or *.example.org for all below it")
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn hosts_are_names_or_addresses_without_a_port() {
        for host in ["example.org", "*.example.org", "localhost", "127.0.0.1", "[::1]", "a_b.x"] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in ["", "*", "*.", "a b", "example.org:80", "a..b", "x.", "*.*.org", "::1", "é"] {
            assert!(check(host).is_err(), "{host}");
        }
    }
}
