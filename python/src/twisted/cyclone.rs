//! Requests to a `cyclone.web.Application`: parses heads for it and makes heads from what its
//! handlers say. It replaces the functions that `gustnado.twisted._cyclone` names.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::plain::PlainRequest;
use crate::name_cache::NameCache;

/// Cyclone's classes and functions.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct CycloneApi {
    new: Py<PyAny>,
    new_headers: Py<PyAny>,
    request: Py<PyAny>,
    headers: Py<PyAny>,
    normalize: Py<PyAny>,
    parse_qs: Py<PyAny>,
    names: NameCache<PyString>,
}

/// Maximum number of cached field names.
const NAMES_MAX: usize = 256;

#[pymethods]
impl CycloneApi {
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = |name: &str| source.getattr(name).map(Bound::unbind);
        Ok(Self {
            new: of("new")?,
            new_headers: of("new_headers")?,
            request: of("request")?,
            headers: of("headers")?,
            normalize: of("normalize")?,
            parse_qs: of("parse_qs")?,
            names: NameCache::new(NAMES_MAX),
        })
    }
}

impl CycloneApi {
    /// Replaces `HTTPConnection._on_headers` for a request without a body. Returns the request,
    /// unless its head is better left to Cyclone.
    ///
    /// - `remote`: the client's address.
    pub(super) fn make_request<'py>(
        &self,
        connection: &Bound<'py, PyAny>,
        plain: &PlainRequest<'_>,
        remote: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = connection.py();
        let Some(headers) = self.make_headers(py, plain)? else { return Ok(None) };
        let (Ok(method), Ok(uri)) =
            (str::from_utf8(plain.method()), str::from_utf8(plain.target()))
        else {
            return Ok(None);
        };
        let request = self.new.bind(py).call1((&self.request,))?;
        let set =
            |name: &Bound<'py, PyString>, value: &Bound<'py, PyAny>| request.setattr(name, value);
        let text = |text: &str| PyString::new(py, text).into_any();
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let version =
            if plain.is_old() { intern!(py, "HTTP/1.0") } else { intern!(py, "HTTP/1.1") };
        set(intern!(py, "method"), &PyString::intern(py, method).into_any())?;
        set(intern!(py, "uri"), &text(uri))?;
        set(intern!(py, "version"), version)?;
        let fields = headers.cast::<PyDict>()?;
        let host = fields.get_item(intern!(py, "Host"))?;
        let host = match host {
            Some(host) if host.is_truthy()? => host,
            _ => intern!(py, "127.0.0.1").clone().into_any(),
        };
        set(intern!(py, "headers"), &headers)?;
        set(intern!(py, "body"), &PyBytes::new(py, b"").into_any())?;
        set(intern!(py, "remote_ip"), remote)?;
        set(intern!(py, "protocol"), intern!(py, "http"))?;
        set(intern!(py, "host"), &host)?;
        set(intern!(py, "files"), &PyDict::new(py).into_any())?;
        set(intern!(py, "connection"), connection)?;
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        request.setattr(intern!(py, "_start_time"), now)?;
        request.setattr(intern!(py, "_finish_time"), py.None())?;
        set(intern!(py, "path"), &text(path))?;
        let query = text(query);
        set(intern!(py, "query"), &query)?;
        let arguments = if query.is_truthy()? {
            let options = PyDict::new(py);
            options.set_item(intern!(py, "keep_blank_values"), true)?;
            self.parse_qs.bind(py).call((query,), Some(&options))?
        } else {
            PyDict::new(py).into_any()
        };
        set(intern!(py, "arguments"), &arguments)?;
        Ok(Some(request))
    }

    /// Replaces `HTTPHeaders.parse`.
    fn make_headers<'py>(
        &self,
        py: Python<'py>,
        plain: &PlainRequest<'_>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let headers = self.new_headers.bind(py).call1((&self.headers,))?;
        // Its entries are set by `dict`, not by the override of this class.
        let fields = headers.cast::<PyDict>()?;
        let lists = PyDict::new(py);
        let mut last = None;
        for (name, value) in plain.fields() {
            // Python recognises more line ends and blanks than those of ASCII.
            let is_printable = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
            let (true, Ok(name), Ok(value)) =
                (is_printable, str::from_utf8(name), str::from_utf8(value))
            else {
                return Ok(None);
            };
            let (name, value) = (self.normalized(py, name)?, PyString::new(py, value));
            if let Some(before) = fields.get_item(&name)? {
                let before = before.cast_into::<PyString>()?;
                fields.set_item(&name, format!("{before},{value}"))?;
                let values = lists.get_item(&name)?;
                values.map_or(Ok(()), |values| values.cast::<PyList>()?.append(value))?;
            } else {
                fields.set_item(&name, &value)?;
                lists.set_item(&name, PyList::new(py, [value])?)?;
            }
            last = Some(name);
        }
        headers.setattr(intern!(py, "_as_list"), lists)?;
        headers.setattr(intern!(py, "_last_key"), last)?;
        Ok(Some(headers))
    }

    fn normalized<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyString>> {
        self.names.of(py, name.as_bytes(), || {
            Ok(self.normalize.bind(py).call1((name,))?.cast_into::<PyString>()?)
        })
    }
}

/// Replaces `RequestHandler._generate_headers` for a handler without new cookies. `None` if
/// anything is unusual.
#[pyfunction]
pub(crate) fn cyclone_head<'py>(
    handler: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = handler.py();
    if handler.getattr_opt(intern!(py, "_new_cookie"))?.is_some() {
        return Ok(None);
    }
    let version = handler.getattr(intern!(py, "request"))?.getattr(intern!(py, "version"))?;
    let status = handler.getattr(intern!(py, "_status_code"))?.extract::<u16>();
    let reason = handler.getattr(intern!(py, "_reason"))?;
    let fields = handler.getattr(intern!(py, "_headers"))?;
    let more = handler.getattr(intern!(py, "_list_headers"))?;
    let (Ok(version), Ok(status), Ok(reason), Ok(fields), Ok(more)) = (
        version.cast::<PyString>(),
        status,
        reason.cast::<PyString>(),
        fields.cast_exact::<PyDict>(),
        more.cast_exact::<PyList>(),
    ) else {
        return Ok(None);
    };
    let mut head = Vec::with_capacity(256);
    let mut digits = itoa::Buffer::new();
    for part in [version.to_str()?, " ", digits.format(status), " ", reason.to_str()?, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    for (name, value) in fields {
        if !add_line(&mut head, &name, &value)? {
            return Ok(None);
        }
    }
    for pair in more {
        let Ok(pair) = pair.cast_exact::<PyTuple>() else { return Ok(None) };
        if pair.len() != 2 || !add_line(&mut head, &pair.get_item(0)?, &pair.get_item(1)?)? {
            return Ok(None);
        }
    }
    head.extend_from_slice(b"\r\n");
    Ok(Some(PyBytes::new(py, &head).into_any()))
}

fn add_line(
    head: &mut Vec<u8>,
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let (Ok(name), Ok(value)) = (name.cast::<PyString>(), value.cast::<PyString>()) else {
        return Ok(false);
    };
    for part in [name.to_str()?, ": ", value.to_str()?, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    Ok(true)
}
