//! Requests to endpoints behind a gate.

use std::sync::Arc;
use std::task::Context;

use gustnado_app::app::App;
use gustnado_files::Mounted;
use gustnado_tasks::note_step;
use gustnado_web::request::Request;
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::{EndpointKind, GatedEndpoint, Passage, RouteTable};

use crate::Http2Conn;
use crate::respond::{Received, Routed};

impl Http2Conn {
    /// Asks the gate, and lets the inner endpoint respond, or responds for it.
    #[cold]
    #[inline(never)]
    pub(super) fn respond_gated(
        &mut self,
        gated: &GatedEndpoint,
        (cache, table, request): (&RouteCache, &Arc<RouteTable>, Option<Box<Request>>),
        received: &mut Received<'_>,
        app: &App,
        context: &mut Context<'_>,
    ) {
        let options = &gated.inner.options;
        note_step(options.label);
        let origin = self.origin(app);
        let mut request = request
            .unwrap_or_else(|| Request::bare(&cache.used, received.head, received.bytes, origin));
        // A request whose body was gathered has been let through before.
        let is_again = received.body.is_some();
        match (gated.check(&mut request, is_again, self.socket.now()), &gated.inner.kind) {
            (Passage::Respond(response), _) => {
                let parts = request.parts().clone();
                self.respond_to(&mut received.reply, *response, (&parts, table), app);
            }
            (Passage::Verify, _) => {
                let routed = (table, options, request);
                self.run_task(&gated.verifying, routed, received, app, context);
            }
            (Passage::Open, EndpointKind::Run(runnable)) => {
                let reads_body = gated.inner.reads_body;
                let routed = Routed { table, options, reads_body, request };
                self.run(runnable, routed, cache, received, app, context);
            }
            (Passage::Open, EndpointKind::Files { .. })
                if self.refuses_body(received, options, app) => {}
            (Passage::Open, EndpointKind::Files { files, mounted_at }) => {
                let path = request.parts().path().ok();
                let place = path.map(|path| Mounted { path, at: *mounted_at });
                self.respond_from_folder((files, place.as_ref()), table, received, app);
                if received.reply.is_open {
                    self.keep_options(received.reply.id, options);
                }
            }
            (Passage::Open, EndpointKind::Gated(_)) => {
                unreachable!("a gate is in front of no other")
            }
        }
    }
}
