//! Responses from a folder.

use std::sync::Arc;

use gustnado_app::app::App;
use gustnado_files::{Files, FolderResponse, Mounted};
use gustnado_http::method::Method;
use gustnado_web::handler::HandlerFuture;
use gustnado_web::request_head::RequestHead;
use gustnado_web::response::Response;
use gustnado_web::routes::RouteTable;

use crate::Http2Conn;
use crate::respond::Received;

impl Http2Conn {
    /// Responds from a folder, or waits for its disk. A body that comes is not read.
    ///
    /// - `place`: as for [`Files::respond`].
    pub(super) fn respond_from_folder(
        &mut self,
        (files, place): (&Files, Option<&Mounted<'_>>),
        table: &Arc<RouteTable>,
        received: &mut Received<'_>,
        app: &App,
    ) {
        let view = received.view();
        let now = self.socket.now();
        let is_secure = files.uses_dictionaries() && app.is_secure(view, &self.socket);
        let other = files.respond_whole(
            place,
            &view,
            || is_secure,
            now,
            |file| {
                let head_only = view.method() == Method::Head;
                self.write_file(&mut received.reply, file, head_only, app);
            },
        );
        match other {
            Ok(()) => {}
            Err(FolderResponse::Ready(response)) => {
                let parts = RequestHead::take(received.head, received.bytes);
                let response = Response::from(*response);
                self.write_prepared(&mut received.reply, response, (&parts, table), app);
            }
            Err(FolderResponse::Wait(lookup)) => {
                let looking = async move { Response::from(lookup.run().await) };
                let looking = HandlerFuture::Boxed(Box::pin(looking));
                self.run_lookup(looking, (files, table), received, app);
            }
        }
    }
}
