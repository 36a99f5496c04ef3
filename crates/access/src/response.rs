//! The response that a gate gives in place of an endpoint.

use gustnado_http::status::Status;

/// The response of a gate. An error gets the page of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateResponse {
    /// Its status.
    pub status: Status,
    /// Its header fields.
    pub fields: Vec<(&'static str, String)>,
    /// The text of the page.
    pub hint: Option<&'static str>,
}

impl GateResponse {
    pub(crate) fn new(status: Status) -> Self {
        Self { status, fields: Vec::new(), hint: None }
    }

    pub(crate) fn error(status: Status, hint: &'static str) -> Self {
        let fields = vec![("Cache-Control", "no-store".to_owned())];
        Self { status, fields, hint: Some(hint) }
    }
}
