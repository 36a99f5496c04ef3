//! Server-sent events (WHATWG HTML §9.2).

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;

/// One event, or a comment that keeps a connection awake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event(String);

impl Event {
    /// Creates an event of the type `message`. Text of several lines arrives as it is, except for
    /// carriage returns, which end a line too.
    pub fn data(text: &str) -> Self {
        Self::default().with("data", text)
    }

    /// Creates a comment, which clients ignore.
    pub fn comment(text: &str) -> Self {
        Self::default().with("", text)
    }

    /// Sets another type. Only the first line counts.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.with("event", first_line(name))
    }

    /// Sets its id, which the client sends as `Last-Event-ID` when it reconnects. Only the first
    /// line counts; clients ignore an id with a NUL.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        self.with("id", first_line(id))
    }

    /// Sets the time that a client waits before it reconnects.
    #[must_use]
    pub fn retry(self, after: Duration) -> Self {
        self.with("retry", &after.as_millis().to_string())
    }

    /// Returns the lines that are sent: an empty one ends the event.
    pub(super) fn into_bytes(mut self) -> Bytes {
        self.0.push('\n');
        self.0.into()
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
