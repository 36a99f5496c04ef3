//! Requests that name no path: an OPTIONS that asks about the server as a whole (RFC 9110 §9.3.7),
//! and CONNECT. A fallback answers them if it wants to, as applications of other interfaces do;
//! else the server.

use std::task::Context;

use gustnado_http::fields::Fields;
use gustnado_http::method::Method;
use gustnado_http::status::Status;
use gustnado_tasks::SendBuf;

use super::after::after_head;
use super::arrived::{Arrived, Moment};
use super::body::{BodyPolicy, body_first};
use super::body_end::{BodyEnd, PendingBody};
use super::respond::write_short;
use super::route::Called;
use super::{Conn, Next};
use gustnado_web::error_page::error_page;
use gustnado_web::request::Request;
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::EndpointDoes;

impl Conn {
    /// Answers a request that names no path.
    #[cold]
    #[inline(never)]
    pub(super) fn answer_pathless(
        &self,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Next {
        let asked = RouteCache::with(&self.app.tables, |cache| {
            self.ask_fallback(cache, arrived, moment, out, context)
        });
        asked.unwrap_or_else(|| self.answer_itself(arrived, moment, out))
    }

    /// Has the fallback answer, if it takes such requests.
    fn ask_fallback(
        &self,
        cache: &RouteCache,
        arrived: &mut Arrived<'_>,
        moment: &Moment,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Option<Next> {
        let view = arrived.view();
        let table = self.app.tables.of_host(view);
        let endpoint = table.fallback(view.method());
        let is_connect = view.method() == Method::Connect;
        let options = &endpoint.options;
        let takes = if is_connect { options.takes_connect } else { options.takes_asterisk };
        let EndpointDoes::Run(runnable) = &endpoint.does else { return None };
        if !takes {
            return None;
        }
        if is_connect {
            // What comes behind the head is for the tunnel, whatever its fields say.
            arrived.body = PendingBody::Unread;
        }
        let request = Request::bare(&cache.used, arrived.head, arrived.bytes, self.origin());
        let called = Called { cache, table, endpoint, request };
        Some(self.run(runnable, called, arrived, moment, out, context))
    }

    fn answer_itself(&self, arrived: &mut Arrived<'_>, moment: &Moment, out: &mut SendBuf) -> Next {
        let (status, end) = match arrived.head.method() {
            // RFC 9110 §9.3.6: what comes behind it belongs to a tunnel, and is no request. There
            // are no tunnels here.
            Method::Connect => (Status::METHOD_NOT_ALLOWED, BodyEnd::Close),
            _ if arrived.has_body_ahead() => {
                return body_first(arrived.head, arrived.bytes, BodyPolicy::Nothing);
            }
            _ => (Status::NO_CONTENT, arrived.body.end()),
        };
        let ending = arrived.wanted.with(end);
        let opening = &moment.common.opening;
        let table = self.app.tables.of_host(arrived.view());
        let allow = match table.only_folder {
            None => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            Some(_) => "GET, HEAD, OPTIONS",
        };
        let response =
            error_page(status, None, (opening.lines(), &Fields::new())).header("Allow", allow);
        let before = out.bytes.len();
        let written = write_short(&response, opening, ending.persist(), false, &mut out.bytes);
        arrived.response = self.count_response(written, before, &out.bytes);
        after_head(None, ending, &arrived.view(), out)
    }
}
