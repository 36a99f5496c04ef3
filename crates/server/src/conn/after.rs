//! What comes next once an answer has been written.

use gustnado_http::request::Request;
use gustnado_tasks::SendBuf;

use super::Next;
use super::body_end::Ending;
use crate::files::{Rest, is_lookup};

/// What comes next after an answer's head and small content have been written.
#[inline]
pub(super) fn after_rest(
    rest: Rest,
    ending: Ending,
    request: &Request<'_>,
    out: &mut SendBuf,
) -> Next {
    match rest {
        Rest::Segments(segments) => {
            // Else the client is woken for the head alone (docs/results/large-files.md).
            if !is_lookup(&segments) {
                out.expect_more();
            }
            Next::Segments { segments, ending }
        }
        Rest::Nothing if ending.lingers() => Next::Linger,
        Rest::Nothing if ending.ends() => {
            // The end travels with the answer: one packet less.
            if !request.keep_alive() {
                out.expect_more();
            }
            Next::Close
        }
        Rest::Nothing => Next::Receive,
    }
}
