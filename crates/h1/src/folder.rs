//! Requests for files of a folder that nothing stands around: the shortest way from a request to
//! its response.

use std::sync::Arc;

use gustnado_http::head::Framing;
use gustnado_http::method::Method;
use gustnado_tasks::SendBuf;

use super::after::after_head;
use super::arrived::{Arrived, Moment};
use super::body_end::BodyEnd;
use super::in_flight::InFlight;
use super::pending::PendingContent;
use super::respond::{WriteContext, write_file};
use super::{Conn, Next};
use gustnado_files::{CachedFile, Files, FolderResponse, Lookup, Mounted};
use gustnado_web::handler::{HandlerFuture, RunningHandler};
use gustnado_web::request_head::{RequestHead, RequestHeadRef};
use gustnado_web::response::Response;
use gustnado_web::routes::{RouteOptions, Table};

impl Conn {
    /// Responds with what a folder has, or waits for its disk. The request has no body, or it was
    /// dealt with.
    ///
    /// - `place`: as for [`Files::respond`].
    #[inline(never)]
    pub(super) fn respond_from_folder(
        &self,
        (files, place): (&Files, Option<&Mounted<'_>>),
        table: &Arc<Table>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> Next {
        let view = arrived.view();
        let written = files.respond_whole(place, &view, moment.time, |file| {
            self.send_file(file, arrived, moment, out)
        });
        match written {
            Ok(next) => next,
            Err(response) => self.respond_otherwise(response, table, arrived, moment, out),
        }
    }

    /// Writes 200 with all of a file out of ready parts.
    #[expect(clippy::inline_always, reason = "as a call it costs a plain request instructions")]
    #[inline(always)]
    fn send_file(
        &self,
        file: &CachedFile,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> Next {
        let ending = arrived.ending();
        let head_only = arrived.head.method() == Method::Head;
        let (opening, before) = (&moment.common.opening, out.bytes.len());
        let written = write_file(file, head_only, opening, ending.persist(), &mut out.bytes);
        arrived.response = self.count_response(written, before, &out.bytes);
        let segment = if head_only { None } else { file.segment() };
        let rest = segment.map(|segment| PendingContent::of_segment(segment, ending));
        after_head(rest, ending, &arrived.view(), out)
    }

    #[cold]
    #[inline(never)]
    fn respond_otherwise(
        &self,
        response: FolderResponse,
        table: &Arc<Table>,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> Next {
        let parts = RequestHead::take(arrived.head, arrived.bytes);
        match response {
            FolderResponse::Ready(response) => {
                self.respond(Response::from(*response), (&parts, table), arrived, moment, out)
            }
            FolderResponse::Wait(lookup) => {
                Next::InFlight(self.looking_up(*lookup, parts, table, arrived))
            }
        }
    }

    /// A request that waits for the disk, as others wait for a handler.
    fn looking_up(
        &self,
        lookup: Lookup,
        parts: RequestHeadRef,
        table: &Arc<Table>,
        arrived: &Arrived<'_>,
    ) -> Box<InFlight> {
        let mut incoming = self.incoming(&RouteOptions::default(), Framing::None, false);
        incoming.is_spoilt = arrived.body.end() == BodyEnd::Close;
        // A client that sends no more still gets its file.
        let wait_ms = u64::try_from(lookup.wait().as_millis()).unwrap_or(u64::MAX);
        incoming.half_close_ms = incoming.half_close_ms.max(wait_ms);
        let looking = async move { Response::from(lookup.run().await) };
        let answering = RunningHandler::new(HandlerFuture::Boxed(Box::pin(looking)));
        Box::new(InFlight::new(parts, Arc::clone(table), answering, incoming, None))
    }

    /// Writes a response of any kind to a request whose body was dealt with.
    pub(super) fn respond(
        &self,
        response: Response,
        (parts, table): (&RequestHeadRef, &Table),
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
    ) -> Next {
        let wanted = WriteContext {
            parts,
            pages: &table.pages,
            common: &moment.common,
            now: moment.time,
            ending: arrived.ending(),
            socket: self.socket.id(),
            trusted_proxies: self.app.trusted_proxies.as_ref(),
            // (A route with time of its own is a task.)
            timeouts: None,
            read_ms: moment.time.mono_ms,
        };
        let (at, begun) = self.write_response(response, &wanted, &mut out.bytes);
        arrived.response = at;
        after_head(begun.rest, begun.ending, &arrived.view(), out)
    }
}
