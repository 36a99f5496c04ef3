//! The peer and client of a request, for a service.

use std::borrow::Cow;

use gustnado_tasks::Endpoint;

use crate::request::Request;

/// Peer and client of a request, as one of its extensions: see
/// [`Tower::with_client_info`](super::Tower::with_client_info).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientInfo {
    /// As [`Request::peer`].
    pub peer: Option<Endpoint>,
    /// As [`Request::client`].
    pub client: Option<Endpoint>,
    /// As [`Request::scheme`].
    pub scheme: &'static str,
    /// As [`Request::public_host`].
    pub host: Option<String>,
}

impl ClientInfo {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            peer: request.peer(),
            client: request.client(),
            scheme: request.scheme(),
            host: request.public_host().map(Cow::into_owned),
        }
    }
}
