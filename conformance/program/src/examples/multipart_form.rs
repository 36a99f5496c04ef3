//! axum's example `multipart-form`. What it prints is its response, so that a client can see it.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::routing::post;
use tower_http::limit::RequestBodyLimitLayer;

pub(super) fn app() -> Router {
    Router::new()
        .route("/", post(accept_form))
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(250 * 1024 * 1024 /* 250mb */))
}

async fn accept_form(mut multipart: Multipart) -> String {
    let mut told = String::new();
    while let Some(field) = multipart.next_field().await.unwrap() {
        let name = field.name().unwrap().to_string();
        let file_name = field.file_name().unwrap().to_string();
        let content_type = field.content_type().unwrap().to_string();
        let data = field.bytes().await.unwrap();

        told += &format!(
            "Length of `{name}` (`{file_name}`: `{content_type}`) is {} bytes\n",
            data.len()
        );
    }
    told
}
