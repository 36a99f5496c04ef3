//! Converts the engine's errors to Python exceptions, and reports Python exceptions to the log.

use std::io;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use gustnado::StartError;

/// The class `gustnado.ClientDisconnected`, which is written in Python.
static CLIENT_DISCONNECTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn client_disconnected_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    CLIENT_DISCONNECTED.import(py, "gustnado._errors", "ClientDisconnected")
}

/// Loads the exceptions of the package. An import runs Python code, which must not happen later,
/// while a value is borrowed.
pub(crate) fn load(py: Python<'_>) -> PyResult<()> {
    client_disconnected_class(py).map(drop)
}

/// Returns the exception for a client that has disconnected.
pub(crate) fn client_disconnected(text: &str) -> PyErr {
    Python::attach(|py| match client_disconnected_class(py) {
        Ok(class) => PyErr::from_type(class.clone(), text.to_owned()),
        Err(error) => error,
    })
}

/// Reports exceptions of handlers and applications.
pub(crate) struct ErrorReporter(pub(crate) Py<PyAny>);

/// The origin of a failure of a handler or application.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultOrigin {
    Own,
    /// The client, which has disconnected or sent a broken body: not worth an operator's attention.
    Peers,
}

impl FaultOrigin {
    pub(crate) fn of_peer(is_of_peer: bool) -> Self {
        if is_of_peer { Self::Peers } else { Self::Own }
    }
}

impl ErrorReporter {
    /// - `what`: a line about the context.
    pub(crate) fn report(&self, py: Python<'_>, error: Option<&PyErr>, what: &str) {
        self.report_as(py, error, what, FaultOrigin::Own);
    }

    /// The same with the origin.
    pub(crate) fn report_as(
        &self,
        py: Python<'_>,
        error: Option<&PyErr>,
        what: &str,
        origin: FaultOrigin,
    ) {
        // Before Python 3.12 `value` alone has no traceback.
        let error = error.map(|error| error.clone_ref(py).into_value(py));
        let reported = self.0.call1(py, (error, what, origin == FaultOrigin::Peers));
        if let Err(second) = reported {
            second.write_unraisable(py, None);
        }
    }
}

/// Logs a warning for the operator.
pub(crate) fn warn(what: &str) {
    Python::attach(|py| {
        let warned = py
            .import(intern!(py, "gustnado._routes"))
            .and_then(|routes| routes.getattr(intern!(py, "warn")))
            .and_then(|warn| warn.call1((what,)));
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    });
}

/// Converts an I/O error with its number, since programs such as Twisted check `errno`.
pub(crate) fn of_io(error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Converts a start error.
pub(crate) fn of_start(error: &StartError) -> PyErr {
    let text = error.to_string();
    match error {
        StartError::Folder(_)
        | StartError::Routes(_)
        | StartError::AccessLogFormat(_)
        | StartError::AnyProxy
        | StartError::User(_) => PyValueError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}
