//! A request as Python sees it. Values are converted on demand.

use std::borrow::Cow;
use std::sync::MutexGuard;
use std::task::Poll;

use bytes::Bytes;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use gustnado::BodyError;

use crate::errors::client_disconnected;
use crate::guarded::Guarded;

/// A request: head and body. Values are converted on demand.
#[pyclass(frozen, module = "gustnado", name = "Request")]
pub(crate) struct PyRequest {
    inner: Guarded<gustnado::Request>,
    /// The whole body, if it was read before the handler was called.
    whole: Option<Bytes>,
    /// The error of the body that the handler got.
    broken: Guarded<Option<BodyError>>,
    /// Limit of a `read` without an argument; `None`: the server's own limit.
    read_max: Option<u64>,
}

impl PyRequest {
    pub(crate) fn new(
        inner: gustnado::Request,
        whole: Option<Bytes>,
        read_max: Option<u64>,
    ) -> Self {
        Self { inner: Guarded::new(inner), whole, broken: Guarded::default(), read_max }
    }

    /// Returns the error of the body if the handler got it, which then explains its exception.
    pub(crate) fn broken(&self) -> Option<BodyError> {
        self.broken.get()
    }

    fn inner(&self) -> MutexGuard<'_, gustnado::Request> {
        self.inner.borrow_mut()
    }
}

/// Decodes bytes of a head: Latin-1 beyond ASCII (RFC 9110 §5.5).
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// Returns a request's method. Only the nine standard ones are interned: an interpreter may keep
/// interned strings for good, and clients choose the others.
pub(crate) fn method<'py>(py: Python<'py>, request: &gustnado::Request) -> Bound<'py, PyString> {
    match request.method().as_str() {
        Some(name) => PyString::intern(py, name),
        None => PyString::new(py, request.method_str()),
    }
}

#[pymethods]
impl PyRequest {
    /// The method: `GET` and the like.
    #[getter]
    fn method<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        method(py, &self.inner())
    }

    /// The decoded path, as routes compare it.
    #[getter]
    fn path(&self) -> String {
        self.inner().path().into_owned()
    }

    /// The path as it was received.
    #[getter]
    fn raw_path(&self) -> String {
        self.inner().raw_path().to_owned()
    }

    /// Sends links ahead of the response, as early hints (103).
    #[pyo3(signature = (*links))]
    fn early_hints(&self, links: Vec<String>) -> PyResult<()> {
        let value = |link: String| {
            gustnado::config::preload_link(&link).map_err(|reason| {
                let text = format!("expected a link such as /app.css; as=style, found {link:?}");
                PyValueError::new_err(format!("{text}: {reason}"))
            })
        };
        let values = links.into_iter().map(value).collect::<PyResult<Vec<_>>>()?;
        let fields: Vec<_> = values.iter().map(|value| ("Link", value.as_str())).collect();
        let sent = self.inner().early_hints(&fields);
        sent.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns whether the path is `base` or below it, by whole segments.
    fn is_under(&self, base: &str) -> bool {
        self.inner().is_under(base)
    }

    /// The target as it was received: path and query.
    #[getter]
    fn target(&self) -> String {
        self.inner().target().to_owned()
    }

    /// The query as it was received, without the question mark.
    #[getter]
    fn query_string(&self) -> String {
        self.inner().raw_query().unwrap_or_default().to_owned()
    }

    /// The decoded pairs of the query, in order.
    #[getter]
    fn query(&self) -> Vec<(String, String)> {
        let pairs = self.inner();
        pairs.query().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
    }

    /// The first value of a name in the query, or `default`.
    #[pyo3(signature = (name, default = None))]
    fn query_value(&self, name: &str, default: Option<String>) -> Option<String> {
        self.inner().query_value(name).map(Cow::into_owned).or(default)
    }

    /// The version: `1.0`, `1.1` or `2`.
    #[getter]
    fn http_version(&self) -> &'static str {
        match self.inner().version() {
            gustnado::Version::Http10 => "1.0",
            gustnado::Version::Http11 => "1.1",
            gustnado::Version::Http2 => "2",
        }
    }

    /// The named parts of the path, decoded.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (name, value) in self.inner().params() {
            found.set_item(name, value)?;
        }
        Ok(found)
    }

    /// All header fields, in order.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let inner = self.inner();
        inner.headers().map(|(name, value)| (name.to_owned(), text(value).into_owned())).collect()
    }

    /// The first value of a field, or `default`. Case does not matter.
    #[pyo3(signature = (name, default = None))]
    fn header(&self, name: &str, default: Option<String>) -> Option<String> {
        self.inner().header_bytes(name).map(|value| text(value).into_owned()).or(default)
    }

    /// All values of a field.
    fn header_values(&self, name: &str) -> Vec<String> {
        self.inner().header_values(name).map(|value| text(value).into_owned()).collect()
    }

    /// The value of a cookie, or `default`.
    #[pyo3(signature = (name, default = None))]
    fn cookie(&self, name: &str, default: Option<String>) -> Option<String> {
        self.inner().cookie(name).map(str::to_owned).or(default)
    }

    /// The client's address without a port; `None` for a Unix socket. A proxy that
    /// `--forwarded-allow-ips` trusts may name another one.
    #[getter]
    fn client(&self) -> Option<String> {
        self.inner().client_ip().map(|ip| ip.to_string())
    }

    /// The user whose password `--basic-auth` has verified; `None` without it.
    #[getter]
    fn user(&self) -> Option<String> {
        self.inner().user()
    }

    /// The scheme: `https` if the connection is by TLS, or a trusted proxy says so, else `http`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.inner().scheme()
    }

    /// The requested host: by a trusted proxy, or by the request itself. `None` without either.
    #[getter]
    fn public_host(&self) -> Option<String> {
        self.inner().public_host().map(Cow::into_owned)
    }

    /// The peer's address: `address:port`, or `None` for a Unix socket.
    #[getter]
    fn peer(&self) -> Option<String> {
        self.inner().peer().map(|peer| peer.to_string())
    }

    /// The whole body, for plain functions. A coroutine function uses `await request.read()`: there
    /// this raises `RuntimeError`.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match &self.whole {
            Some(whole) => Ok(PyBytes::new(py, whole)),
            None => Err(PyRuntimeError::new_err(
                "the body is not here yet: a coroutine function says `await request.read()`",
            )),
        }
    }

    /// Returns a coroutine that reads the whole body.
    ///
    /// - `limit`: more bytes raise `ValueError`. The default is 1 MiB, or `--limit-body-bytes`.
    ///
    /// It raises `ClientDisconnected` if the client disconnects, and `ConnectionError` for a body
    /// that is malformed, too large for the server, or too slow.
    #[pyo3(signature = (limit = None))]
    fn read<'py>(slf: &Bound<'py, Self>, limit: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        slf.get().inner().body_mut().set_collected(true);
        let read = py.import(intern!(py, "gustnado._body"))?.getattr(intern!(py, "read"))?;
        read.call1((slf, limit, slf.get().read_max))
    }

    /// Returns an asynchronous iterator over the pieces of the body, as they arrive. It raises what
    /// `read` raises.
    fn stream<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import(intern!(py, "gustnado._body"))?.getattr(intern!(py, "stream"))?.call1((slf,))
    }

    /// Returns the next bytes of the body, if they have arrived; `b""` at its end. Otherwise
    /// returns `None` and calls `then` when it is worth another try.
    fn next_or_call<'py>(
        &self,
        py: Python<'py>,
        then: Py<PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let call = move || {
            Python::attach(|py| {
                if let Err(error) = then.call0(py) {
                    error.write_unraisable(py, None);
                }
            });
        };
        match self.inner().body_mut().next_or_call(call) {
            Poll::Pending => Ok(None),
            Poll::Ready(None) => Ok(Some(PyBytes::new(py, b""))),
            Poll::Ready(Some(Ok(bytes))) => Ok(Some(PyBytes::new(py, &bytes))),
            Poll::Ready(Some(Err(error))) => {
                self.broken.set(Some(error));
                Err(match error {
                    BodyError::Gone => client_disconnected(&error.to_string()),
                    _ => PyConnectionError::new_err(error.to_string()),
                })
            }
        }
    }

    /// Notes that the body exceeds the handler's limit: an exception of the handler is 413 then.
    fn note_too_large(&self) {
        self.broken.set(Some(BodyError::TooLarge));
    }

    fn __repr__(&self) -> String {
        let inner = self.inner();
        format!("<Request {} {}>", inner.method_str(), inner.target())
    }
}
