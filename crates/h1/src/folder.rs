//! The shortest path from a request to its response: files of a folder without middleware.

use std::sync::Arc;

use gustnado_http::head::Framing;
use gustnado_http::method::Method;
use gustnado_http::path::CanonicalPath;
use gustnado_tasks::SendBuf;

use super::Conn;
use super::body::BodyUse;
use super::body_end::BodyEnd;
use super::in_flight::InFlight;
use super::pending::PendingContent;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, TurnContext};
use super::respond::{WriteContext, WrittenResponse, write_file};
use gustnado_files::{Files, FolderResponse, Lookup, Mounted};
use gustnado_web::handler::{HandlerFuture, RunningHandler};
use gustnado_web::request_head::{RequestHead, RequestHeadRef};
use gustnado_web::response::Response;
use gustnado_web::routes::{RouteOptions, RouteTable};

impl Conn {
    /// Responds from a folder that is mounted at a path, once the body of the request was read.
    ///
    /// - `path`: returns the canonical path of the request.
    /// - `options`: those of its route.
    #[expect(clippy::inline_always, reason = "as a call it costs each file instructions")]
    #[inline(always)]
    pub(super) fn respond_from_mount<'p>(
        &self,
        (files, at, path): (&Files, usize, impl FnOnce() -> Option<CanonicalPath<'p>>),
        (table, options): (&Arc<RouteTable>, &RouteOptions),
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        if received.has_body_ahead() {
            return ResponseProgress::BodyFirst(received.put_off(BodyUse::Nothing(*options)));
        }
        let place = path().map(|path| Mounted { path, at });
        self.respond_from_folder((files, place.as_ref()), table, received, turn, out)
    }

    /// Responds from a folder, or waits for its disk. The request has no body, or it was read.
    ///
    /// - `place`: as for [`Files::respond`].
    #[inline(never)]
    pub(super) fn respond_from_folder(
        &self,
        (files, place): (&Files, Option<&Mounted<'_>>),
        table: &Arc<RouteTable>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let view = received.view();
        let is_secure = || self.app.is_secure(view, &self.socket);
        let written = files.respond_whole(place, &view, is_secure, turn.time, |file| {
            let ending = received.ending();
            let head_only = view.method() == Method::Head;
            let (opening, at) = (&turn.prefix.opening, out.bytes.len());
            let written = write_file(file, head_only, opening, ending.persist(), &mut out.bytes);
            self.count_response(received.note(written, at), &out.bytes);
            let segment = if head_only { None } else { file.segment() };
            let rest = segment.map(|segment| PendingContent::of_segment(segment, ending));
            ResponseProgress::of(rest, ending, &view, out)
        });
        written.unwrap_or_else(|other| {
            self.respond_otherwise((files, other), table, received, turn, out)
        })
    }

    #[cold]
    #[inline(never)]
    fn respond_otherwise(
        &self,
        (files, response): (&Files, FolderResponse),
        table: &Arc<RouteTable>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let parts = RequestHead::take(received.head, received.bytes);
        match response {
            FolderResponse::Ready(response) => {
                self.respond(Response::from(*response), (&parts, table), received, turn, out)
            }
            FolderResponse::Wait(lookup) => {
                parts.hint(files);
                ResponseProgress::InFlight(self.in_flight_lookup(*lookup, parts, table, received))
            }
        }
    }

    /// Returns a request in flight that waits for the disk instead of a handler.
    fn in_flight_lookup(
        &self,
        lookup: Lookup,
        parts: RequestHeadRef,
        table: &Arc<RouteTable>,
        received: &ReceivedRequest<'_>,
    ) -> Box<InFlight> {
        let mut incoming = self.incoming(&RouteOptions::default(), Framing::None, false);
        incoming.is_broken = received.body.end() == BodyEnd::Close;
        // A client that has shut down its sending side still gets its file, however slow the disk.
        let wait_ms = u64::try_from(lookup.wait().as_millis()).unwrap_or(u64::MAX);
        incoming.half_close_ms = incoming.half_close_ms.max(wait_ms);
        let looking = async move { Response::from(lookup.run().await) };
        let running = RunningHandler::new(HandlerFuture::Boxed(Box::pin(looking)));
        Box::new(InFlight::new(parts, Arc::clone(table), running, incoming, None))
    }

    /// Writes any response to a request whose body was read or skipped.
    pub(super) fn respond(
        &self,
        response: Response,
        (parts, table): (&RequestHeadRef, &RouteTable),
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let wanted = WriteContext {
            parts,
            pages: &table.pages,
            prefix: &turn.prefix,
            now: turn.time,
            ending: received.ending(),
            origin: self.origin(),
            // A route with time-outs of its own runs as a task, never here.
            timeouts: None,
            read_ms: turn.time.mono_ms,
        };
        let WrittenResponse { rest, ending, responded } =
            self.write_response(response, &wanted, &mut out.bytes);
        received.response = responded;
        ResponseProgress::of(rest, ending, &received.view(), out)
    }
}
