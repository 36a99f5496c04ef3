//! The task of a WebSocket: the handler's future, and what it sends.

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use gustnado_http::websocket::CloseCode;
use gustnado_tasks::{contained, timeout};
use pin_project_lite::pin_project;

use crate::core::{Core, SharedCore, lock};
use crate::socket::WebSocket;

/// A WebSocket that is open. It ends with its task, also with one that is dropped.
struct OpenSocket(SharedCore);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        lock(&self.0).end_with_task();
    }
}

pin_project! {
    /// Runs a handler to its end, and closes. Whenever the handler waits, what it has sent leaves.
    /// A handler that panics closes with 1011, and then its panic goes on.
    ///
    /// Written by hand: an `async` block would keep the handler's future twice.
    pub(crate) struct SocketRun<F> {
        open: OpenSocket,
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    /// How far it is.
    #[project = StageNow]
    enum Stage<F> {
        Handling { #[pin] handler: F },
        /// The handler has ended. Another task may still receive.
        Held,
        /// In a box, as it would be a part of every socket that is open.
        Ending { ending: Pin<Box<dyn Future<Output = ()> + Send>>, is_well: bool },
    }
}

impl<F: Future<Output = ()>> SocketRun<F> {
    /// - `handler`: makes the handler's future.
    pub(crate) fn new(core: Core, handler: impl FnOnce(WebSocket) -> F) -> Self {
        let open = OpenSocket(Arc::new(Mutex::new(core)));
        let handler = handler(WebSocket::new(Arc::clone(&open.0)));
        Self { open, stage: Stage::Handling { handler } }
    }
}

impl<F: Future<Output = ()>> Future for SocketRun<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut run = self.project();
        let core = &run.open.0;
        loop {
            match run.stage.as_mut().project() {
                StageNow::Handling { handler } => {
                    let polled = contained(|| handler.poll(context));
                    if let Some(Poll::Pending) = polled {
                        lock(core).poll_idle(context);
                        return Poll::Pending;
                    }
                    // Its destructors may panic, too.
                    let is_dropped = contained(|| run.stage.set(Stage::Held)).is_some();
                    if polled.is_none() || !is_dropped {
                        run.stage.set(ending(core, CloseCode::INTERNAL_ERROR));
                    }
                }
                StageNow::Held => {
                    let mut open = lock(core);
                    if open.is_held() {
                        open.poll_idle(context);
                        return Poll::Pending;
                    }
                    drop(open);
                    run.stage.set(ending(core, CloseCode::NORMAL));
                }
                StageNow::Ending { ending, is_well } => {
                    ready!(ending.as_mut().poll(context));
                    if *is_well {
                        return Poll::Ready(());
                    }
                    // It was reported where it happened; whoever owns the tunnel counts it.
                    resume_unwind(Box::new("the handler of a WebSocket has panicked"));
                }
            }
        }
    }
}

fn ending<F>(core: &SharedCore, why: CloseCode) -> Stage<F> {
    let is_well = why == CloseCode::NORMAL;
    Stage::Ending { ending: Box::pin(end(Arc::clone(core), why)), is_well }
}

/// Sends the close frame, and waits for the peer's.
async fn end(shared: SharedCore, why: CloseCode) {
    let time = {
        let mut core = lock(&shared);
        core.close(why, "");
        core.close_timeout()
    };
    let closed = async {
        poll_fn(|context| lock(&shared).poll_closed(context)).await;
        poll_fn(|context| lock(&shared).poll_gone(context)).await;
    };
    timeout(time, closed).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is held beside a handler's own future. One that sends each message back has 104 bytes:
    /// a message that was received, one that is sent, and the socket twice, as it is an argument.
    #[test]
    fn a_handler_is_nearly_all_of_its_task() {
        async fn echo(mut socket: WebSocket) {
            while let Ok(Some(message)) = socket.recv().await {
                _ = socket.send(message).await;
            }
        }
        fn of<F>(_: impl Fn(WebSocket) -> F) -> (usize, usize) {
            (size_of::<SocketRun<F>>(), size_of::<F>())
        }
        let (bytes, handler) = of(echo);
        assert!(bytes <= handler + 16, "{bytes} bytes, {handler} of the handler");
        assert!(handler <= 104, "{handler} bytes");
    }
}
