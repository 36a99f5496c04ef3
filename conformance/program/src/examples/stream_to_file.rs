//! axum's example `stream-to-file`. The folder is a word of the program.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::{io, pin::pin};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Multipart, Path, Request};
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::post;
use axum::{BoxError, Router};
use futures_util::{Stream, TryStreamExt};
use tokio::{fs::File, io::BufWriter};
use tokio_util::io::StreamReader;

/// Where the files come.
pub(crate) static UPLOADS_DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

pub(super) fn app() -> Router {
    Router::new()
        .route("/", post(accept_form))
        .route("/file/{file_name}", post(save_request_body))
        // (The example's own limit is 2 MB, which no test of large bodies can use.)
        .layer(DefaultBodyLimit::disable())
}

// Handler that streams the request body to a file.
//
// POST'ing to `/file/foo.txt` will create a file called `foo.txt`.
async fn save_request_body(
    Path(file_name): Path<String>,
    request: Request,
) -> Result<(), (StatusCode, String)> {
    stream_to_file(&file_name, request.into_body().into_data_stream()).await
}

// Handler that accepts a multipart form upload and streams each field to a file.
async fn accept_form(mut multipart: Multipart) -> Result<Redirect, (StatusCode, String)> {
    while let Ok(Some(field)) = multipart.next_field().await {
        let file_name = if let Some(file_name) = field.file_name() {
            file_name.to_owned()
        } else {
            continue;
        };

        stream_to_file(&file_name, field).await?;
    }

    Ok(Redirect::to("/"))
}

// Save a `Stream` to a file
async fn stream_to_file<S, E>(path: &str, stream: S) -> Result<(), (StatusCode, String)>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: Into<BoxError>,
{
    if !path_is_valid(path) {
        return Err((StatusCode::BAD_REQUEST, "Invalid path".to_owned()));
    }

    async {
        // Convert the stream into an `AsyncRead`.
        let body_with_io_error = stream.map_err(io::Error::other);
        let mut body_reader = pin!(StreamReader::new(body_with_io_error));

        // Create the file. `File` implements `AsyncWrite`.
        let folder = UPLOADS_DIRECTORY.get().expect("the program has named it");
        let mut file = BufWriter::new(File::create(folder.join(path)).await?);

        // Copy the body into the file.
        tokio::io::copy(&mut body_reader, &mut file).await?;

        Ok::<_, io::Error>(())
    }
    .await
    .map_err(|err| (StatusCode::INTERNAL_SERVER_ERROR, err.to_string()))
}

// to prevent directory traversal attacks we ensure the path consists of exactly one normal
// component
fn path_is_valid(path: &str) -> bool {
    let path = std::path::Path::new(path);
    let mut components = path.components().peekable();

    if let Some(first) = components.peek() {
        if !matches!(first, std::path::Component::Normal(_)) {
            return false;
        }
    }

    components.count() == 1
}
