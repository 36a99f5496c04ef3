//! What the task of a connection and Python share of a WebSocket: messages that nobody has received
//! yet, those who wait for them, and the end.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;

use gustnado::websocket::{CloseCode, MessageKind, WebSocketMessage, WebSocketSender};

use super::waiter::{MessageWaiter, Waking};
use crate::awaitables::{LoopFuture, ReadyNone};
use crate::coroutine::LoopTurn;
use crate::errors::client_disconnected;
use crate::guarded::Guarded;

/// So many messages are received before a program asks for them, or so many bytes of them: a
/// program that does not receive should still hear that its peer closes.
const AHEAD_MAX: usize = 32;
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Sends that wait for room are looked through beyond this number: those whose task was cancelled
/// need not be kept.
const FUTURES_USUAL: usize = 64;
/// A program that sends on without awaiting is stopped at so many sends that wait for room, or so
/// many bytes of them.
const FUTURES_MAX: usize = 16_384;
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// Maximum delay of sent messages while the program continues without waiting.
const HOLD: Duration = Duration::from_millis(1);

/// What the task of a connection and Python share of a WebSocket.
pub(crate) struct SocketLink {
    event_loop: Py<PyAny>,
    done: Py<ReadyNone>,
    state: Guarded<LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// Once it is open.
    sender: Option<WebSocketSender>,
    /// The next message, and those after it: usually there is one at most.
    first: Option<WebSocketMessage>,
    more: VecDeque<WebSocketMessage>,
    ahead_bytes: usize,
    /// The peer is not read, since too much was received ahead.
    is_paused: bool,
    /// Those who wait for a message.
    waiters: VecDeque<Py<MessageWaiter>>,
    /// Futures of the loop that wait until it is open, or until more may be sent.
    futures: Vec<Py<PyAny>>,
    /// At so many they are looked through.
    futures_looked_at: usize,
    /// The task of the connection.
    task: Option<Waker>,
    end: Option<Box<SocketEnd>>,
    /// The end was received.
    is_told: bool,
    /// The program knows of the end, since it was received or something could not be sent.
    is_known: bool,
    /// When a message was last received or sent in a step of the program.
    left: Option<Instant>,
}

/// How a WebSocket has ended.
#[derive(Clone)]
pub(crate) struct SocketEnd {
    pub(crate) code: u16,
    /// `None` where no close frame has come.
    pub(crate) reason: Option<Box<str>>,
    pub(crate) by: CloseOrigin,
}

/// Who has ended it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseOrigin {
    Program,
    /// The peer, or the network.
    Peer,
}

impl SocketEnd {
    /// The end of a WebSocket without a close frame.
    pub(crate) fn without_frame(by: CloseOrigin) -> Self {
        Self { code: CloseCode::ABNORMAL.0, reason: None, by }
    }
}

/// What is received next.
pub(super) enum NextMessage {
    Message(WebSocketMessage),
    /// It has ended, and that was not received before.
    End(SocketEnd),
    /// It was.
    Over,
    Nothing,
}

impl SocketLink {
    /// - `done`: the awaitable of what need not wait.
    pub(crate) fn new(event_loop: Py<PyAny>, done: Py<ReadyNone>) -> Arc<Self> {
        Arc::new(Self { event_loop, done, state: Guarded::default() })
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.borrow_mut()
    }

    /// The WebSocket is open.
    pub(super) fn open(&self, sender: WebSocketSender) {
        let mut state = self.state();
        state.sender = Some(sender);
        let futures = std::mem::take(&mut state.futures);
        drop(state);
        settle(&futures, None);
    }

    /// Takes out what is received next.
    pub(super) fn next(&self) -> NextMessage {
        let mut state = self.state();
        let closed_itself = state.end.as_ref().is_some_and(|end| end.by == CloseOrigin::Program);
        if !closed_itself && let Some(message) = state.first.take() {
            state.ahead_bytes -= message.as_bytes().len();
            state.first = state.more.pop_front();
            if state.is_paused && !state.is_full() {
                state.is_paused = false;
                state.wake_task();
            }
            return NextMessage::Message(message);
        }
        match &state.end {
            None => NextMessage::Nothing,
            Some(_) if state.is_told => NextMessage::Over,
            Some(end) => {
                let end = (**end).clone();
                (state.is_told, state.is_known) = (true, true);
                NextMessage::End(end)
            }
        }
    }

    pub(super) fn waiter(&self, py: Python<'_>) -> MessageWaiter {
        MessageWaiter::new(self.event_loop.clone_ref(py))
    }

    pub(super) fn add_waiter(&self, waiter: Py<MessageWaiter>) {
        let mut state = self.state();
        let (kept, gone) = std::mem::take(&mut state.waiters)
            .into_iter()
            .partition::<VecDeque<_>, _>(|waiter| waiter.get().is_waiting());
        state.waiters = kept;
        state.waiters.push_back(waiter);
        drop(state);
        drop(gone);
    }

    /// Adds a message that has come, and runs the step of a task that waits for one. Only between
    /// tasks of the loop.
    pub(super) fn deliver(&self, message: WebSocketMessage) {
        let mut state = self.state();
        state.ahead_bytes += message.as_bytes().len();
        if state.first.is_none() {
            state.first = Some(message);
        } else {
            state.more.push_back(message);
        }
        state.left = Some(Instant::now());
        if state.waiters.is_empty() {
            return;
        }
        drop(state);
        Python::attach(|py| while self.has_ahead() && self.wake_one(py, Waking::Now) {});
    }

    fn has_ahead(&self) -> bool {
        self.state().first.is_some()
    }

    /// Wakes the first task that waits. Returns whether there was one.
    fn wake_one(&self, py: Python<'_>, waking: Waking) -> bool {
        loop {
            let Some(waiter) = self.state().waiters.pop_front() else { return false };
            match MessageWaiter::wake(waiter.bind(py), waking) {
                Ok(false) => {}
                Ok(true) => return true,
                Err(error) => {
                    // An exception of the task is the task's own, and reported with that.
                    if !is_exit(py, &error) {
                        error.write_unraisable(py, None);
                    }
                    return true;
                }
            }
        }
    }

    /// Notes the end, unless there was one before, and wakes all who wait.
    pub(crate) fn end(&self, end: SocketEnd) {
        let mut state = self.state();
        if state.end.is_some() {
            return;
        }
        let by = end.by;
        state.end = Some(Box::new(end));
        state.wake_task();
        let futures = std::mem::take(&mut state.futures);
        let has_waiters = !state.waiters.is_empty();
        drop(state);
        if has_waiters {
            Python::attach(|py| while self.wake_one(py, Waking::OnLoop) {});
        }
        settle(&futures, (by == CloseOrigin::Peer).then_some("the client has disconnected"));
    }

    /// Returns how it has ended.
    pub(crate) fn ended(&self) -> Option<SocketEnd> {
        self.state().end.as_deref().cloned()
    }

    /// Notes that the program is told of the end.
    pub(crate) fn note_loss_known(&self) {
        self.state().is_known = true;
    }

    /// Returns whether the program knows that the peer has gone.
    pub(crate) fn is_loss_known(&self) -> bool {
        let state = self.state();
        let by_peer = state.end.as_ref().is_some_and(|end| end.by == CloseOrigin::Peer);
        by_peer && state.is_known
    }

    /// Returns whether so much was received ahead that the peer is not read; then what takes
    /// messages out wakes the task.
    pub(super) fn pauses(&self) -> bool {
        let mut state = self.state();
        state.is_paused = state.is_full();
        state.is_paused
    }

    /// Notes the task of the connection. Futures that wait for room are done if there is some.
    /// Returns whether the task goes on.
    pub(super) fn poll_task(&self, context: &Context<'_>) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        if !state.task.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            state.task = Some(context.waker().clone());
        }
        if state.futures.is_empty() {
            return true;
        }
        let Some(sender) = state.sender.clone() else { return true };
        drop(state);
        if sender.poll_room(context) == Poll::Pending {
            return true;
        }
        let futures = std::mem::take(&mut self.state().futures);
        settle(&futures, None);
        true
    }

    /// Returns the awaitable that is done once it is open.
    pub(crate) fn wait_for_open<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.wait(py)
    }

    /// Sends a message. Returns what the program has to await.
    ///
    /// # Errors
    /// It is not open, or the program sends on and on without awaiting what is returned.
    pub(crate) fn send<'py>(
        &self,
        py: Python<'py>,
        kind: MessageKind,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.state();
        let sender = match (&state.end, &state.sender) {
            (Some(end), _) if end.by == CloseOrigin::Program => {
                drop(state);
                return Err(PyRuntimeError::new_err("the WebSocket was closed before"));
            }
            (None, Some(sender)) => sender,
            (None, None) => {
                drop(state);
                return Err(PyRuntimeError::new_err("websocket.accept has to be awaited first"));
            }
            _ => {
                state.is_known = true;
                drop(state);
                return Err(client_disconnected("the client has disconnected"));
            }
        };
        let waiting = state.futures.len();
        if waiting >= FUTURES_MAX || (waiting > 0 && sender.unsent_bytes() >= UNSENT_BYTES_MAX) {
            drop(state);
            let text = format!("{waiting} sends wait until the client takes more: await them");
            return Err(PyRuntimeError::new_err(text));
        }
        let Ok(has_room) = sender.send_now(kind, bytes) else {
            state.is_known = true;
            drop(state);
            return Err(client_disconnected("the client has disconnected"));
        };
        let now = Instant::now();
        let is_held = state.left.is_some_and(|left| now - left < HOLD);
        if !is_held {
            state.left = Some(now);
        }
        if !has_room {
            // The task watches for room.
            state.wake_task();
        }
        drop(state);
        match (has_room, is_held) {
            (false, _) => self.wait(py),
            (true, true) => Ok(self.done.bind(py).clone().into_any()),
            // It may compute for long before it waits for anything.
            (true, false) => Ok(Bound::new(py, LoopTurn::default())?.into_any()),
        }
    }

    /// Sends a message, if that need not wait. Returns whether it was sent.
    pub(crate) fn try_send(&self, kind: MessageKind, bytes: &[u8]) -> bool {
        let state = self.state();
        if state.end.is_some() {
            return false;
        }
        let sender = state.sender.as_ref().filter(|sender| sender.has_room());
        sender.is_some_and(|sender| sender.send_now(kind, bytes).is_ok())
    }

    /// Closes it.
    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        let sender = self.state().sender.clone();
        if let Some(sender) = sender {
            sender.close(code, reason);
        }
        let reason = Some(reason.into());
        self.end(SocketEnd { code: code.0, reason, by: CloseOrigin::Program });
    }

    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let future = self.event_loop.bind(py).call_method0(intern!(py, "create_future"))?;
        let mut state = self.state();
        state.futures.push(future.clone().unbind());
        if state.futures.len() > state.futures_looked_at.max(FUTURES_USUAL) {
            let futures = std::mem::take(&mut state.futures);
            drop(state);
            let (kept, gone) = futures.into_iter().partition(|future| is_pending(py, future));
            let mut state = self.state();
            let since = std::mem::replace(&mut state.futures, kept);
            state.futures.extend(since);
            state.futures_looked_at = 2 * state.futures.len();
            drop(state);
            drop::<Vec<_>>(gone);
        }
        Ok(Bound::new(py, LoopFuture::new(&future)?)?.into_any())
    }
}

impl LinkState {
    fn is_full(&self) -> bool {
        self.more.len() + 1 >= AHEAD_MAX || self.ahead_bytes >= AHEAD_BYTES_MAX
    }

    fn wake_task(&self) {
        self.task.iter().for_each(Waker::wake_by_ref);
    }
}

fn is_exit(py: Python<'_>, error: &PyErr) -> bool {
    use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
    error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py)
}

/// Returns whether a future is neither done nor cancelled.
fn is_pending(py: Python<'_>, future: &Py<PyAny>) -> bool {
    let done = future.bind(py).call_method0(intern!(py, "done"));
    !done.and_then(|is_done| is_done.is_truthy()).unwrap_or(true)
}

/// Completes futures that are not done: with nothing, or with `ClientDisconnected`.
fn settle(futures: &[Py<PyAny>], loss: Option<&str>) {
    if futures.is_empty() {
        return;
    }
    Python::attach(|py| {
        for future in futures {
            let future = future.bind(py);
            let settled = future.call_method0(intern!(py, "done")).and_then(|is_done| {
                if is_done.is_truthy()? {
                    return Ok(());
                }
                match loss {
                    None => future.call_method1(intern!(py, "set_result"), (py.None(),)),
                    Some(text) => {
                        let error = client_disconnected(text).into_value(py);
                        future.call_method1(intern!(py, "set_exception"), (error,))
                    }
                }
                .map(drop)
            });
            if let Err(error) = settled {
                error.write_unraisable(py, None);
            }
        }
    });
}
