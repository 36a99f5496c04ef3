//! The step after a response's head.

use gustnado_http::request::Request;
use gustnado_tasks::SendBuf;

use super::Next;
use super::body_end::Ending;
use super::pending::PendingContent;

/// Returns what comes next after a response's head and its short content.
///
/// - `rest`: what is left to be sent, if anything.
#[inline]
pub(super) fn after_head(
    rest: Option<Box<PendingContent>>,
    ending: Ending,
    request: &Request<'_>,
    out: &mut SendBuf,
) -> Next {
    match rest {
        Some(rest) => {
            rest.announce(out);
            Next::PendingContent(rest)
        }
        None if ending.lingers() => Next::Linger,
        None if ending.ends() => {
            // The end travels with the response: one packet less.
            if !request.head().keep_alive() {
                out.expect_more();
            }
            Next::Close
        }
        None => Next::Receive,
    }
}
