//! A request for a file, with what its head does not tell.

use gustnado_http::request::RequestView;

/// A request for a file.
#[derive(Clone, Copy)]
pub(super) struct FileRequest<'r> {
    pub(super) view: RequestView<'r>,
    /// It came by https: to this server, or to a trusted proxy. Only told where it matters.
    pub(super) is_secure: bool,
}
