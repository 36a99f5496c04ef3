//! Files that clients send to a folder: a body by PUT, or the files of a form by POST.

use std::sync::Arc;

use bytes::Bytes;
use gustnado_files::{FileUpload, Files, Mounted};
use gustnado_http::method::Method;
use gustnado_http::status::Status;

use crate::forms::{FormError, FormLimits, Part};
use crate::handler::{HandlerFuture, TaskFn};
use crate::request::Request;
use crate::response::{IntoResponse, Response};

/// Bytes that are gathered before a thread writes them. While it does, nothing more is received.
const PIECE_BYTES: usize = 256 << 10;

/// Returns a handler that takes files for a folder.
///
/// - `mounted_at`: bytes of a request's path that are the route's.
pub fn handler(files: Arc<Files>, mounted_at: usize) -> Arc<TaskFn> {
    Arc::new(move |request| {
        let files = Arc::clone(&files);
        HandlerFuture::Boxed(Box::pin(async move {
            let outcome = match request.method() {
                Method::Put => put(&files, mounted_at, request).await,
                _ => post(&files, mounted_at, request).await,
            };
            outcome.unwrap_or_else(|refused| refused)
        }))
    })
}

/// Takes the body of a request as the file at its path (RFC 9110 §9.3.4).
async fn put(files: &Files, at: usize, mut request: Request) -> Result<Response, Response> {
    check_origin(&request)?;
    if request.header_bytes("content-range").is_some() {
        // RFC 9110 §14.5: a part of a file would be taken for the whole of it.
        return Err(Response::new(Status::BAD_REQUEST));
    }
    let parts = request.parts().clone();
    let path = parts.path().map_err(|_| Response::new(Status::BAD_REQUEST))?;
    let mut body = request.take_body();
    let place = Mounted { path, at };
    let begun = files.begin_upload(&place, None, parts.view(), body.length()).await;
    let mut upload = begun.map_err(Response::from)?;
    let mut gathered = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(IntoResponse::into_response)?;
        gather(&mut upload, &mut gathered, &piece).await?;
    }
    finish(upload, gathered).await
}

/// Takes the files of a form (RFC 7578), each under its own name in the folder at the path.
async fn post(files: &Files, at: usize, mut request: Request) -> Result<Response, Response> {
    check_origin(&request)?;
    let refused = |error: FormError| error.into_response();
    let parts = request.parts().clone();
    let path = parts.path().map_err(|_| Response::new(Status::BAD_REQUEST))?;
    let wants_page = request.header("accept").is_some_and(|accept| accept.contains("text/html"));
    let mut form = request.multipart(&FormLimits::default()).map_err(refused)?;
    let place = Mounted { path, at };
    let mut last = None;
    while let Some(part) = form.next().await {
        let part = part.map_err(refused)?;
        // Browsers of old sent the whole path of the client's file.
        let name = part.file_name().and_then(|name| name.rsplit(['/', '\\']).next());
        let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) else { continue };
        let begun = files.begin_upload(&place, Some(name.as_bytes()), parts.view(), None).await;
        last = Some(take_part(begun.map_err(Response::from)?, part).await?);
    }
    match last {
        None => Err(Response::text("The form has no file.\n").status(Status::BAD_REQUEST)),
        // Back to the listing, which shows them.
        Some(_) if wants_page => Ok(Response::redirect(Status::SEE_OTHER, "./")),
        Some(mut response) => {
            // It is the tag of one of the files, and the path is that of their folder.
            response.remove_header("etag");
            Ok(response)
        }
    }
}

async fn take_part(mut upload: FileUpload, mut part: Part<'_>) -> Result<Response, Response> {
    let mut gathered = Vec::new();
    while let Some(piece) = part.next().await {
        let piece = piece.map_err(IntoResponse::into_response)?;
        gather(&mut upload, &mut gathered, &piece).await?;
    }
    finish(upload, gathered).await
}

/// Gathers received bytes, and has them written once they are many.
async fn gather(
    upload: &mut FileUpload,
    gathered: &mut Vec<u8>,
    piece: &Bytes,
) -> Result<(), Response> {
    gathered.extend_from_slice(piece);
    if gathered.len() >= PIECE_BYTES {
        upload.write(std::mem::take(gathered)).await.map_err(Response::from)?;
    }
    Ok(())
}

async fn finish(mut upload: FileUpload, rest: Vec<u8>) -> Result<Response, Response> {
    if !rest.is_empty() {
        upload.write(rest).await.map_err(Response::from)?;
    }
    upload.finish().await.map(Response::from).map_err(Response::from)
}

/// Refuses what a page of another site has its visitors send, and bodies that are encoded: they
/// would be stored as they are.
fn check_origin(request: &Request) -> Result<(), Response> {
    let forbidden = || Response::new(Status::FORBIDDEN);
    match request.header("sec-fetch-site") {
        Some("same-origin" | "none") => {}
        Some(_) => return Err(forbidden()),
        None => {
            let host = |origin: &str| origin.split_once("://").map(|(_, host)| host.to_owned());
            let origin = request.header("origin").map(|origin| host(origin).unwrap_or_default());
            if origin.is_some_and(|origin| Some(&*origin) != request.host()) {
                return Err(forbidden());
            }
        }
    }
    match request.header("content-encoding") {
        None | Some("identity" | "") => Ok(()),
        Some(_) => {
            let refused = Response::new(Status::UNSUPPORTED_MEDIA_TYPE);
            Err(refused.header("Accept-Encoding", "identity"))
        }
    }
}
