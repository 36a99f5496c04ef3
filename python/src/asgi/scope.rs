//! The scope of a request: what ASGI passes to an application.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use gustnado::{Endpoint, ProxyInfo, Request, TlsInfo, TlsVersion, Version};

use crate::request::method;
use crate::request_template::RequestTemplate;
use crate::root_path::below;

/// Bytes of a root path that are escaped in every target (RFC 3986 §3.3).
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>');
/// The same, and those that end a path.
const ESCAPED_IN_PATHS: &AsciiSet = &ESCAPED.add(b'?').add(b'`').add(b'{').add(b'}');

/// The root path, as text and as it is encoded in targets.
pub(super) struct RootPath {
    text: String,
    raw: String,
}

impl RootPath {
    /// - `text`: empty, or whole segments: `/app`.
    pub(super) fn new(text: String) -> Self {
        let raw = utf8_percent_encode(&text, ESCAPED_IN_PATHS).to_string();
        Self { text, raw }
    }

    /// Returns the path and the raw path of a scope, which include the root path: it is added if a
    /// proxy has removed it.
    fn of<'a>(&self, raw_path: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
        let path = percent_decode_str(raw_path).decode_utf8_lossy();
        if self.text.is_empty() || below(path.as_bytes(), self.text.as_bytes()).is_some() {
            return (path, raw_path.into());
        }
        ([&self.text, &*path].concat().into(), [&self.raw, raw_path].concat().into())
    }
}

/// Returns the scope of a request.
pub(super) fn make<'py>(
    py: Python<'py>,
    template: &RequestTemplate,
    root: &RootPath,
    state: Option<&Bound<'py, PyDict>>,
    request: &Request,
) -> PyResult<Bound<'py, PyDict>> {
    let template = template.of(py, request, |template, host, port| {
        template.set_item(intern!(py, "server"), (host, port))
    })?;
    let scope = template.copy()?;
    // Middleware may write into them, for this request alone.
    for key in [intern!(py, "asgi"), intern!(py, "extensions")] {
        if let Some(shared) = template.get_item(key)? {
            scope.set_item(key, shared.cast::<PyDict>()?.copy()?)?;
        }
    }
    let version = match request.version() {
        Version::Http10 => intern!(py, "1.0"),
        Version::Http11 => intern!(py, "1.1"),
        Version::Http2 => intern!(py, "2"),
    };
    scope.set_item(intern!(py, "http_version"), version)?;
    scope.set_item(intern!(py, "method"), method(py, request))?;
    let (path, raw_path) = root.of(request.raw_path());
    scope.set_item(intern!(py, "path"), &*path)?;
    scope.set_item(intern!(py, "raw_path"), PyBytes::new(py, raw_path.as_bytes()))?;
    let query = request.raw_query().unwrap_or_default();
    scope.set_item(intern!(py, "query_string"), PyBytes::new(py, query.as_bytes()))?;
    scope.set_item(intern!(py, "headers"), fields(py, request)?)?;
    if request.scheme() == "https" {
        scope.set_item(intern!(py, "scheme"), intern!(py, "https"))?;
    }
    add_extensions(&scope, request)?;
    if let Some(Endpoint::Tcp(client)) = request.client() {
        let client = (client.ip().to_canonical().to_string(), client.port());
        scope.set_item(intern!(py, "client"), client)?;
    }
    if let Some(state) = state {
        scope.set_item(intern!(py, "state"), state.copy()?)?;
    }
    Ok(scope)
}

/// Returns the scope of a request for a WebSocket.
pub(super) fn make_of_socket<'py>(
    py: Python<'py>,
    template: &RequestTemplate,
    root: &RootPath,
    state: Option<&Bound<'py, PyDict>>,
    request: &Request,
) -> PyResult<Bound<'py, PyDict>> {
    let scope = make(py, template, root, state, request)?;
    scope.set_item(intern!(py, "type"), intern!(py, "websocket"))?;
    scope.del_item(intern!(py, "method"))?;
    let is_secure = request.scheme() == "https";
    let scheme = if is_secure { intern!(py, "wss") } else { intern!(py, "ws") };
    scope.set_item(intern!(py, "scheme"), scheme)?;
    let subprotocols = PyList::empty(py);
    for value in request.header_values("sec-websocket-protocol") {
        for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if let Ok(name) = str::from_utf8(name)
                && !name.is_empty()
            {
                subprotocols.append(name)?;
            }
        }
    }
    scope.set_item(intern!(py, "subprotocols"), subprotocols)?;
    if let Some(extensions) = scope.get_item(intern!(py, "extensions"))? {
        let extensions = extensions.cast::<PyDict>()?;
        for name in [intern!(py, "http.response.pathsend"), intern!(py, "http.response.early_hint")]
        {
            if extensions.contains(name)? {
                extensions.del_item(name)?;
            }
        }
        extensions.set_item(intern!(py, "websocket.http.response"), PyDict::new(py))?;
    }
    Ok(scope)
}

/// Adds what is known of the connection beyond addresses.
fn add_extensions(scope: &Bound<'_, PyDict>, request: &Request) -> PyResult<()> {
    let py = scope.py();
    let (tls, proxy_info, user) = (request.tls(), request.proxy_info(), request.user());
    if tls.is_none() && proxy_info.is_none() && user.is_none() {
        return Ok(());
    }
    let Some(extensions) = scope.get_item(intern!(py, "extensions"))? else { return Ok(()) };
    if let Some(tls) = tls {
        extensions.set_item(intern!(py, "tls"), tls_extension(py, tls)?)?;
    }
    if let Some(info) = proxy_info {
        extensions.set_item(intern!(py, "proxy_protocol"), proxy_extension(py, info)?)?;
    }
    if let Some(user) = user {
        // An extension of the server's own: ASGI has no word for it.
        let extension = PyDict::new(py);
        extension.set_item(intern!(py, "user"), user)?;
        extensions.set_item(intern!(py, "basic_auth"), extension)?;
    }
    Ok(())
}

/// What a PROXY header says besides addresses: an extension of the server's own.
fn proxy_extension<'py>(py: Python<'py>, info: &ProxyInfo) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |bytes: &Option<Box<[u8]>>| bytes.as_deref().map(|it| PyBytes::new(py, it));
    let extension = PyDict::new(py);
    extension.set_item(intern!(py, "alpn"), bytes(&info.alpn))?;
    extension.set_item(intern!(py, "authority"), info.authority.as_deref())?;
    extension.set_item(intern!(py, "unique_id"), bytes(&info.unique_id))?;
    let tls = info.tls.as_ref().map(|tls| {
        let known = PyDict::new(py);
        known.set_item(intern!(py, "version"), tls.version.as_deref())?;
        known.set_item(intern!(py, "cipher"), tls.cipher.as_deref())?;
        known.set_item(intern!(py, "client_name"), tls.client_name.as_deref())?;
        known.set_item(intern!(py, "has_certificate"), tls.has_certificate)?;
        known.set_item(intern!(py, "is_verified"), tls.is_verified)?;
        PyResult::Ok(known)
    });
    extension.set_item(intern!(py, "tls"), tls.transpose()?)?;
    Ok(extension)
}

/// What the handshake has agreed on, as the extension `tls` of ASGI has it.
fn tls_extension<'py>(py: Python<'py>, tls: &TlsInfo) -> PyResult<Bound<'py, PyDict>> {
    let extension = PyDict::new(py);
    extension.set_item(intern!(py, "server_cert"), &*tls.server_certificate)?;
    extension.set_item(intern!(py, "client_cert_chain"), tls.client_chain_pem())?;
    extension.set_item(intern!(py, "client_cert_name"), tls.client_subject())?;
    // A client whose certificate is wrong does not get in.
    extension.set_item(intern!(py, "client_cert_error"), py.None())?;
    let version = match tls.version {
        TlsVersion::V12 => 0x0303,
        TlsVersion::V13 => 0x0304,
    };
    extension.set_item(intern!(py, "tls_version"), version)?;
    extension.set_item(intern!(py, "cipher_suite"), tls.cipher_id)?;
    Ok(extension)
}

/// Pairs of bytes, with names in lower case.
fn fields<'py>(py: Python<'py>, request: &Request) -> PyResult<Bound<'py, PyList>> {
    let found = PyList::empty(py);
    for (name, value) in request.headers() {
        let lower = |bytes: &mut [u8]| {
            bytes.copy_from_slice(name.as_bytes());
            bytes.make_ascii_lowercase();
            Ok(())
        };
        let name = PyBytes::new_with(py, name.len(), lower)?;
        found.append((name, PyBytes::new(py, value)))?;
    }
    Ok(found)
}
