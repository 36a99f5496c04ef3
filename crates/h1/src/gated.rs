//! Requests to endpoints behind a gate.

use std::task::Context;

use gustnado_http::method::Method;
use gustnado_tasks::SendBuf;
use gustnado_web::response::Response;
use gustnado_web::routes::{EndpointKind, GatedEndpoint, Passage};

use super::Conn;
use super::progress::ResponseProgress;
use super::received::{ReceivedRequest, TurnContext};
use super::route::RoutedRequest;

impl Conn {
    /// Asks the gate, and lets the inner endpoint respond, or responds for it.
    #[cold]
    #[inline(never)]
    pub(super) fn respond_gated(
        &self,
        gated: &GatedEndpoint,
        mut routed: RoutedRequest<'_>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
        context: &mut Context<'_>,
    ) -> ResponseProgress {
        // A request whose body was read has been let through before. None is read of a CONNECT.
        let is_connect = received.head.method() == Method::Connect;
        let is_again = received.head.has_body() && !received.has_body_ahead() && !is_connect;
        match gated.check(&mut routed.request, is_again, turn.time) {
            Passage::Respond(response) => {
                self.respond_before_body(*response, &routed, received, turn, out)
            }
            Passage::Verify => {
                self.run_task(&gated.verifying, routed, received, turn, out, context)
            }
            Passage::Open => match &gated.inner.kind {
                EndpointKind::Run(runnable) => {
                    self.run(runnable, routed, received, turn, out, context)
                }
                EndpointKind::Files { files, mounted_at } => {
                    let RoutedRequest { cache, table, endpoint, request } = routed;
                    let path = || request.parts().path().ok();
                    let mount = (&**files, *mounted_at, path);
                    let from = (table, &endpoint.options);
                    let progress = self.respond_from_mount(mount, from, received, turn, out);
                    request.put_back(&cache.used);
                    progress
                }
                EndpointKind::Gated(_) => unreachable!("a gate is in front of no other"),
            },
        }
    }

    /// Writes a response to a request whose body, if it has one, nobody reads.
    fn respond_before_body(
        &self,
        response: Response,
        routed: &RoutedRequest<'_>,
        received: &mut ReceivedRequest<'_>,
        turn: &TurnContext,
        out: &mut SendBuf,
    ) -> ResponseProgress {
        let RoutedRequest { table, endpoint, request, .. } = routed;
        let is_whole = !received.has_body_ahead();
        let end = received.body.end();
        let incoming = self.incoming_behind(&endpoint.options, received.head, is_whole, end);
        self.finish_inline(response, (request, table, incoming), received, turn, out)
    }
}
