//! Responses: the Python class, and the values that a handler may return instead.

use std::path::PathBuf;
use std::sync::MutexGuard;

use bytes::Bytes;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use gustnado::{Response as EngineResponse, Status};

use crate::bytes_like::copied;
use crate::guarded::Guarded;
use crate::pipe::{owned, pipe};
use crate::writer::ResponseBodyWriter;

/// A response with status, fields and content. It can be returned once.
///
/// - `content`: text, bytes, or nothing.
/// - `status`: 200 to 999.
/// - `headers`: a dictionary, or pairs.
/// - `content_type`: the default is that of the content.
#[pyclass(frozen, module = "gustnado", name = "Response")]
pub(crate) struct PyResponse(Guarded<Option<EngineResponse>>);

#[pymethods]
impl PyResponse {
    #[new]
    #[pyo3(signature = (content = None, status = 200, headers = None, content_type = None))]
    fn new(
        content: Option<&Bound<'_, PyAny>>,
        status: u16,
        headers: Option<&Bound<'_, PyAny>>,
        content_type: Option<&str>,
    ) -> PyResult<Self> {
        let base = match content {
            None => EngineResponse::new(Status::OK),
            Some(content) => plain(content)?.ok_or_else(|| {
                let found = content.get_type();
                PyTypeError::new_err(format!("expected text or bytes as content, found {found}"))
            })?,
        };
        Self::with(base, status, headers, content_type)
    }

    /// Returns a response with a file, which the engine sends with ranges and preconditions.
    #[staticmethod]
    #[pyo3(signature = (path, status = 200, headers = None, content_type = None))]
    fn file(
        path: PathBuf,
        status: u16,
        headers: Option<&Bound<'_, PyAny>>,
        content_type: Option<&str>,
    ) -> PyResult<Self> {
        Self::with(EngineResponse::file(path), status, headers, content_type)
    }

    /// Converts a value that a handler may return. Raises `TypeError` for any other.
    #[staticmethod]
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let routes = py.import(intern!(py, "gustnado._routes"))?;
        let response = of(value, &routes.getattr(intern!(py, "to_json"))?)?;
        Ok(Self(Guarded::new(Some(response))))
    }

    /// The status: 200 to 999.
    #[getter]
    fn status(&self) -> PyResult<u16> {
        self.read(EngineResponse::status_number)
    }

    #[setter]
    fn set_status(&self, status: u16) -> PyResult<()> {
        let response = self.take()?;
        *self.inner() = Some(with_status(response, status)?);
        Ok(())
    }

    /// Returns the value of a field, or `default`. Case does not matter.
    #[pyo3(signature = (name, default = None))]
    fn header(&self, name: &str, default: Option<String>) -> PyResult<Option<String>> {
        let latin1 = |value: &[u8]| value.iter().map(|byte| char::from(*byte)).collect();
        self.read(|response| response.header_value(name).map(latin1).or(default))
    }

    /// Adds a field. Raises `ValueError` for one that only the server may send, such as
    /// `Content-Length`, and for a value that could split the response.
    fn add_header(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = latin1(value)?;
        match &mut *self.inner() {
            Some(response) => set(response, name, &value),
            None => Err(returned()),
        }
    }

    /// Returns a response that is written over time, and its writer.
    #[staticmethod]
    #[pyo3(signature = (status = 200, headers = None, content_type = None))]
    fn open(
        status: u16,
        headers: Option<&Bound<'_, PyAny>>,
        content_type: Option<&str>,
    ) -> PyResult<(Self, ResponseBodyWriter)> {
        let (feed, content) = pipe();
        let base = EngineResponse::stream(content);
        Ok((Self::with(base, status, headers, content_type)?, ResponseBodyWriter::new(feed)))
    }
}

impl PyResponse {
    fn with(
        base: EngineResponse,
        status: u16,
        headers: Option<&Bound<'_, PyAny>>,
        content_type: Option<&str>,
    ) -> PyResult<Self> {
        let mut response = if status == 200 { base } else { with_status(base, status)? };
        if let Some(kind) = content_type {
            set(&mut response, "Content-Type", kind.as_bytes())?;
        }
        if let Some(headers) = headers {
            let pairs = match headers.cast::<PyDict>() {
                Ok(named) => named.items().into_any(),
                Err(_) => headers.clone(),
            };
            for pair in pairs.try_iter()? {
                let (name, value): (String, Bound<'_, PyAny>) = pair?.extract()?;
                set(&mut response, &name, &latin1(&value)?)?;
            }
        }
        Ok(Self(Guarded::new(Some(response))))
    }

    fn inner(&self) -> MutexGuard<'_, Option<EngineResponse>> {
        self.0.borrow_mut()
    }

    fn read<T>(&self, read: impl FnOnce(&EngineResponse) -> T) -> PyResult<T> {
        self.inner().as_ref().map(read).ok_or_else(returned)
    }

    fn take(&self) -> PyResult<EngineResponse> {
        self.inner().take().ok_or_else(returned)
    }
}

fn returned() -> PyErr {
    PyRuntimeError::new_err("this Response was returned before; make one for each request")
}

/// Converts the value of a handler to a response.
///
/// - `to_json`: formats a dictionary or list.
pub(crate) fn of(value: &Bound<'_, PyAny>, to_json: &Bound<'_, PyAny>) -> PyResult<EngineResponse> {
    if let Some(response) = plain(value)? {
        return Ok(response);
    }
    if let Ok(response) = value.cast::<PyResponse>() {
        return response.get().take();
    }
    if value.is_none() {
        return Ok(EngineResponse::new(Status::NO_CONTENT));
    }
    if value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() {
        let text: String = to_json.call1((value,))?.extract()?;
        return Ok(EngineResponse::json_text(text));
    }
    if let Ok(pair) = value.cast::<PyTuple>()
        && pair.len() == 2
        && let Ok(status) = pair.get_item(0)?.extract::<u16>()
    {
        return with_status(of(&pair.get_item(1)?, to_json)?, status);
    }
    Err(PyTypeError::new_err(format!(
        "expected text, bytes, a dictionary, a list, None, (status, content) or a Response from \
         the handler, found {}",
        value.get_type()
    )))
}

/// Converts text, or bytes of any kind.
fn plain(value: &Bound<'_, PyAny>) -> PyResult<Option<EngineResponse>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(EngineResponse::text(Bytes::copy_from_slice(text.to_str()?.as_bytes()))));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(EngineResponse::bytes(owned(bytes.clone().into()))));
    }
    if is_native(value) {
        return Ok(None);
    }
    Ok(copied(value)?.map(|bytes| EngineResponse::bytes(owned(bytes.into()))))
}

/// Returns whether it is of a usual type other than bytes, so the buffer protocol need not be
/// tried.
fn is_native(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_instance_of::<PyResponse>()
        || value.is_instance_of::<PyDict>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
}

fn with_status(response: EngineResponse, code: u16) -> PyResult<EngineResponse> {
    response.code(code, "").map_err(|_| {
        PyValueError::new_err(format!("expected a status from 200 to 999, found {code}"))
    })
}

fn set(response: &mut EngineResponse, name: &str, value: &[u8]) -> PyResult<()> {
    response
        .try_header(name, value)
        .map_err(|error| PyValueError::new_err(format!("the header field {name}: {error}")))
}

/// The value of a field: text as Latin-1, or bytes.
fn latin1(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let text: String = value.extract()?;
    text.chars()
        .map(u8::try_from)
        .collect::<Result<_, _>>()
        .map_err(|_| PyValueError::new_err(format!("a header field's value is Latin-1: {text:?}")))
}
