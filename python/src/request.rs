//! A request as Python sees it. Values are converted on demand.

use std::borrow::Cow;
use std::sync::MutexGuard;
use std::task::Poll;

use bytes::Bytes;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use gustnado::BodyError;

use crate::guarded::Guarded;

/// A request: its head, and its body.
#[pyclass(frozen, module = "gustnado", name = "Request")]
pub(crate) struct PyRequest {
    inner: Guarded<gustnado::Request>,
    /// All of the body, where it was read before the handler was called.
    whole: Option<Bytes>,
    /// What was wrong with the body, once the handler has been told.
    broken: Guarded<Option<BodyError>>,
    /// How many bytes `read` takes that names no limit; `None`: what the server's own limit is.
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

    /// What was wrong with the body, if the handler has been told: what it raises comes of that.
    pub(crate) fn broken(&self) -> Option<BodyError> {
        self.broken.get()
    }

    fn inner(&self) -> MutexGuard<'_, gustnado::Request> {
        self.inner.borrow_mut()
    }
}

/// Bytes of a head as text: they are Latin-1 where they are no ASCII (RFC 9110 §5.5).
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// A request's method. (Only the nine that have a name are interned: an interpreter may keep what
/// is for good, and clients choose the others.)
pub(crate) fn method<'py>(py: Python<'py>, request: &gustnado::Request) -> Bound<'py, PyString> {
    match request.method().as_str() {
        Some(name) => PyString::intern(py, name),
        None => PyString::new(py, request.method_str()),
    }
}

#[pymethods]
impl PyRequest {
    /// `GET` and the like.
    #[getter]
    fn method<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        method(py, &self.inner())
    }

    /// The path that routes compare, decoded.
    #[getter]
    fn path(&self) -> String {
        self.inner().path().into_owned()
    }

    /// The path as it was sent.
    #[getter]
    fn raw_path(&self) -> String {
        self.inner().raw_path().to_owned()
    }

    /// Whether the path is `base` or beneath it, segment by segment.
    fn is_under(&self, base: &str) -> bool {
        self.inner().is_under(base)
    }

    /// The target as it was sent: path and query.
    #[getter]
    fn target(&self) -> String {
        self.inner().target().to_owned()
    }

    /// The query as it was sent, without the question mark.
    #[getter]
    fn query_string(&self) -> String {
        self.inner().raw_query().unwrap_or_default().to_owned()
    }

    /// The query's pairs, decoded, in their order.
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

    /// `1.0` or `1.1`.
    #[getter]
    fn http_version(&self) -> &'static str {
        match self.inner().version() {
            gustnado::Version::Http10 => "1.0",
            gustnado::Version::Http11 => "1.1",
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

    /// All header fields, in their order.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let inner = self.inner();
        inner.headers().map(|(name, value)| (name.to_owned(), text(value).into_owned())).collect()
    }

    /// The first value of a field, whatever its case, or `default`.
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

    /// The client's address, without a port; nothing for a Unix socket. It is what proxies say
    /// that `--forwarded-allow-ips` names.
    #[getter]
    fn client(&self) -> Option<String> {
        self.inner().client_ip().map(|ip| ip.to_string())
    }

    /// How the client has asked: `https` if such a proxy says so, else `http`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.inner().scheme()
    }

    /// The host that the client has asked for, as such a proxy says it, or as the request does.
    #[getter]
    fn public_host(&self) -> Option<String> {
        self.inner().public_host().map(Cow::into_owned)
    }

    /// Where the connection came from: `address:port`, or nothing for a Unix socket.
    #[getter]
    fn peer(&self) -> Option<String> {
        self.inner().peer().map(|peer| peer.to_string())
    }

    /// The whole body. For plain functions; a coroutine function says `await request.read()`.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match &self.whole {
            Some(whole) => Ok(PyBytes::new(py, whole)),
            None => Err(PyRuntimeError::new_err(
                "the body is not here yet: a coroutine function says `await request.read()`",
            )),
        }
    }

    /// A coroutine that gives the whole body.
    ///
    /// - `limit`: more bytes raise `ValueError`. Without one, 1 MiB, or what `--limit-body-bytes`
    ///   says.
    #[pyo3(signature = (limit = None))]
    fn read<'py>(slf: &Bound<'py, Self>, limit: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let read = py.import(intern!(py, "gustnado._body"))?.getattr(intern!(py, "read"))?;
        read.call1((slf, limit, slf.get().read_max))
    }

    /// The body piece by piece: an asynchronous iterator of bytes.
    fn stream<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import(intern!(py, "gustnado._body"))?.getattr(intern!(py, "stream"))?.call1((slf,))
    }

    /// The next bytes of the body, if they are here; `b""` at its end. Else nothing, and `then` is
    /// called when it is worth asking again.
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
                Err(PyConnectionError::new_err(error.to_string()))
            }
        }
    }

    /// Notes that the body has more bytes than the handler wants.
    fn note_too_large(&self) {
        self.broken.set(Some(BodyError::TooLarge));
    }

    fn __repr__(&self) -> String {
        let inner = self.inner();
        format!("<Request {} {}>", inner.method_str(), inner.target())
    }
}
