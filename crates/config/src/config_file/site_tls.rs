//! The table `[site.tls]`: the certificate of a site, and what it wants of its clients.

use std::path::PathBuf;

use super::specs::SiteTls;
use super::value::{ValueReader, ValueTable};
use crate::TlsClientAuth;
use crate::nearest::nearest;

/// The keys of the table.
pub(super) const TLS_KEYS: [&str; 5] = ["cert", "key", "client-auth", "client-ca", "client-crl"];

/// Returns what a site has of its own for TLS. The files are read when the server starts.
pub(super) fn read_tls(reader: &mut ValueReader<'_>, site: ValueTable<'_>) -> Option<SiteTls> {
    let table = reader.table(site, "tls")?;
    reader.only(table, &TLS_KEYS);
    let cert = reader.required(table, "cert").map(|cert| reader.path(cert.value));
    let key = path(reader, table, "key");
    let client_auth = read_client_auth(reader, table).unwrap_or_default();
    let client_ca = path(reader, table, "client-ca");
    let client_crl = path(reader, table, "client-crl");
    let wants = client_auth != TlsClientAuth::None;
    if wants && client_ca.is_none() {
        let text = "site.tls.client-auth: expected the key client-ca too; add the file of the \
                    authorities, or leave client-auth out";
        reader.problem(table.line, text);
    }
    if !wants && (client_ca.is_some() || client_crl.is_some()) {
        let text = "site.tls.client-ca: expected client-auth = \"required\" or \"optional\" with \
                    it; add that, or leave it out";
        reader.problem(table.line, text);
    }
    Some(SiteTls { cert: cert?, key, client_auth, client_ca, client_crl })
}

fn path(reader: &mut ValueReader<'_>, table: ValueTable<'_>, key: &'static str) -> Option<PathBuf> {
    reader.text(table, key).map(|text| reader.path(text.value))
}

fn read_client_auth(reader: &mut ValueReader<'_>, table: ValueTable<'_>) -> Option<TlsClientAuth> {
    let with_line = reader.text(table, "client-auth")?;
    let found = with_line.value;
    let place = TlsClientAuth::NAMES.iter().position(|name| *name == found);
    if place.is_none() {
        let remedy = match nearest(found, TlsClientAuth::NAMES.into_iter()) {
            Some(near) => format!("did you mean {near}?"),
            None => "leave it out for none".to_owned(),
        };
        let all = TlsClientAuth::NAMES.join(", ");
        let text =
            format!("site.tls.client-auth: expected one of {all}, found {found:?}; {remedy}");
        reader.problem(with_line.line, text);
    }
    place.map(|place| TlsClientAuth::ALL[place])
}
