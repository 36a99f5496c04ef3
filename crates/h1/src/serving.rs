//! The future of a connection: its usual steps in place, the rare ones in a box.
//!
//! Written by hand, as an `async` block would keep a pointer to the connection beside it across
//! each wait: 16 bytes of every idle connection.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{Conn, Next};

/// A connection that is served.
pub(super) enum Serving {
    /// It waits for requests, or for its responses to leave.
    Usual(Conn),
    /// It takes a rare step, whose state would otherwise be a part of every idle connection.
    Rare(Pin<Box<dyn Future<Output = (Conn, Next)> + Send>>),
    /// It is closed.
    Closed,
}

impl Serving {
    /// Takes rare steps until a usual one comes.
    #[cold]
    pub(super) fn rare(mut conn: Conn, mut next: Next) -> Self {
        Self::Rare(Box::pin(async move {
            loop {
                next = conn.finish(next).await;
                if matches!(next, Next::Receive | Next::Close) {
                    return (conn, next);
                }
            }
        }))
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            let next = match this {
                Self::Usual(conn) => ready!(conn.poll_turn(context)),
                Self::Rare(rare) => {
                    let (conn, next) = ready!(rare.as_mut().poll(context));
                    *this = Self::Usual(conn);
                    next
                }
                Self::Closed => return Poll::Ready(()),
            };
            if matches!(next, Next::Receive) {
                // The variant holds nothing: forgetting it saves the call that drops the others.
                mem::forget(next);
                continue;
            }
            let Self::Usual(conn) = mem::replace(this, Self::Closed) else {
                return Poll::Ready(());
            };
            if matches!(next, Next::Close) && !conn.socket.is_sending() {
                return Poll::Ready(());
            }
            *this = Self::rare(conn, next);
        }
    }
}
