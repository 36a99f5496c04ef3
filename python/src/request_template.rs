//! The common part of the scopes or environments of all requests to one local address.

use std::net::SocketAddr;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use gustnado::{Endpoint, Request};

use crate::name_cache::LastValue;

/// A dictionary, and its copy with the local address of the last request.
pub(crate) struct RequestTemplate {
    dict: Py<PyDict>,
    with_address: LastValue<SocketAddr, PyDict>,
}

impl RequestTemplate {
    pub(crate) fn new(dict: Py<PyDict>) -> Self {
        Self { dict, with_address: LastValue::default() }
    }

    /// Returns the dictionary for a request, which the caller has to copy.
    ///
    /// - `set_address`: writes the host and port of this end into a new copy.
    pub(crate) fn of<'py>(
        &self,
        py: Python<'py>,
        request: &Request,
        set_address: impl FnOnce(&Bound<'py, PyDict>, String, u16) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = self.dict.bind(py);
        let Some(Endpoint::Tcp(local)) = request.local() else { return Ok(dict.clone()) };
        self.with_address.of(py, local, || {
            let copy = dict.copy()?;
            set_address(&copy, local.ip().to_canonical().to_string(), local.port())?;
            Ok(copy)
        })
    }
}
