//! What a handler's response still lacks before a protocol writes it: its file, its page.

use gustnado_http::status::Status;
use gustnado_tasks::{Now, contained};

use crate::body::Body;
use crate::error_page::error_page;
use crate::request::{Request, RequestPeer, RequestSource};
use crate::request_head::RequestHeadRef;
use crate::response::{Content, Response};
use crate::routes::Pages;

/// Opens the file that a response names, and adds the page for its status if it has no content.
///
/// - `lines`: field lines that every response of the server has.
pub fn prepared(
    mut response: Response,
    parts: &RequestHeadRef,
    pages: &Pages,
    (lines, now): (&[u8], Now),
    origin: RequestSource<'_>,
) -> Response {
    response.open_file(parts.view(), now);
    if response.status.is_interim() && !matches!(response.content, Content::Unsent(_)) {
        // It is no response: the client would take the next one for it. A switch has no content.
        response = Response::new(Status::INTERNAL_SERVER_ERROR);
    }
    if !response.wants_page() {
        return response;
    }
    with_page(response, parts, pages, (lines, now), origin)
}

/// Adds the page for the status of a response: the application's, or the standard one.
#[cold]
fn with_page(
    mut response: Response,
    parts: &RequestHeadRef,
    pages: &Pages,
    (lines, now): (&[u8], Now),
    origin: RequestSource<'_>,
) -> Response {
    let status = response.status;
    let made = pages.of(status).and_then(|page| {
        let origin = RequestPeer::lent(origin);
        let request = Request::new(parts.clone(), Body::empty(), origin);
        let mut page = contained(|| page(&request, status))?;
        page.open_page(now).then_some(page)
    });
    let hint = response.extras.as_ref().and_then(|extras| extras.hint);
    let mut page = made.unwrap_or_else(|| error_page(status, hint, (lines, &response.fields)));
    page.status = status;
    // The type is the page's: what said it of no content at all does not know the page.
    if response.header_value("Content-Type").is_some() {
        response.remove_header("Content-Type");
    }
    let of_page = std::mem::replace(&mut page.fields, response.fields);
    if !of_page.is_empty() {
        page.fields.to_mut().extend(&of_page);
    }
    page.extras = response.extras.or(page.extras);
    page
}
