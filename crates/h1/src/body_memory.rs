//! Memory for what a connection receives: a body grows only as far as there is some, and a head is
//! cut where there is none.

use std::task::{Context, Poll, ready};

use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::ConnectionError;

use super::Conn;
use gustnado_app::bodies::{BodyAdmission, BodyHold, BodyProgress, Cut};
use gustnado_app::client_key::ClientKey;
use gustnado_observe::stats::{Added, Fault};
use gustnado_web::spool::is_due;

/// What is next for a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admitted {
    /// More of it may be received.
    Read,
    /// What is in memory of it is put to the disk.
    Spill,
    /// It is cut.
    Cut(Cut),
}

impl Conn {
    /// Waits until more of a body may be received. Meanwhile nothing is read, so the kernel's
    /// window stops the peer. A long body that can go to the disk goes there in parts.
    ///
    /// - `progress`: how far it has come; the time in it is set here.
    /// - `view`: the request, whose fields may name the client.
    pub(super) fn poll_admission(
        &mut self,
        hold: &mut BodyHold,
        mut progress: BodyProgress,
        view: RequestView<'_>,
        context: &Context<'_>,
    ) -> Poll<Result<Admitted, ConnectionError>> {
        let BodyProgress { held, received, left, .. } = progress;
        if progress.can_spill && is_due(held, left, (held as u64) < received) {
            return Poll::Ready(Ok(Admitted::Spill));
        }
        if hold.is_waiting() {
            self.socket.refresh_now();
        }
        loop {
            progress.now_ms = self.socket.now().mono_ms;
            let client = || self.app.client_key(view, &self.socket);
            match hold.admit(self.app.bodies(), progress, client, context.waker()) {
                BodyAdmission::Read => return Poll::Ready(Ok(Admitted::Read)),
                BodyAdmission::Spill => return Poll::Ready(Ok(Admitted::Spill)),
                BodyAdmission::Cut(cut) => {
                    self.note_cut();
                    return Poll::Ready(Ok(Admitted::Cut(cut)));
                }
                BodyAdmission::Wait(until_ms) => self.socket.set_deadline(until_ms),
            }
            match ready!(self.socket.poll_deadline(false)) {
                ConnectionError::TimedOut => self.socket.refresh_now(),
                error => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Counts a body that was cut.
    pub(super) fn note_cut(&self) {
        self.app.count(&Added { fault: Some(Fault::BodyCut), ..Added::default() });
    }

    /// Refuses a part of a head, which takes memory that is short.
    #[cold]
    pub(super) fn cut_head(&mut self) {
        self.app.count(&Added { fault: Some(Fault::HeadCut), ..Added::default() });
        self.refuse(Status::SERVICE_UNAVAILABLE, None);
        self.unread = None;
    }

    /// Returns the client that the connection belongs to, as [`App::peer_key`].
    ///
    /// [`App::peer_key`]: gustnado_app::app::App::peer_key
    #[cold]
    pub(super) fn peer_key(&self) -> Option<ClientKey> {
        self.app.peer_key(&self.socket)
    }
}
