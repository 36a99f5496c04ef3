//! Server-sent events (WHATWG HTML §9.2).

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;

/// One event, or a comment that keeps a connection awake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event(String);

impl Event {
    /// An event of the type `message`. Text of several lines arrives as it is, but for carriage
    /// returns, which end a line too.
    pub fn data(text: &str) -> Self {
        Self::default().with("data", text)
    }

    /// A comment, which clients pass over.
    pub fn comment(text: &str) -> Self {
        Self::default().with("", text)
    }

    /// Gives it another type. Only the first line counts.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.with("event", first_line(name))
    }

    /// Gives it an identity, which the client sends as `Last-Event-ID` when it comes back. Only the
    /// first line counts; one with a NUL is passed over by clients.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        self.with("id", first_line(id))
    }

    /// Says how long a client is to wait before it comes back.
    #[must_use]
    pub fn retry(self, after: Duration) -> Self {
        self.with("retry", &after.as_millis().to_string())
    }

    fn with(mut self, field: &str, text: &str) -> Self {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        for line in text.split('\n') {
            writeln!(self.0, "{field}: {line}").expect("a string takes all text");
        }
        self
    }
}

fn first_line(text: &str) -> &str {
    text.split(['\r', '\n']).next().unwrap_or("")
}

/// Events as the lines that are sent.
pub(super) struct EventLines<S>(Pin<Box<S>>);

impl<S> EventLines<S> {
    pub(super) fn new(events: S) -> Self {
        Self(Box::pin(events))
    }
}

impl<S: Stream<Item = Event>> Stream for EventLines<S> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context).map(|event| {
            let mut text = event?.0;
            text.push('\n');
            Some(Ok(text.into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_line_by_line() {
        let event = Event::data("one\r\ntwo\rthree").named("tick").id("7\nx: y");
        let event = event.retry(Duration::from_secs(2));
        let lines = "data: one\ndata: two\ndata: three\nevent: tick\nid: 7\nretry: 2000\n";
        assert_eq!(event.0, lines);
        assert_eq!(Event::comment("still here").0, ": still here\n");
        assert_eq!(Event::data("").0, "data: \n");
    }
}
