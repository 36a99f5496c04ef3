//! The JSON Schema of configuration files, for editors. `docs/site.schema.json` is its output.

use std::fmt::Write;

use super::methods::METHODS;
use super::route::REDIRECTS;
use super::settings::of_routes;
use crate::TlsClientAuth;
use crate::table::TUNABLES;
use crate::text::quoted;
use crate::tunable::{Field, Tunable};
use crate::unit::Unit;

/// What `cache` is.
const CACHE: &str = "Rules for the Cache-Control of files; the first that matches counts";

/// A value of JSON, as far as a schema has them.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Text(String),
    Number(u64),
    Switch(bool),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

/// The pattern of texts that have a variable in them.
const VARIABLE: &str = "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}";

/// Returns the JSON Schema (draft 2020-12) of configuration files.
pub fn schema() -> String {
    let mut text = String::new();
    print(&whole(), 0, &mut text);
    text.push('\n');
    text
}

fn whole() -> Json {
    let settings: Vec<(String, Json)> = TUNABLES.iter().map(setting).collect();
    let mut keys = settings.clone();
    let settings = closed("Settings, in a table of their own", settings, &[]);
    keys.push(key("settings", Json::Map(settings)));
    keys.push(key("include", include()));
    keys.push(key("headers", reference("headers")));
    keys.push(key("header", list_of("Rules of header fields", "header")));
    keys.push(key("rewrite", list_of("Other paths, before routes are found", "rewrite")));
    keys.push(key("route", list_of("Routes", "route")));
    keys.push(key("site", list_of("Sites for other hosts", "site")));
    keys.push(key("cache", list_of(CACHE, "cache")));
    let of_pages = |(name, json): &mut (String, Json)| match json {
        Json::Map(parts) if name == "error-page" => parts.iter_mut().for_each(|(key, value)| {
            if let ("anyOf", Json::List(forms)) = (&**key, value) {
                forms.push(array_of(reference("error-page")));
            }
        }),
        _ => {}
    };
    keys.iter_mut().for_each(of_pages);
    let mut whole = vec![
        key("$schema", text("https://json-schema.org/draft/2020-12/schema")),
        key("title", text("Configuration of gustnado")),
    ];
    whole.extend(closed("Settings, routes, sites, fields, pages", keys, &[]));
    whole.push(key("$defs", definitions()));
    Json::Map(whole)
}

/// Returns the keys of the settings that a site and a route may have.
fn own_settings() -> impl Iterator<Item = (String, Json)> {
    of_routes().map(|tunable| key(tunable.name, reference(&definition_of(tunable))))
}

/// Returns the name of the definition of such a setting.
fn definition_of(tunable: &Tunable) -> String {
    format!("own.{}", tunable.name)
}

/// Returns what such a setting takes.
fn own_definitions() -> impl Iterator<Item = (String, Json)> {
    let without_default = |(name, json): (String, Json)| match json {
        // Theirs is the server's value.
        Json::Map(parts) => {
            (name, Json::Map(parts.into_iter().filter(|(key, _)| key != "default").collect()))
        }
        json => (name, json),
    };
    of_routes().map(move |tunable| {
        let (_, json) = without_default(setting(tunable));
        (definition_of(tunable), json)
    })
}

fn setting(tunable: &Tunable) -> (String, Json) {
    let mut parts = vec![key("description", text(tunable.doc))];
    if !tunable.default.is_empty() {
        parts.push(key("default", text(tunable.default)));
    }
    parts.push(match &tunable.field {
        Field::Switch { .. } => {
            key("anyOf", Json::List(vec![of_type("boolean"), reference("variable")]))
        }
        Field::Choice { names, .. } => {
            let names = Json::Map(vec![key("enum", texts(names.iter().copied()))]);
            key("anyOf", Json::List(vec![names, reference("variable")]))
        }
        Field::Text { .. } if tunable.bare_value().is_some() => {
            key("anyOf", Json::List(vec![of_type("boolean"), of_type("string")]))
        }
        Field::Text { .. } | Field::Path { .. } => key("type", text("string")),
        Field::List { .. } if tunable.name == "listen" => {
            let each = Json::Map(vec![key(
                "anyOf",
                Json::List(vec![of_type("string"), reference("listen")]),
            )]);
            key("anyOf", Json::List(vec![of_type("string"), array_of(each)]))
        }
        Field::List { .. } => key("anyOf", Json::List(vec![of_type("string"), strings()])),
        Field::Number { unit, min, max, zero, .. } => {
            let number = whole_number(*unit, (*min, *max), zero.is_some());
            let text = number_text(*unit, *zero);
            key("anyOf", Json::List(vec![number, text, reference("variable")]))
        }
    });
    (tunable.name.to_owned(), Json::Map(parts))
}

/// Returns the schema of a number without quotes; a duration is in seconds.
fn whole_number(unit: Unit, (min, max): (u64, u64), has_zero: bool) -> Json {
    let scale = if unit == Unit::Duration { 1_000 } else { 1 };
    let min = if has_zero { 0 } else { min.div_ceil(scale) };
    Json::Map(vec![
        key("type", text("integer")),
        key("minimum", Json::Number(min)),
        key("maximum", Json::Number(max / scale)),
    ])
}

fn number_text(unit: Unit, zero: Option<&str>) -> Json {
    let suffix = match unit {
        Unit::Count | Unit::Microseconds => "",
        Unit::Duration => " ?(ms|s|m|h|d)?",
        Unit::Bytes => " ?([kmgtKMGT]([iI]?[bB])?|[bB])?",
        Unit::BytesPerSecond => " ?([kmgtKMGT]([iI]?[bB])?|[bB])?(/s)?",
    };
    let word = zero.map(|word| format!("|{word}")).unwrap_or_default();
    let pattern = format!("^([0-9]+{suffix}{word})$");
    Json::Map(vec![key("type", text("string")), key("pattern", text(&pattern))])
}

fn definitions() -> Json {
    let headers = Json::Map(vec![
        key("description", text("Header fields to add to responses")),
        key("type", text("object")),
        key("additionalProperties", of_type("string")),
    ]);
    let site = vec![
        key("hosts", hosts()),
        key("root", described("string", "Folder that is served where no route matches")),
        key("tls", reference("site.tls")),
        key("headers", reference("headers")),
        key("header", list_of("Rules of header fields", "header")),
        key("rewrite", list_of("Other paths, before routes are found", "rewrite")),
        key("route", list_of("Routes", "route")),
        key("error-page", list_of("Pages for errors", "error-page")),
        key("cache", list_of(CACHE, "cache")),
    ];
    let site = site.into_iter().chain(own_settings()).collect();
    let page =
        vec![key("status", error_status()), key("file", described("string", "File with the page"))];
    let variable = Json::Map(vec![
        key("description", text("A value of the environment: ${NAME} or ${NAME:-default}")),
        key("type", text("string")),
        key("pattern", text(VARIABLE)),
    ]);
    let cache = vec![
        key("path", described("string", "Files below the folder: /downloads/**, /*.pdf")),
        key("value", described("string", "Value of Cache-Control")),
    ];
    let cache = closed("A rule for the Cache-Control of files", cache, &["path", "value"]);
    let mut all = vec![
        key("cache", Json::Map(cache)),
        key("headers", headers),
        key("header", header_rule()),
        key("rewrite", rewrite()),
        key("variable", variable),
        key("listen", listener()),
        key("route", route()),
        key("site", Json::Map(closed("A site for some hosts", site, &["hosts"]))),
        key("site.tls", site_tls()),
        key("error-page", Json::Map(closed("A page for a status of 4xx or 5xx", page, &["file"]))),
    ];
    all.extend(own_definitions());
    Json::Map(all)
}

fn error_status() -> Json {
    let class = Json::Map(vec![key("enum", texts(["4xx", "5xx"]))]);
    Json::Map(vec![
        key("description", text("Status, or class, that the page is for; left out, it is for all")),
        key("anyOf", Json::List(vec![status(400, "A status"), class])),
    ])
}

fn header_rule() -> Json {
    let methods = Json::Map(vec![
        key("type", text("string")),
        key("enum", texts(METHODS.iter().filter_map(|method| method.as_str()))),
    ]);
    let status =
        Json::Map(vec![key("anyOf", Json::List(vec![status(200, "A status"), of_type("string")]))]);
    let any_of = |what: &str, one: Json| {
        Json::Map(vec![
            key("description", text(what)),
            key("anyOf", Json::List(vec![one.clone(), array_of(one)])),
        ])
    };
    let keys = vec![
        key("path", described("string", "Paths of requests: /exact, /{name} or /{*rest}")),
        key("status", any_of("Statuses such as 404, classes such as \"2xx\"", status)),
        key("type", any_of("Content types: text/html, image/*", of_type("string"))),
        key("methods", any_of("Methods of requests", methods)),
        key("set", reference("headers")),
        key("add", reference("headers")),
        key("remove", any_of("Names of fields to take out", of_type("string"))),
    ];
    Json::Map(closed("A rule of header fields", keys, &[]))
}

fn rewrite() -> Json {
    let keys = vec![
        key("from", described("string", "Path of a request: /exact, /{name} or /{*rest}")),
        key("to", described("string", "Path in its place, with {name}; the query is kept")),
    ];
    Json::Map(closed("A path in place of another", keys, &["from", "to"]))
}

fn site_tls() -> Json {
    let client_auth = Json::Map(vec![
        key("description", text("Whether clients have to present a certificate")),
        key("enum", texts(TlsClientAuth::NAMES)),
    ]);
    let keys = vec![
        key("cert", described("string", "Certificate of the site, each issuer behind it, in PEM")),
        key("key", described("string", "Its private key; left out, it is in the same file")),
        key("client-auth", client_auth),
        key("client-ca", described("string", "Authorities of clients' certificates, in PEM")),
        key("client-crl", described("string", "Lists of those that are revoked, in PEM")),
    ];
    Json::Map(closed("TLS of the site", keys, &["cert"]))
}

fn listener() -> Json {
    let networks = Json::Map(vec![
        key("description", text("Peers that may send a PROXY header")),
        key("anyOf", Json::List(vec![of_type("string"), strings()])),
    ]);
    let backlog = Json::Map(vec![
        key("description", text("Connections the kernel may hold ready until they are accepted")),
        key("type", text("integer")),
        key("minimum", Json::Number(1)),
        key("maximum", Json::Number(65_535)),
    ]);
    let keys = vec![
        key("address", described("string", "127.0.0.1:80, [::1]:80, unix:PATH, unix:@NAME, fd:3")),
        key(
            "tls",
            described("boolean", "Whether it speaks TLS, as with https:// before the address"),
        ),
        key("proxy-protocol", described("boolean", "Whether a PROXY header is required")),
        key("proxy-allow-from", networks),
        key("backlog", backlog),
        key("defer-accept", described("boolean", "Accept when the first bytes are here")),
        key("mode", described("string", "Permissions of a Unix socket, in octal")),
        key("owner", described("string", "User, or USER:GROUP, of a Unix socket")),
        key("v6only", described("boolean", "Whether an IPv6 address takes IPv6 only")),
        key("freebind", described("boolean", "Whether the machine may get the address later")),
        key("device", described("string", "Network interface that connections come from")),
    ];
    Json::Map(closed("A listener", keys, &["address"]))
}

fn route() -> Json {
    let methods = Json::Map(vec![
        key("type", text("string")),
        key("enum", texts(METHODS.iter().filter_map(|method| method.as_str()))),
    ]);
    let methods = Json::Map(vec![
        key("description", text("Methods; by default GET, for a redirect all")),
        key("anyOf", Json::List(vec![methods.clone(), array_of(methods)])),
    ]);
    let preload = Json::Map(vec![
        key(
            "description",
            text("What its pages need: \"/app.css; as=style\", or a whole Link value"),
        ),
        key("anyOf", Json::List(vec![of_type("string"), strings()])),
    ]);
    let keys = vec![
        key("path", described("string", "/exact, /{name}/part or /{*rest}")),
        key("folder", described("string", "Folder to serve beneath the path")),
        key("redirect", described("string", "Target: a path or a URL, with {name}")),
        key("answer", described("string", "Text of the response")),
        key("status", status(200, "Status of the response [200] or of the redirect [308]")),
        key("type", described("string", "Content type of the response")),
        key("methods", methods),
        key("merge_slashes", described("boolean", "Whether {*rest} is without empty segments")),
        key("headers", reference("headers")),
        key("header", list_of("Rules of header fields", "header")),
        key("preload", preload),
        key("cache", list_of(CACHE, "cache")),
    ];
    let keys = keys.into_iter().chain(own_settings()).collect();
    let mut route = closed("A route", keys, &["path"]);
    let redirect = Json::Map(vec![
        key("required", texts(["redirect"])),
        key("properties", Json::Map(vec![key("status", redirects())])),
    ]);
    let required = |name| Json::Map(vec![key("required", texts([name]))]);
    let kinds = vec![required("folder"), redirect, required("answer")];
    route.push(key("oneOf", Json::List(kinds)));
    Json::Map(route)
}

fn redirects() -> Json {
    let statuses = REDIRECTS.iter().map(|code| Json::Number(u64::from(*code))).collect();
    Json::Map(vec![key("enum", Json::List(statuses))])
}

fn include() -> Json {
    let what = "Files that belong to this one: \"sites/*.toml\", relative to its folder";
    Json::Map(vec![
        key("description", text(what)),
        key("anyOf", Json::List(vec![of_type("string"), strings()])),
    ])
}

fn hosts() -> Json {
    let what = "Hosts of the site, without ports; *.example.org is all below example.org";
    Json::Map(vec![
        key("description", text(what)),
        key("anyOf", Json::List(vec![of_type("string"), strings()])),
    ])
}

fn status(min: u64, what: &str) -> Json {
    Json::Map(vec![
        key("description", text(what)),
        key("type", text("integer")),
        key("minimum", Json::Number(min)),
        key("maximum", Json::Number(599)),
    ])
}

/// Returns the parts of a table with these keys and no others.
fn closed(what: &str, keys: Vec<(String, Json)>, required: &[&str]) -> Vec<(String, Json)> {
    let mut parts = vec![
        key("description", text(what)),
        key("type", text("object")),
        key("additionalProperties", Json::Switch(false)),
        key("properties", Json::Map(keys)),
    ];
    if !required.is_empty() {
        parts.push(key("required", texts(required.iter().copied())));
    }
    parts
}

fn list_of(what: &str, definition: &str) -> Json {
    Json::Map(vec![
        key("description", text(what)),
        key("type", text("array")),
        key("items", reference(definition)),
    ])
}

fn texts<'t>(all: impl IntoIterator<Item = &'t str>) -> Json {
    Json::List(all.into_iter().map(text).collect())
}

fn array_of(item: Json) -> Json {
    Json::Map(vec![key("type", text("array")), key("items", item)])
}

fn strings() -> Json {
    array_of(of_type("string"))
}

fn reference(definition: &str) -> Json {
    Json::Map(vec![key("$ref", text(&format!("#/$defs/{definition}")))])
}

fn described(kind: &str, what: &str) -> Json {
    Json::Map(vec![key("description", text(what)), key("type", text(kind))])
}

fn of_type(kind: &str) -> Json {
    Json::Map(vec![key("type", text(kind))])
}

fn key(name: &str, value: Json) -> (String, Json) {
    (name.to_owned(), value)
}

fn text(text: &str) -> Json {
    Json::Text(text.to_owned())
}

fn print(value: &Json, depth: usize, out: &mut String) {
    let inner = "  ".repeat(depth + 1);
    let close = "  ".repeat(depth);
    match value {
        Json::Text(text) => out.push_str(&quoted(text)),
        Json::Number(number) => out.push_str(&number.to_string()),
        Json::Switch(on) => out.push_str(&on.to_string()),
        Json::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "\n" } else { ",\n" });
                out.push_str(&inner);
                print(item, depth + 1, out);
            }
            write!(out, "\n{close}]").expect("a string takes all text");
        }
        Json::Map(keys) => {
            out.push('{');
            for (at, (name, item)) in keys.iter().enumerate() {
                out.push_str(if at == 0 { "\n" } else { ",\n" });
                out.push_str(&inner);
                out.push_str(&quoted(name));
                out.push_str(": ");
                print(item, depth + 1, out);
            }
            write!(out, "\n{close}}}").expect("a string takes all text");
        }
    }
}

#[cfg(test)]
mod tests;
