//! What the task of a connection and Python share of a WebSocket: messages that nobody has received
//! yet, those who wait for them, and the end.

mod state;

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;

use gustnado::websocket::{CloseCode, MessageKind, WebSocketMessage, WebSocketSender};

use super::futures::sorted;
use super::held::{KeptStep, StepTrap};
use super::waiter::{MessageWaiter, Waking};
use crate::awaitables::{LoopFuture, ReadyNone};
use crate::coroutine::LoopTurn;
use crate::errors::client_disconnected;
use crate::guarded::Guarded;
use state::LinkState;

/// A program that sends on without awaiting is stopped at so many sends that wait for room, or so
/// many bytes of them.
const FUTURES_MAX: usize = 16_384;
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// Maximum delay of sent messages while the program continues without waiting.
const HOLD: Duration = Duration::from_millis(1);

/// What the task of a connection and Python share of a WebSocket.
pub(crate) struct SocketLink {
    context: Arc<LinkContext>,
    state: Guarded<LinkState>,
}

/// What all sockets of a loop share.
pub(crate) struct LinkContext {
    pub(crate) event_loop: Py<PyAny>,
    /// The awaitable of what need not wait.
    pub(crate) done: Py<ReadyNone>,
    pub(crate) trap: StepTrap,
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

/// What the task of the connection does next.
pub(super) enum ReceiveTurn {
    Receive,
    /// So much was received ahead that the peer is not read. What takes messages out wakes the
    /// task.
    Pause,
    /// It has ended.
    End,
}

impl SocketLink {
    pub(crate) fn new(context: &Arc<LinkContext>) -> Arc<Self> {
        Arc::new(Self { context: Arc::clone(context), state: Guarded::default() })
    }

    pub(crate) fn context(&self) -> &LinkContext {
        &self.context
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.borrow_mut()
    }

    /// The WebSocket is open.
    pub(super) fn open(&self, sender: WebSocketSender) {
        let mut state = self.state();
        state.sender = Some(sender);
        let futures = state.take_futures();
        drop(state);
        futures.settle(None);
    }

    /// Takes out what is received next.
    pub(super) fn next(&self) -> NextMessage {
        let mut state = self.state();
        let closed_itself = state.end().is_some_and(|end| end.by == CloseOrigin::Program);
        if !closed_itself && let Some(message) = state.take_message() {
            if state.is_paused && !state.is_full() {
                state.is_paused = false;
                state.wake_connection();
            }
            return NextMessage::Message(message);
        }
        match state.end() {
            None => NextMessage::Nothing,
            Some(_) if state.is_told => NextMessage::Over,
            Some(end) => {
                let end = end.clone();
                (state.is_told, state.is_known) = (true, true);
                NextMessage::End(end)
            }
        }
    }

    /// Returns the awaitable that is to be used again, if nothing else has it.
    #[expect(deprecated, reason = "what takes its place is in `pyo3::ffi`")]
    pub(super) fn spare_awaitable<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let state = self.state();
        let spare = state.awaitable.as_ref().filter(|known| known.get_refcnt(py) == 1);
        spare.map(|spare| spare.bind(py).clone())
    }

    /// Keeps an awaitable that is to be used again.
    pub(super) fn keep_awaitable(&self, awaitable: Py<PyAny>) {
        let mut state = self.state();
        let is_open = state.end().is_none();
        let before = is_open.then(|| state.awaitable.replace(awaitable));
        drop(state);
        drop(before);
    }

    pub(super) fn waiter(&self, py: Python<'_>) -> MessageWaiter {
        MessageWaiter::new(self.context.event_loop.clone_ref(py))
    }

    pub(super) fn add_waiter(&self, waiter: Py<MessageWaiter>) {
        let mut state = self.state();
        let waiters = &mut state.rare().waiters;
        let (kept, gone) = std::mem::take(waiters)
            .into_iter()
            .partition::<VecDeque<_>, _>(|waiter| waiter.get().is_waiting());
        *waiters = kept;
        waiters.push_back(waiter);
        drop(state);
        drop(gone);
    }

    /// Notes the task of the handler, until it ends.
    pub(crate) fn set_task(&self, task: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut self.state().task, task);
        drop(before);
    }

    /// Runs a step of the handler's task. Only between tasks of the loop.
    pub(crate) fn run_step<T>(
        &self,
        py: Python<'_>,
        step: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        let task = self.state().task_address();
        let (ran, held) = self.context.trap.run(py, task, step);
        if held.is_some() {
            let before = std::mem::replace(&mut self.state().held, held);
            drop(before);
        }
        ran
    }

    /// Makes the running task wait by its next step, if it is the handler's, and the first to wait.
    /// Returns whether it is.
    pub(super) fn hold_step(&self, py: Python<'_>) -> PyResult<bool> {
        let state = self.state();
        let is_first = state.rare.as_ref().is_none_or(|rare| rare.waiters.is_empty());
        let task = if is_first { state.task_address() } else { 0 };
        drop(state);
        self.context.trap.set(py, task)
    }

    /// Takes out the step that is kept.
    pub(super) fn take_step(&self) -> Option<KeptStep> {
        self.state().held.take()
    }

    /// Adds a message that has come, and runs the step of a task that waits for one. Only between
    /// tasks of the loop.
    pub(super) fn deliver(&self, message: WebSocketMessage) {
        let mut state = self.state();
        state.add_message(message);
        state.left = Some(Instant::now());
        let held = state.held.take();
        if held.is_none() && !state.has_waiters() {
            return;
        }
        drop(state);
        Python::attach(|py| {
            if let Some(step) = held {
                report(py, self.run_step(py, || step.run(py)));
            }
            while self.must_wake() && self.wake_one(py, Waking::Now) {}
        });
    }

    fn must_wake(&self) -> bool {
        let state = self.state();
        state.first.is_some() && state.has_waiters()
    }

    /// Wakes the first task that waits. Returns whether there was one.
    fn wake_one(&self, py: Python<'_>, waking: Waking) -> bool {
        loop {
            let mut state = self.state();
            let task = state.task_address();
            let waiter = state.rare.as_mut().and_then(|rare| rare.waiters.pop_front());
            drop(state);
            let Some(waiter) = waiter else { return false };
            let waiter = waiter.bind(py);
            let woken = if waking == Waking::Now && waiter.get().is_of(py, task) {
                self.run_step(py, || MessageWaiter::wake(waiter, waking))
            } else {
                MessageWaiter::wake(waiter, waking)
            };
            match woken {
                Ok(false) => {}
                Ok(true) => return true,
                Err(error) => {
                    report(py, Err(error));
                    return true;
                }
            }
        }
    }

    /// Leaves the step that is kept to the loop: its task was cancelled, or is told of the end.
    pub(crate) fn release_step(&self, py: Python<'_>) -> PyResult<()> {
        match self.take_step() {
            Some(step) => step.pass_on(self.context.event_loop.bind(py)),
            None => Ok(()),
        }
    }

    /// Notes the end, unless there was one before, and wakes all who wait.
    pub(crate) fn end(&self, end: SocketEnd) {
        let mut state = self.state();
        if state.end().is_some() {
            return;
        }
        let by = end.by;
        state.rare().end = Some(end);
        state.wake_connection();
        let (futures, awaitable) = (state.take_futures(), state.awaitable.take());
        let is_waited_for = state.held.is_some() || state.has_waiters();
        drop(state);
        drop(awaitable);
        if is_waited_for {
            Python::attach(|py| {
                report(py, self.release_step(py));
                while self.wake_one(py, Waking::OnLoop) {}
            });
        }
        futures.settle((by == CloseOrigin::Peer).then_some("the client has disconnected"));
    }

    /// Returns how it has ended.
    pub(crate) fn ended(&self) -> Option<SocketEnd> {
        self.state().end().cloned()
    }

    /// Notes that the program is told of the end.
    pub(crate) fn note_loss_known(&self) {
        self.state().is_known = true;
    }

    /// Returns whether the program knows that the peer has gone.
    pub(crate) fn is_loss_known(&self) -> bool {
        let state = self.state();
        let by_peer = state.end().is_some_and(|end| end.by == CloseOrigin::Peer);
        by_peer && state.is_known
    }

    /// Notes the task of the connection, and returns what it does next. Futures that wait for room
    /// are done if there is some.
    pub(super) fn poll_connection(&self, context: &Context<'_>) -> ReceiveTurn {
        let mut state = self.state();
        if state.end().is_some() {
            return ReceiveTurn::End;
        }
        if !state.connection.as_ref().is_some_and(|task| task.will_wake(context.waker())) {
            state.connection = Some(context.waker().clone());
        }
        state.is_paused = state.is_full();
        let turn = if state.is_paused { ReceiveTurn::Pause } else { ReceiveTurn::Receive };
        if state.rare.as_ref().is_none_or(|rare| rare.futures.is_empty()) {
            return turn;
        }
        let Some(sender) = state.sender.clone() else { return turn };
        drop(state);
        if sender.poll_room(context) == Poll::Pending {
            return turn;
        }
        let futures = self.state().take_futures();
        futures.settle(None);
        turn
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
        let sender = match (state.end(), &state.sender) {
            (Some(end), _) if end.by == CloseOrigin::Program => {
                drop(state);
                return Err(PyRuntimeError::new_err("the WebSocket was closed before"));
            }
            (None, Some(sender)) => sender,
            (None, None) => {
                drop(state);
                return Err(PyRuntimeError::new_err("websocket.accept has to be awaited first"));
            }
            _ => return Err(lost(state)),
        };
        let waiting = state.rare.as_ref().map_or(0, |rare| rare.futures.len());
        if waiting >= FUTURES_MAX || (waiting > 0 && sender.unsent_bytes() >= UNSENT_BYTES_MAX) {
            drop(state);
            let text = format!("{waiting} sends wait until the client takes more: await them");
            return Err(PyRuntimeError::new_err(text));
        }
        let Ok(has_room) = sender.send_now(kind, bytes) else { return Err(lost(state)) };
        let now = Instant::now();
        let is_held = state.left.is_some_and(|left| now - left < HOLD);
        if !is_held {
            state.left = Some(now);
        }
        if !has_room {
            // The task watches for room.
            state.wake_connection();
        }
        drop(state);
        match (has_room, is_held) {
            (false, _) => self.wait(py),
            (true, true) => Ok(self.context.done.bind(py).clone().into_any()),
            // It may compute for long before it waits for anything.
            (true, false) => Ok(Bound::new(py, LoopTurn::default())?.into_any()),
        }
    }

    /// Sends a message, if that need not wait. Returns whether it was sent.
    pub(crate) fn try_send(&self, kind: MessageKind, bytes: &[u8]) -> bool {
        let state = self.state();
        if state.end().is_some() {
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
        let name = intern!(py, "create_future");
        let future = self.context.event_loop.bind(py).call_method0(name)?;
        let looked_at = self.state().rare().futures.push(future.clone().unbind());
        if let Some(futures) = looked_at {
            let (kept, gone) = sorted(py, futures);
            self.state().rare().futures.put_back(kept);
            drop(gone);
        }
        Ok(Bound::new(py, LoopFuture::new(&future)?)?.into_any())
    }
}

/// Notes that the program is told of the loss.
fn lost(mut state: MutexGuard<'_, LinkState>) -> PyErr {
    state.is_known = true;
    drop(state);
    client_disconnected("the client has disconnected")
}

/// Reports what a step has raised, unless that is the task's own, which is reported with the task.
fn report(py: Python<'_>, stepped: PyResult<()>) {
    use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
    let Err(error) = stepped else { return };
    let is_exit =
        error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py);
    if !is_exit {
        error.write_unraisable(py, None);
    }
}
