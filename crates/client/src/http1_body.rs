//! The body of a response by HTTP/1, up to the end of which its connection is used.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use gustnado_http::limits::Limits;
use gustnado_http::request::FieldLines;
use gustnado_http::response::{ResponseBody, ResponseFraming};

use super::error::ClientError;
use super::exchange::{ClientExchange, ReceivedHead};

/// A body that is read from a connection of its own.
pub(super) struct Http1Body {
    decoder: ResponseBody,
    /// Bytes that came and were not read yet.
    buffer: BytesMut,
    /// Until the end, or an error.
    exchange: Option<Box<ClientExchange>>,
    /// The connection can be used again after the body.
    keep_alive: bool,
    /// The caller waits for bytes.
    waiting: bool,
    host: Arc<str>,
}

impl Http1Body {
    pub(super) fn new(
        head: &ReceivedHead,
        buffer: BytesMut,
        exchange: ClientExchange,
        limits: &Limits,
    ) -> Self {
        let (framing, host) = (head.head.framing(), exchange.host());
        let mut body = Self {
            decoder: ResponseBody::new(framing, limits),
            buffer,
            exchange: Some(Box::new(exchange)),
            keep_alive: head.head.keep_alive(),
            waiting: false,
            host,
        };
        // All of a short body often comes with its head: then the connection is free at once.
        let is_here = framing == ResponseFraming::Length(body.buffer.len() as u64);
        if body.decoder.is_done() || (is_here && body.is_sent()) {
            body.end(is_here);
        }
        body
    }

    /// Bytes so far.
    pub(super) fn received(&self) -> u64 {
        self.decoder.received()
    }

    /// Returns the trailer fields, once the body was read to its end.
    pub(super) fn trailers(&self) -> Option<FieldLines<'_>> {
        self.decoder.trailers()
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ClientError>>> {
        if !mem::replace(&mut self.waiting, true)
            && let Some(exchange) = &mut self.exchange
        {
            exchange.expect_bytes();
        }
        let polled = self.poll_step(cx);
        self.waiting = polled.is_pending();
        if let Poll::Ready(Some(Err(_))) = polled {
            self.abandon();
        }
        polled
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ClientError>>> {
        loop {
            if let Some(exchange) = &mut self.exchange
                && let Err(error) = exchange.poll_upload(cx)
            {
                return Poll::Ready(Some(Err(error)));
            }
            if self.decoder.is_done() {
                self.end(false);
                return Poll::Ready(None);
            }
            if !self.buffer.is_empty() {
                match self.decode() {
                    Ok(data) if data.is_empty() => continue,
                    result => return Poll::Ready(Some(result)),
                }
            }
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
            let received = ready!(exchange.poll_receive(cx, &mut self.buffer));
            match received {
                Ok(0) if exchange.has_ended() && self.decoder.close() => {}
                Ok(0) => {
                    let (host, received) = (Arc::clone(&self.host), self.decoder.received());
                    return Poll::Ready(Some(Err(ClientError::Truncated { host, received })));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// One run of data from what is here; empty if that was framing alone.
    fn decode(&mut self) -> Result<Bytes, ClientError> {
        let piece = match self.decoder.decode(&self.buffer) {
            Ok(piece) => piece,
            Err(error) => {
                return Err(ClientError::Body { host: Arc::clone(&self.host), error });
            }
        };
        let (data, framing, done) =
            (piece.data.len(), piece.consumed - piece.data.len(), piece.done);
        self.buffer.advance(framing);
        let data = self.buffer.split_to(data).freeze();
        if done {
            self.end(false);
        }
        Ok(data)
    }

    /// Closes the connection; nothing more comes.
    pub(super) fn abandon(&mut self) {
        self.exchange = None;
        self.buffer.clear();
    }

    /// Returns whether the whole request was sent.
    fn is_sent(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_sent())
    }

    /// Nothing more is to come: gives the connection back. One on which more came than the response
    /// cannot be trusted.
    ///
    /// - `is_here`: what is in the buffer is the response's, and all of it.
    fn end(&mut self, is_here: bool) {
        if let Some(exchange) = self.exchange.take()
            && self.keep_alive
            && (is_here || self.buffer.is_empty())
        {
            exchange.keep();
        }
    }
}
