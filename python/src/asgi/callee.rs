//! What an application is called with: an exchange or a WebSocket.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::PyClass;
use pyo3::prelude::*;

use gustnado::{Reply, Response};

use crate::websocket::SocketLink;

/// An exchange or a WebSocket. It has the methods `receive` and `send` for the application.
pub(super) trait AsgiCallee: PyClass + Send + Sync {
    /// Returns the link of a WebSocket.
    fn link<'s>(slf: &'s Bound<'_, Self>) -> Option<&'s Arc<SocketLink>>;

    /// Returns the response, or at least its head, if the application has sent it.
    fn take_response(slf: &Bound<'_, Self>) -> Option<Response>;

    /// Returns the reply that the application's response completes.
    fn wait(slf: &Bound<'_, Self>) -> PyResult<Reply>;

    /// Handles the application's end. Returns its violation of the protocol, if there is one.
    fn end(slf: &Bound<'_, Self>, has_failed: bool) -> Option<Cow<'static, str>>;

    /// Returns its name in the log.
    fn name(slf: &Bound<'_, Self>) -> String;

    /// Returns whether the application got the disconnect, which then explains its exception.
    fn knows_loss(slf: &Bound<'_, Self>) -> bool;
}
