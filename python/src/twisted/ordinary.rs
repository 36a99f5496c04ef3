//! Ordinary requests to a `twisted.web.server.Site`: those without a body, whose resource returns
//! its response.
//!
//! This module repeats what Twisted's own functions do on the way to `resource.render` and back,
//! step by step and in their order, so that programs find every attribute as they leave it. Where a
//! step is unusual, Twisted's functions take over. It replaces the functions that
//! `gustnado.twisted._known` names, and only in the versions listed there.

mod files;
mod log;
mod respond;

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode;
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::TwistedConnection;
use super::plain::PlainRequest;
use super::timeout::TwistedTimeout;
use super::words::HeadWords;
use crate::guarded::Guarded;
use files::FilesApi;

/// Twisted's classes and functions. Its fields have the names in `gustnado.twisted._known`.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct TwistedApi {
    new: Py<PyAny>,
    request: Py<PyAny>,
    headers: Py<PyAny>,
    bytes_io: Py<PyAny>,
    parse_qs: Py<PyAny>,
    child_of: Py<PyAny>,
    provides_encoding: Py<PyAny>,
    resource_render: Py<PyAny>,
    request_write: Py<PyAny>,
    request_finish: Py<PyAny>,
    factory_log: Py<PyAny>,
    formatter: Py<PyAny>,
    addresses: Py<PyAny>,
    not_done_yet: Py<PyAny>,
    version: Py<PyBytes>,
    make_date: Py<PyAny>,
    go_on: Py<PyAny>,
    failed: Py<PyAny>,
    /// The current second and its text.
    date: Guarded<(u64, Option<Py<PyBytes>>)>,
    /// Empty until files are served.
    files: OnceLock<FilesApi>,
}

#[pymethods]
impl TwistedApi {
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = |name: &str| source.getattr(name).map(Bound::unbind);
        Ok(Self {
            new: of("new")?,
            request: of("request")?,
            headers: of("headers")?,
            bytes_io: of("bytes_io")?,
            parse_qs: of("parse_qs")?,
            child_of: of("child_of")?,
            provides_encoding: of("provides_encoding")?,
            resource_render: of("resource_render")?,
            request_write: of("request_write")?,
            request_finish: of("request_finish")?,
            factory_log: of("factory_log")?,
            formatter: of("formatter")?,
            addresses: of("addresses")?,
            not_done_yet: of("not_done_yet")?,
            version: source.getattr("version")?.extract()?,
            make_date: of("make_date")?,
            go_on: of("go_on")?,
            failed: of("failed")?,
            date: Guarded::new((0, None)),
            files: OnceLock::new(),
        })
    }

    /// Enables sending files without Python.
    fn set_files(&self, source: &Bound<'_, PyAny>) -> PyResult<()> {
        // A second call changes nothing.
        _ = self.files.set(FilesApi::new(source)?);
        Ok(())
    }
}

/// A connection with ordinary requests.
pub(super) struct Ordinary {
    pub(super) api: Py<TwistedApi>,
    pub(super) site: Py<PyAny>,
    pub(super) peer: Py<PyAny>,
    pub(super) host: Py<PyAny>,
    /// The connection's descriptor, and those that the reactor reads.
    pub(super) fd: Py<PyAny>,
    pub(super) reads: Py<PyAny>,
    pub(super) timeout: Option<Py<TwistedTimeout>>,
    /// The value of `Strict-Transport-Security`.
    pub(super) hsts: Option<Py<PyBytes>>,
}

/// The result of a resource.
type Rendered<'py> = Result<(Bound<'py, PyAny>, Bound<'py, PyAny>), RenderFailure<'py>>;

/// A resource, if one was found, and its exception.
type RenderFailure<'py> = (Option<Bound<'py, PyAny>>, PyErr);

impl Ordinary {
    /// Responds to a request, unless it is unusual: then nothing has happened.
    pub(super) fn respond(
        &self,
        connection: &TwistedConnection,
        channel: &Bound<'_, PyAny>,
        names: &HeadWords,
        plain: &PlainRequest<'_>,
    ) -> PyResult<bool> {
        let py = channel.py();
        let is = |of: &Bound<'_, PyAny>, name| of.getattr(name)?.is_truthy();
        let requests = channel.getattr(intern!(py, "requests"))?;
        if !plain.body().is_empty()
            || plain.target().split(|byte| *byte == b'?').next() == Some(b"*")
            || is(self.site.bind(py), intern!(py, "displayTracebacks"))?
            || is(channel, intern!(py, "_waitingForTransport"))?
            || !requests.is_instance_of::<PyList>()
            || requests.len()? != 0
        {
            return Ok(false);
        }
        if self.send_file(connection, channel, plain)? {
            return Ok(true);
        }
        let requests = requests.cast_into::<PyList>()?;
        let request = self.make_request(channel, names, plain)?;
        requests.append(&request)?;
        self.begin(channel)?;
        self.describe(&request, names, plain)?;
        match self.render(&request) {
            Ok((_, body)) if body.is(&self.api.get().not_done_yet) => {}
            Ok((resource, body)) => {
                if !self.finish(connection, channel, names, &request, &body)? {
                    let go_on = &self.api.get().go_on;
                    go_on.call1(py, (request, resource, py.None(), body))?;
                }
            }
            Err((Some(resource), error)) => {
                let go_on = &self.api.get().go_on;
                go_on.call1(py, (request, resource, error.into_value(py), py.None()))?;
            }
            Err((None, error)) => self.fail(&request, error)?,
        }
        Ok(true)
    }

    fn fail(&self, request: &Bound<'_, PyAny>, error: PyErr) -> PyResult<()> {
        let py = request.py();
        self.api.get().failed.call1(py, (request, error.into_value(py))).map(drop)
    }

    /// Replaces `Request.__init__`, and sets the head's lines and what is known of the connection's
    /// future.
    fn make_request<'py>(
        &self,
        channel: &Bound<'py, PyAny>,
        names: &HeadWords,
        plain: &PlainRequest<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, api) = (channel.py(), self.api.get());
        let request = api.new.bind(py).call1((&api.request,))?;
        let set =
            |name: &Bound<'py, PyString>, value: Bound<'py, PyAny>| request.setattr(name, value);
        set(intern!(py, "notifications"), PyList::empty(py).into_any())?;
        set(intern!(py, "channel"), channel.clone())?;
        set(intern!(py, "client"), self.peer.bind(py).clone())?;
        set(intern!(py, "host"), self.host.bind(py).clone())?;
        let fields = PyDict::new(py);
        let mut has_cookies = false;
        for (name, value) in plain.fields() {
            let (name, value) = (names.of(py, name)?, PyBytes::new(py, value));
            has_cookies |= name.as_bytes() == b"Cookie";
            match fields.get_item(&name)? {
                Some(values) => values.cast::<PyList>()?.append(value)?,
                None => fields.set_item(name, PyList::new(py, [value])?)?,
            }
        }
        let closes = !plain.is_old() && says_close(&fields, names)?;
        set(intern!(py, "requestHeaders"), self.make_headers(fields)?)?;
        set(intern!(py, "received_cookies"), PyDict::new(py).into_any())?;
        let fields = PyDict::new(py);
        if closes {
            let close = PyList::new(py, [PyBytes::new(py, b"close")])?;
            fields.set_item(&names.spelled.connection, close)?;
        }
        set(intern!(py, "responseHeaders"), self.make_headers(fields)?)?;
        set(intern!(py, "cookies"), PyList::empty(py).into_any())?;
        set(intern!(py, "transport"), channel.getattr(intern!(py, "transport"))?)?;
        set(intern!(py, "queued"), false.into_pyobject(py)?.to_owned().into_any())?;
        // Releases before 25.5 have no such attribute.
        let name = intern!(py, "_parsePOSTFormSubmission");
        if let Some(parses) = self.site.bind(py).getattr_opt(name)? {
            set(name, parses)?;
        }
        set(intern!(py, "_adapterCache"), PyDict::new(py).into_any())?;
        if has_cookies {
            request.call_method0(intern!(py, "parseCookies"))?;
        }
        channel.setattr(intern!(py, "persistent"), !closes && !plain.is_old())?;
        set(intern!(py, "content"), api.bytes_io.bind(py).call0()?)?;
        Ok(request)
    }

    fn make_headers<'py>(&self, raw: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let (py, api) = (raw.py(), self.api.get());
        let headers = api.new.bind(py).call1((&api.headers,))?;
        headers.setattr(intern!(py, "_rawHeaders"), raw)?;
        Ok(headers)
    }

    /// Replaces `HTTPChannel.allContentReceived`, up to the request.
    fn begin(&self, channel: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = channel.py();
        let idle = channel.getattr(intern!(py, "timeOut"))?;
        if idle.is_truthy()? {
            channel.setattr(intern!(py, "_savedTimeOut"), idle)?;
            let call = channel.getattr(intern!(py, "_TimeoutMixin__timeoutCall"))?;
            match &self.timeout {
                Some(timeout) if call.is(timeout) => {
                    timeout.get().stop();
                    channel.setattr(intern!(py, "_TimeoutMixin__timeoutCall"), py.None())?;
                    channel.setattr(intern!(py, "timeOut"), py.None())?;
                }
                _ => _ = channel.call_method1(intern!(py, "setTimeout"), (py.None(),))?,
            }
        }
        channel.setattr(intern!(py, "_handlingRequest"), true)?;
        channel.setattr(intern!(py, "line_mode"), 0)
    }

    /// Replaces `Request.requestReceived`, and `process` up to the resource.
    fn describe(
        &self,
        request: &Bound<'_, PyAny>,
        names: &HeadWords,
        plain: &PlainRequest<'_>,
    ) -> PyResult<()> {
        let (py, api) = (request.py(), self.api.get());
        let (path, query) = match memchr::memchr(b'?', plain.target()) {
            Some(at) => (&plain.target()[..at], Some(&plain.target()[at + 1..])),
            None => (plain.target(), None),
        };
        let target = PyBytes::new(py, plain.target());
        let args = match query {
            Some(query) => api.parse_qs.bind(py).call1((PyBytes::new(py, query), 1))?,
            None => PyDict::new(py).into_any(),
        };
        request.setattr(intern!(py, "args"), args)?;
        request.setattr(intern!(py, "method"), names.method(py, plain.method()))?;
        request.setattr(intern!(py, "uri"), &target)?;
        request.setattr(intern!(py, "clientproto"), names.version(py, plain.is_old()))?;
        let whole = if query.is_some() { PyBytes::new(py, path) } else { target };
        request.setattr(intern!(py, "path"), whole)?;
        request.setattr(intern!(py, "site"), &self.site)?;
        let fields = raw_of(request, intern!(py, "responseHeaders"))?;
        fields.set_item(&names.spelled.server, PyList::new(py, [api.version.bind(py)])?)?;
        fields.set_item(&names.spelled.date, PyList::new(py, [api.date(py)?])?)?;
        if let Some(hsts) = &self.hsts {
            let name = PyBytes::new(py, b"Strict-Transport-Security");
            fields.set_item(name, PyList::new(py, [hsts.bind(py)])?)?;
        }
        request.setattr(intern!(py, "prepath"), PyList::empty(py))?;
        let parts = path.get(1..).unwrap_or_default().split(|byte| *byte == b'/');
        let parts = parts.map(|part| match memchr::memchr(b'%', part) {
            Some(_) => PyBytes::new(py, &percent_decode(part).collect::<Vec<u8>>()),
            None => PyBytes::new(py, part),
        });
        let postpath = PyList::empty(py);
        parts.into_iter().try_for_each(|part| postpath.append(part))?;
        request.setattr(intern!(py, "postpath"), postpath)
    }

    /// Replaces `Site.getResourceFor`, and the resource's own `render`.
    fn render<'py>(&self, request: &Bound<'py, PyAny>) -> Rendered<'py> {
        let resource = self.find(request).map_err(|error| (None, error))?;
        match self.call(request, &resource) {
            Ok(body) => Ok((resource, body)),
            Err(error) => Err((Some(resource), error)),
        }
    }

    fn find<'py>(&self, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, api) = (request.py(), self.api.get());
        request.setattr(intern!(py, "sitepath"), PyList::empty(py))?;
        let root = self.site.bind(py).getattr(intern!(py, "resource"))?;
        let resource = if root.getattr(intern!(py, "isLeaf"))?.is_truthy()? {
            root
        } else {
            api.child_of.bind(py).call1((root, request))?
        };
        if api.provides_encoding.bind(py).call1((&resource,))?.is_truthy()? {
            let encoder = resource.call_method1(intern!(py, "getEncoder"), (request,))?;
            if !encoder.is_none() {
                request.setattr(intern!(py, "_encoder"), encoder)?;
            }
        }
        Ok(resource)
    }

    fn call<'py>(
        &self,
        request: &Bound<'py, PyAny>,
        resource: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = request.py();
        let render = resource.getattr(intern!(py, "render"))?;
        if is_function(resource, &render, &self.api.get().resource_render)? {
            let method = request.getattr(intern!(py, "method"))?;
            let name = match method.cast::<PyBytes>().map(PyBytesMethods::as_bytes) {
                Ok(b"GET") => intern!(py, "render_GET"),
                Ok(b"POST") => intern!(py, "render_POST"),
                _ => return render.call1((request,)),
            };
            match resource.getattr(name) {
                Ok(named) if named.is_truthy()? => return named.call1((request,)),
                Err(error) if !error.is_instance_of::<PyAttributeError>(py) => return Err(error),
                _ => {}
            }
        }
        render.call1((request,))
    }
}

impl TwistedApi {
    /// Returns the date of this second.
    fn date<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let known = || self.date.borrow_mut();
        if let (second, Some(text)) = &*known()
            && *second == now
        {
            return Ok(text.bind(py).clone());
        }
        let text = self.make_date.bind(py).call0()?.cast_into::<PyBytes>()?;
        *known() = (now, Some(text.clone().unbind()));
        Ok(text)
    }
}

/// Returns whether an attribute of `owner` is its own method with this function.
fn is_function(
    owner: &Bound<'_, PyAny>,
    method: &Bound<'_, PyAny>,
    function: &Py<PyAny>,
) -> PyResult<bool> {
    let py = method.py();
    Ok(method.getattr_opt(intern!(py, "__func__"))?.is_some_and(|own| own.is(function))
        && method.getattr(intern!(py, "__self__"))?.is(owner))
}

/// Returns the dictionary of a `Headers`.
fn raw_of<'py>(
    request: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyDict>> {
    let raw = request.getattr(name)?.getattr(intern!(request.py(), "_rawHeaders"))?;
    Ok(raw.cast_into::<PyDict>()?)
}

/// Replaces `HTTPChannel.checkPersistence` of HTTP/1.1: it checks the words of the first line.
fn says_close(fields: &Bound<'_, PyDict>, names: &HeadWords) -> PyResult<bool> {
    let Some(values) = fields.get_item(&names.spelled.connection)? else { return Ok(false) };
    let first = values.cast::<PyList>()?.get_item(0)?.cast_into::<PyBytes>()?;
    let mut words = first.as_bytes().split(|byte| *byte == b' ');
    Ok(words.any(|word| word.eq_ignore_ascii_case(b"close")))
}
