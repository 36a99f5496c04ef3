//! What is recorded of requests and responses where a log or a callback reads it: one record for
//! each, finished once its last byte has left.

use std::num::NonZero;

use gustnado_app::app::App;
use gustnado_http::head::Head;
use gustnado_observe::exchange::{Exchanges, ResponseRecord, SentCallbacks};

use crate::Http2Conn;
use crate::active::Active;
use crate::respond::StreamReply;

/// Exchanges whose responses are written.
#[derive(Default)]
pub(super) struct Leaving {
    /// Their last bytes are in the next send.
    next: Vec<Exchanges>,
    /// They are in the one that is under way.
    sending: Vec<Exchanges>,
}

impl Leaving {
    /// What was written is sent next.
    pub(super) fn begin(&mut self) {
        self.sending.append(&mut self.next);
    }
}

impl Http2Conn {
    /// Opens the exchange of a request. Called only if there is a log.
    ///
    /// - `head`: `None` if the request is refused for it.
    /// - `bytes`: those of the head, or its line.
    #[cold]
    pub(super) fn open_exchange(
        &mut self,
        reply: &mut StreamReply<'_>,
        (head, bytes): (Option<&Head>, &[u8]),
        app: &App,
    ) {
        let Some(log) = &app.access_log else { return };
        let worker = || NonZero::new(u8::try_from(gustnado_tasks::worker()? % 255 + 1).ok()?);
        self.log_buffer = self.log_buffer.or_else(worker);
        let buffer = self.log_buffer.map(|number| usize::from(number.get()) - 1);
        let client = || {
            let (trusted_proxies, head, peer) =
                (app.trusted_proxies.as_deref()?, head?, self.socket.peer().ok()?);
            let client = trusted_proxies.client(head.on(bytes), peer.clone());
            (client != peer).then_some(client)
        };
        let mut exchange = Box::new(Exchanges::in_buffer(buffer));
        exchange.open(log, (head, bytes), &self.socket, client);
        reply.exchange = Some(exchange);
    }

    /// Records a response that was written, or begun.
    ///
    /// - `numbers`: its status, and bytes of content that are sent with the head.
    /// - `text`: its head, if a log shows fields of it.
    #[inline]
    pub(super) fn record(
        &mut self,
        reply: &mut StreamReply<'_>,
        numbers: (u16, u64),
        text: &[u8],
        is_whole: bool,
        on_sent: Option<Box<SentCallbacks>>,
    ) {
        if reply.exchange.is_some() || reply.is_open || on_sent.is_some() {
            self.record_followed(reply, numbers, text, is_whole, on_sent);
        }
    }

    #[cold]
    fn record_followed(
        &mut self,
        reply: &mut StreamReply<'_>,
        (status, content_bytes): (u16, u64),
        head: &[u8],
        is_whole: bool,
        on_sent: Option<Box<SentCallbacks>>,
    ) {
        let of_stream = self.core.stream(reply.id);
        let kept = of_stream.and_then(|stream| stream.state.exchange.take());
        let exchange = reply.exchange.take().or(kept);
        let exchange = exchange.or_else(|| on_sent.is_some().then(Box::default));
        let Some(mut exchange) = exchange else { return };
        let record = ResponseRecord { status, head, content_bytes, is_whole, on_sent };
        exchange.respond(record);
        match self.core.stream(reply.id) {
            Some(stream) => stream.state.exchange = Some(exchange),
            None if is_whole => self.rare().leaving.get_or_insert_default().next.push(*exchange),
            None => reply.exchange = Some(exchange),
        }
    }

    /// Lets go of what was kept with a stream whose response is written.
    pub(super) fn let_go(&mut self, active: Active) {
        if let Some(parts) = &active.parts {
            parts.channel().end(Err(gustnado_web::body::BodyError::Gone));
        }
        if let Some(mut exchange) = active.exchange {
            exchange.end_last();
            self.rare().leaving.get_or_insert_default().next.push(*exchange);
        }
    }

    /// Notes that all that was written is being sent.
    pub(super) fn note_sending(&mut self) {
        if let Some(leaving) = self.leaving() {
            leaving.begin();
        }
    }

    /// Notes that it has left.
    pub(super) fn note_sent(&mut self) {
        let took_ms = self.timers.end_send(self.socket.now().mono_ms, &self.app);
        self.fit_sends(took_ms);
        if self.has_paced_rest() {
            return;
        }
        self.end_sent_content();
        let Some(rare) = &mut self.rare else { return };
        if let Some(leaving) = &mut rare.leaving {
            for mut exchange in leaving.sending.drain(..) {
                exchange.sent();
            }
            rare.leaving.take_if(|leaving| leaving.next.is_empty());
        }
    }
}
