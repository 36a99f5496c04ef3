//! Gustnado for Python: the native half of the package `gustnado`.
//!
//! It holds the engine as an object that Python's loop drives, requests and responses as Python
//! sees them, and the calls to handlers. Decisions about HTTP are in the crate `gustnado`; the
//! command, worker processes and loops are in Python.
//!
//! One worker of the engine runs on the thread that drives it and holds the interpreter's lock. It
//! releases the lock once a turn, around the sleep in the kernel.

mod asgi;
mod awaitable;
mod awaitables;
mod bytes_like;
mod call;
mod coroutine;
mod engine;
mod errors;
mod guarded;
mod hang_watch;
mod limits;
mod name_cache;
mod pipe;
mod poller;
mod regular;
mod request;
mod request_template;
mod response;
mod root_path;
mod tunnel;
mod twisted;
mod websocket;
mod writer;
mod wsgi;

use gustnado::config::{Field, ListenSpec, Origin, Settings, TUNABLES, Tunable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use std::collections::HashMap;
use std::ffi::OsStr;

/// A setting for Python: name, description, whether it is a switch, heading, default, accepted
/// values, placeholder in help, and whether a route may have its own.
type SettingSpec =
    (&'static str, &'static str, bool, &'static str, &'static str, String, &'static str, bool);

/// Returns all settings of the engine.
#[pyfunction]
fn settings() -> Vec<SettingSpec> {
    let tell = |tunable: &Tunable| {
        let is_switch = matches!(tunable.field, Field::Switch { .. });
        let heading = tunable.group.heading();
        let (takes, placeholder) = (tunable.takes(), tunable.placeholder());
        let (name, doc, default) = (tunable.name, tunable.doc, tunable.default);
        (name, doc, is_switch, heading, default, takes, placeholder, tunable.fits_route())
    };
    TUNABLES.iter().map(tell).collect()
}

/// Raises a `ValueError` for an invalid value of a setting.
///
/// - `place`: the source of the value, for the message: `--port`, or a variable's name.
/// - `is_variable`: whether that is an environment variable.
#[pyfunction]
fn check_setting(name: &str, value: &str, place: String, is_variable: bool) -> PyResult<()> {
    let origin = if is_variable { Origin::Environment(place) } else { Origin::Flag(place) };
    let checked = Settings::default().set(name, OsStr::new(value), origin);
    checked.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns a route's path in canonical form.
#[pyfunction]
fn canonical_route(path: &str) -> PyResult<String> {
    gustnado::canonical_route(path).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A listener's address, its settings, and what of them the engine takes of an open socket.
type ListenerSpec = (String, HashMap<&'static str, Py<PyAny>>, String);

/// Parses a listener. Raises a `ValueError` for a mistake.
///
/// - Returned: its address, settings that its socket is opened with, and the text that is left for
///   the engine.
#[pyfunction]
fn parse_listener(py: Python<'_>, text: &str) -> PyResult<ListenerSpec> {
    let spec = ListenSpec::parse(text)
        .map_err(|error| PyValueError::new_err(format!("listen: {error}")))?;
    let mut of_socket = HashMap::new();
    let mut add = |name, value: Option<Bound<'_, PyAny>>| {
        if let Some(value) = value {
            of_socket.insert(name, value.unbind());
        }
    };
    let number = |number: Option<u32>| number.map(|number| number.into_pyobject(py)).transpose();
    add("backlog", number(spec.backlog)?.map(Bound::into_any));
    add("mode", number(spec.mode)?.map(Bound::into_any));
    let text = |text: &Option<String>| text.as_ref().map(|text| PyString::new(py, text).into_any());
    add("owner", text(&spec.owner));
    add("device", text(&spec.device));
    let switch = |on: Option<bool>| on.map(|on| PyBool::new(py, on).to_owned().into_any());
    add("v6only", switch(spec.v6only));
    add("freebind", switch(Some(true).filter(|_| spec.freebind)));
    let engines = ListenSpec {
        address: "fd:0".to_owned(),
        tls: spec.tls,
        proxy_protocol: spec.proxy_protocol,
        proxy_allow_from: spec.proxy_allow_from,
        defer_accept: spec.defer_accept,
        ..ListenSpec::default()
    };
    let left = engines.to_string().trim_start_matches("fd:0").to_owned();
    Ok((spec.address, of_socket, left))
}

/// Changes this process from root to another user, for good.
#[pyfunction]
fn drop_privileges(user: &str) -> PyResult<()> {
    gustnado::drop_privileges(user).map_err(|error| errors::of_start(&error))
}

#[pymodule]
mod _gustnado {
    use pyo3::prelude::*;

    use crate::errors;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "it is Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        errors::load(module.py())
    }

    #[pymodule_export]
    use super::{canonical_route, check_setting, drop_privileges, parse_listener, settings};
    #[pymodule_export]
    use crate::asgi::Asgi;
    #[pymodule_export]
    use crate::engine::{PyAlert, PyEngine};
    #[pymodule_export]
    use crate::poller::Poller;
    #[pymodule_export]
    use crate::request::PyRequest;
    #[pymodule_export]
    use crate::response::PyResponse;
    #[pymodule_export]
    use crate::twisted::{
        CycloneApi, TlsLink, TwistedApi, TwistedConnection, TwistedTimeout, TwistedTls,
        cyclone_head, escape_for_log, read_plain_request,
    };
    #[pymodule_export]
    use crate::websocket::PyWebSocket;
    #[pymodule_export]
    use crate::writer::ResponseBodyWriter;
    #[pymodule_export]
    use crate::wsgi::Wsgi;
}
