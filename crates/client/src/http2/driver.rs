//! The task that sends and receives for all requests of a connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use gustnado_http::h2::{ErrorCode, H2Error};
use gustnado_tasks::{Connection, ConnectionError, spawn_detached};
use gustnado_tls::Socket;

use super::connection::{ConnectionState, Http2Connection};
use super::end::ConnectionEnd;
use crate::error::ClientError;
use crate::{ClientOptions, millis};

/// Starts a connection on the running worker.
///
/// - `received`: what has come right behind the handshake.
///
/// # Errors
/// [`ClientError::Ending`]: the worker takes no task.
pub(crate) fn start(
    socket: Socket,
    received: Vec<u8>,
    options: &ClientOptions,
) -> Result<Arc<Http2Connection>, ClientError> {
    let shared = Arc::new(Http2Connection::new(options));
    let driver = Driver {
        socket,
        shared: Arc::clone(&shared),
        unread: received,
        keep_ms: millis(options.keep_timeout),
        idle_until_ms: None,
    };
    spawn_detached(driver.run()).map_err(|_| ClientError::Ending)?;
    Ok(shared)
}

/// Longest time for the last frame, in milliseconds.
const LAST_MS_MAX: u64 = 1_000;

/// A connection's driver.
struct Driver {
    socket: Socket,
    shared: Arc<Http2Connection>,
    /// The beginning of a frame.
    unread: Vec<u8>,
    keep_ms: u64,
    /// When the connection has been idle for long enough; `None` while there are requests.
    idle_until_ms: Option<u64>,
}

impl Driver {
    async fn run(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        let shared = Arc::clone(&self.shared);
        let says_more = match &end {
            ConnectionEnd::Closed | ConnectionEnd::Protocol(_) => !self.socket.is_sending(),
            _ => false,
        };
        let mut last = Connection::outgoing();
        {
            let mut state = shared.state.lock();
            if matches!(end, ConnectionEnd::Closed) {
                state.go_away(H2Error::new(ErrorCode::NoError, ""));
            }
            state.finish(end);
            last.bytes.append(&mut state.out);
        }
        if says_more {
            self.socket.set_deadline(self.socket.now().mono_ms + LAST_MS_MAX);
            self.socket.start_send(last);
            if poll_fn(|_| self.socket.poll_sent()).await.is_ok() {
                self.socket.shutdown_write();
            }
        } else {
            Connection::put_back(last);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        loop {
            if self.socket.is_sending() {
                match self.socket.poll_sent() {
                    Poll::Pending => {}
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(error)) => return Poll::Ready(lost(error)),
                }
            }
            let shared = Arc::clone(&self.shared);
            let mut state = shared.state.lock();
            if !state.driver.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                state.driver = Some(cx.waker().clone());
            }
            if !self.socket.is_sending() && !state.out.is_empty() {
                self.send(&mut state);
                continue;
            }
            let is_idle = state.core.open_streams() == 0;
            let is_over = state.is_leaving || state.core.is_used_up() || state.end.is_some();
            drop(state);
            if is_idle && is_over && !self.socket.is_sending() {
                return Poll::Ready(ConnectionEnd::Closed);
            }
            self.set_deadline(is_idle);
            match self.socket.poll_recv(is_idle) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(ConnectionError::TimedOut)) if is_idle => self.shared.leave(),
                Poll::Ready(Err(error)) => return Poll::Ready(lost(error)),
                Poll::Ready(Ok(piece)) if piece.bytes().is_empty() => {
                    return Poll::Ready(ConnectionEnd::Closed);
                }
                Poll::Ready(Ok(piece)) => {
                    self.unread.extend_from_slice(piece.bytes());
                    let now_ms = self.socket.now().mono_ms;
                    let mut state = self.shared.state.lock();
                    match state.read(&self.unread, now_ms) {
                        Ok(used) => drop(self.unread.drain(..used)),
                        Err(error) => {
                            state.go_away(error);
                            return Poll::Ready(ConnectionEnd::Protocol(error));
                        }
                    }
                }
            }
        }
    }

    fn send(&mut self, state: &mut ConnectionState) {
        let mut out = Connection::outgoing();
        out.bytes.append(&mut state.out);
        state.wake_waiting();
        self.socket.start_send(out);
    }

    /// An idle connection is kept for a time. One with requests has no deadline of its own: each
    /// request has.
    fn set_deadline(&mut self, is_idle: bool) {
        let now_ms = self.socket.now().mono_ms;
        let until_ms = is_idle.then(|| {
            let fresh_ms = now_ms.saturating_add(self.keep_ms);
            self.idle_until_ms.unwrap_or(fresh_ms)
        });
        self.idle_until_ms = until_ms;
        self.socket.set_deadline(until_ms.unwrap_or(u64::MAX));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The worker ends, and drops its tasks: nothing else would tell the requests.
        self.shared.state.lock().finish(ConnectionEnd::Ending);
    }
}

fn lost(error: ConnectionError) -> ConnectionEnd {
    match error {
        ConnectionError::Broken(error) => ConnectionEnd::Broken(error.kind(), error.to_string()),
        ConnectionError::TimedOut => ConnectionEnd::Closed,
        _ => ConnectionEnd::Ending,
    }
}
