//! The future of a connection: its usual steps in place, the rare ones in a box.
//!
//! Written by hand: an `async` block would keep a pointer to the connection beside it across each
//! wait, and a state. They are 16 bytes of every idle connection.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gustnado_tasks::{BoxTask, continue_as};

use super::{Conn, NextStep};

/// A connection that is served.
pub(super) enum Serving {
    /// It waits for requests, or for its responses to leave.
    Usual(Conn),
    /// It takes rare steps, whose state would otherwise be a part of every idle connection. The box
    /// holds the connection meanwhile.
    Rare(Pin<Box<dyn Future<Output = Self> + Send>>),
    /// It has turned out to speak another protocol. Its task goes on as that alone: the room of a
    /// connection in HTTP/1 would be held besides.
    Other(BoxTask),
    Closed,
}

impl Serving {
    #[cold]
    pub(super) fn rare(conn: Conn, next: NextStep) -> Self {
        Self::Rare(Box::pin(conn.take_rare(next)))
    }

    /// Ends the usual steps.
    ///
    /// - `rare`: the next step; `None`: the connection closes.
    #[cold]
    fn end_usual(&mut self, rare: Option<NextStep>) {
        *self = match (rare, mem::replace(self, Self::Closed)) {
            (Some(next), Self::Usual(conn)) => Self::rare(conn, next),
            _ => Self::Closed,
        };
    }

    /// Takes rare steps. Returns whether the connection is over, or goes on as another future.
    #[cold]
    #[inline(never)] // It would take registers from the way of usual steps.
    fn poll_rare(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if let Self::Rare(rare) = self {
            *self = ready!(rare.as_mut().poll(context));
        }
        match mem::replace(self, Self::Closed) {
            Self::Other(other) => continue_as(other),
            Self::Closed => {}
            serving => {
                *self = serving;
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Self::Usual(conn) = this {
                let rare = ready!(conn.poll_usual(context));
                this.end_usual(rare);
            }
            if ready!(this.poll_rare(context)) {
                return Poll::Ready(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gustnado_app::app::{App, ConnectionOpening};
    use gustnado_tasks::Connection;

    use crate::serve;

    /// Returns the size of a function's result, without calling it.
    fn output_bytes<F, O>(_: F) -> usize
    where
        F: Fn(Connection, Arc<App>, ConnectionOpening) -> O,
    {
        size_of::<O>()
    }

    #[test]
    fn an_idle_connection_is_a_small_future() {
        let bytes = output_bytes(serve);
        assert!(bytes <= 104, "{bytes} bytes; the allocator's next step is 120: box what is rare");
    }
}
