//! The state of a WebSocket that its connection's task and Python share.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use pyo3::prelude::*;

use gustnado::websocket::{WebSocketMessage, WebSocketSender};

use super::SocketEnd;
use crate::websocket::futures::Futures;
use crate::websocket::held::KeptStep;
use crate::websocket::waiter::MessageWaiter;

/// So many messages are received before a program asks for them, or so many bytes of them: a
/// program that does not receive should still hear that its peer closes.
const AHEAD_MAX: usize = 32;
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// What is under way on a WebSocket.
#[derive(Default)]
pub(super) struct LinkState {
    /// Once it is open.
    pub(super) sender: Option<WebSocketSender>,
    /// The next message: usually there is one at most.
    pub(super) first: Option<WebSocketMessage>,
    pub(super) ahead_bytes: usize,
    /// The handler's task, until it ends.
    pub(super) task: Option<Py<PyAny>>,
    /// The next step of that task, while it waits for a message.
    pub(super) held: Option<KeptStep>,
    /// What it awaits meanwhile. It is used again for the next message.
    pub(super) awaitable: Option<Py<PyAny>>,
    /// When a message was last received or sent in a step of the program.
    pub(super) left: Option<Instant>,
    /// The task of the connection.
    pub(super) connection: Option<Waker>,
    /// What most sockets do not have.
    pub(super) rare: Option<Box<RareState>>,
    /// The peer is not read, since too much was received ahead.
    pub(super) is_paused: bool,
    /// The end was received.
    pub(super) is_told: bool,
    /// The program knows of the end, since it was received or something could not be sent.
    pub(super) is_known: bool,
}

/// What most sockets do not have.
#[derive(Default)]
pub(super) struct RareState {
    /// Messages after the first.
    pub(super) more: VecDeque<WebSocketMessage>,
    /// Tasks that wait for a message, besides the handler's.
    pub(super) waiters: VecDeque<Py<MessageWaiter>>,
    /// Futures of the loop that wait until it is open, or until more may be sent.
    pub(super) futures: Futures,
    pub(super) end: Option<SocketEnd>,
}

impl LinkState {
    pub(super) fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }

    pub(super) fn end(&self) -> Option<&SocketEnd> {
        self.rare.as_ref()?.end.as_ref()
    }

    pub(super) fn has_waiters(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.waiters.is_empty())
    }

    pub(super) fn take_futures(&mut self) -> Futures {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.futures)).unwrap_or_default()
    }

    pub(super) fn add_message(&mut self, message: WebSocketMessage) {
        self.ahead_bytes += message.as_bytes().len();
        if self.first.is_none() {
            self.first = Some(message);
        } else {
            self.rare().more.push_back(message);
        }
    }

    pub(super) fn take_message(&mut self) -> Option<WebSocketMessage> {
        let message = self.first.take()?;
        self.ahead_bytes -= message.as_bytes().len();
        if let Some(rare) = &mut self.rare {
            self.first = rare.more.pop_front();
            if rare.is_empty() {
                self.rare = None;
            }
        }
        Some(message)
    }

    pub(super) fn is_full(&self) -> bool {
        let more = self.rare.as_ref().map_or(0, |rare| rare.more.len());
        more + 1 >= AHEAD_MAX || self.ahead_bytes >= AHEAD_BYTES_MAX
    }

    pub(super) fn wake_connection(&self) {
        self.connection.iter().for_each(Waker::wake_by_ref);
    }

    pub(super) fn task_address(&self) -> usize {
        self.task.as_ref().map_or(0, |task| task.as_ptr() as usize)
    }
}

impl RareState {
    pub(super) fn is_empty(&self) -> bool {
        self.more.is_empty()
            && self.waiters.is_empty()
            && self.futures.is_empty()
            && self.end.is_none()
    }
}
