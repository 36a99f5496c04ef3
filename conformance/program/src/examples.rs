//! axum's own examples `sse`, `stream-to-file` and `multipart-form`, as they are in its repository
//! (MIT, Copyright (c) 2019-2025 axum Contributors), without their `main`: the server is another.
//! And `websockets`, which does what axum's example of that name does.

pub(crate) mod multipart_form;
pub(crate) mod sse;
pub(crate) mod stream_to_file;
pub(crate) mod websockets;

use axum::Router;

/// All, each beneath its name.
pub(crate) fn app() -> Router {
    Router::new()
        .nest("/sse-example", sse::app())
        .nest("/stream-to-file", stream_to_file::app())
        .nest("/multipart-form", multipart_form::app())
        .nest("/websockets", websockets::app())
}
