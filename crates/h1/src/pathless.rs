//! Requests without a path: `OPTIONS *`, which asks about the whole server (RFC 9110 §9.3.7), and
//! CONNECT. A fallback that accepts such requests responds to them, else the server itself.

use std::task::Context;

use gustnado_http::method::Method;
use gustnado_http::status::Status;
use gustnado_tasks::SendBuf;

use super::Conn;
use super::body::BodyUse;
use super::body_end::{BodyEnd, PendingBody};
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, TurnContext};
use super::respond::write_short;
use super::route::RoutedRequest;
use gustnado_web::request::Request;
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::{EndpointKind, RouteOptions};

impl Conn {
    /// Responds to a request without a path.
    #[cold]
    #[inline(never)]
    pub(super) fn respond_pathless(
        &self,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        let asked = RouteCache::with(&self.app.tables, |cache| {
            self.respond_by_fallback(cache, received, turn, out, context)
        });
        asked.unwrap_or_else(|| self.respond_as_server(received, turn, out))
    }

    /// Runs the fallback, if it accepts such requests.
    fn respond_by_fallback(
        &self,
        cache: &RouteCache,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> Option<ResponseProgress> {
        let view = received.view();
        let table = self.app.tables.of_host(view);
        let endpoint = table.fallback(view.method());
        let is_connect = view.method() == Method::Connect;
        let options = &endpoint.options;
        let takes = if is_connect { options.takes_connect } else { options.takes_asterisk };
        if !takes || matches!(endpoint.kind, EndpointKind::Files { .. }) {
            return None;
        }
        if is_connect {
            // The bytes behind the head belong to the tunnel, whatever its fields claim.
            received.body = PendingBody::Unread;
        }
        let request = Request::bare(&cache.used, received.head, received.bytes, self.origin());
        let routed = RoutedRequest { cache, table, endpoint, request };
        match &endpoint.kind {
            EndpointKind::Run(runnable) => {
                Some(self.run(runnable, routed, received, turn, out, context))
            }
            EndpointKind::Gated(gated) => {
                let routed = RoutedRequest { endpoint: &gated.inner, ..routed };
                Some(self.respond_gated(gated, routed, received, turn, out, context))
            }
            EndpointKind::Files { .. } => None,
        }
    }

    fn respond_as_server(
        &self,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let (status, end) = match received.head.method() {
            // RFC 9110 §9.3.6: the bytes behind it belong to a tunnel and are no request. The
            // server itself opens no tunnels.
            Method::Connect => (Status::METHOD_NOT_ALLOWED, BodyEnd::Close),
            _ if received.has_body_ahead() => {
                let unwanted = BodyUse::Nothing(RouteOptions::default());
                return ResponseProgress::BodyFirst(received.put_off(unwanted));
            }
            _ => (Status::NO_CONTENT, received.body.end()),
        };
        let ending = received.wanted.with(end);
        let opening = &turn.prefix.opening;
        let table = self.app.tables.of_host(received.view());
        let allow = match table.only_folder {
            None => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            Some(_) => "GET, HEAD, OPTIONS",
        };
        let response = self.app.routeless_page(status, opening.lines()).header("Allow", allow);
        let before = out.bytes.len();
        let written = write_short(&response, opening, ending.persist(), false, &mut out.bytes);
        self.count_response(received.note(written, before), &out.bytes);
        ResponseProgress::of(None, ending, &received.view(), out)
    }
}
