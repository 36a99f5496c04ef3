//! The environment of a request (PEP 3333, RFC 3875).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use gustnado::{Endpoint, Request, TlsInfo, Version};

use super::WsgiApp;
use super::body::Input;
use super::input;
use crate::request::method;
use crate::root_path::below;

/// Maximum number of cached field names.
pub(super) const NAMES_MAX: usize = 256;

/// `HTTP_ACCEPT_LANGUAGE` for `accept-language`.
fn key<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyString> {
    let upper = name.bytes().map(|byte| match byte {
        b'-' => '_',
        byte => char::from(byte.to_ascii_uppercase()),
    });
    PyString::intern(py, &format!("HTTP_{}", upper.collect::<String>()))
}

/// Returns the environment of a request.
pub(super) fn make<'py>(
    py: Python<'py>,
    app: &WsgiApp,
    request: &Request,
    body: Input<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let template = app.template.of(py, request, |template, host, port| {
        template.set_item(intern!(py, "SERVER_NAME"), host)?;
        template.set_item(intern!(py, "SERVER_PORT"), port.to_string())
    })?;
    let environ = template.copy()?;
    let set = |key: &Bound<'py, PyString>, value: &str| environ.set_item(key, value);
    environ.set_item(intern!(py, "REQUEST_METHOD"), method(py, request))?;
    let path: Cow<'_, [u8]> = percent_decode_str(request.raw_path()).into();
    let path = below(&path, app.root_path.as_bytes()).unwrap_or(&path);
    environ.set_item(intern!(py, "PATH_INFO"), native(py, path))?;
    set(intern!(py, "QUERY_STRING"), request.raw_query().unwrap_or_default())?;
    let target = PyString::new(py, request.target());
    environ.set_item(intern!(py, "REQUEST_URI"), &target)?;
    environ.set_item(intern!(py, "RAW_URI"), target)?;
    let version = match request.version() {
        Version::Http10 => intern!(py, "HTTP/1.0"),
        Version::Http11 => intern!(py, "HTTP/1.1"),
        Version::Http2 => intern!(py, "HTTP/2"),
    };
    environ.set_item(intern!(py, "SERVER_PROTOCOL"), version)?;
    // RFC 3875 demands the address; a Unix socket has none.
    let client = match request.client() {
        Some(Endpoint::Tcp(client)) => Some(client),
        _ => None,
    };
    if let Some(client) = client {
        set(intern!(py, "REMOTE_ADDR"), &client.ip().to_canonical().to_string())?;
    }
    // A proxy usually does not send it.
    match client.filter(|client| client.port() > 0) {
        Some(client) => set(intern!(py, "REMOTE_PORT"), &client.port().to_string())?,
        None => environ.del_item(intern!(py, "REMOTE_PORT"))?,
    }
    if let Some(user) = request.user() {
        set(intern!(py, "REMOTE_USER"), &user)?;
        set(intern!(py, "AUTH_TYPE"), "Basic")?;
    }
    if request.scheme() == "https" {
        set(intern!(py, "wsgi.url_scheme"), "https")?;
    }
    if let Some(tls) = request.tls() {
        add_tls(&environ, tls)?;
    }
    let has_length = add_fields(&environ, app, request)?;
    let (input, length) = match body {
        Input::Memory(bytes) => (input::open(py, app, bytes)?, bytes.len() as u64),
        Input::File(file, length) => (file.bind(py).clone(), length),
    };
    if has_length || length > 0 {
        // The actual length takes precedence over the field: the body is complete.
        set(intern!(py, "CONTENT_LENGTH"), &length.to_string())?;
    }
    environ.set_item(intern!(py, "wsgi.input"), input)?;
    Ok(environ)
}

/// Adds what the handshake has agreed on, by the names of Apache's `mod_ssl`.
fn add_tls(environ: &Bound<'_, PyDict>, tls: &TlsInfo) -> PyResult<()> {
    let py = environ.py();
    let verified = if tls.client_chain.is_empty() { "NONE" } else { "SUCCESS" };
    environ.set_item(intern!(py, "HTTPS"), intern!(py, "on"))?;
    environ.set_item(intern!(py, "SSL_PROTOCOL"), tls.version.name())?;
    environ.set_item(intern!(py, "SSL_CIPHER"), tls.cipher)?;
    environ.set_item(intern!(py, "SSL_CLIENT_VERIFY"), verified)?;
    if let Some(subject) = tls.client_subject() {
        environ.set_item(intern!(py, "SSL_CLIENT_S_DN"), subject)?;
    }
    Ok(())
}

/// Adds the fields except Content-Length. Returns whether there is one.
fn add_fields(environ: &Bound<'_, PyDict>, app: &WsgiApp, request: &Request) -> PyResult<bool> {
    let (py, mut has_length) = (environ.py(), false);
    for (name, value) in request.headers() {
        // It would pass for the one with a hyphen.
        if name.contains('_') {
            continue;
        }
        let key = match name.len() {
            // `HTTP_PROXY` names a proxy for the requests that CGI programs make (CVE-2016-5385).
            5 if name.eq_ignore_ascii_case("proxy") => continue,
            12 if name.eq_ignore_ascii_case("content-type") => intern!(py, "CONTENT_TYPE").clone(),
            14 if name.eq_ignore_ascii_case("content-length") => {
                has_length = true;
                continue;
            }
            _ => app.names.of(py, name.as_bytes(), || Ok(key(py, name)))?,
        };
        let mut value = native(py, value);
        if let Some(before) = environ.get_item(&key)? {
            let separator = if name.eq_ignore_ascii_case("cookie") { "; " } else { "," };
            let (before, more) = (before.cast_into::<PyString>()?, value);
            value = PyString::new(py, &format!("{before}{separator}{more}"));
        }
        environ.set_item(key, value)?;
    }
    Ok(has_length)
}

/// Bytes as a native string: each becomes the character of its number (PEP 3333).
fn native<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => PyString::new(py, text),
        _ => PyString::new(py, &bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
    }
}
