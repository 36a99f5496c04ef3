//! Completions: what each means for its socket, for the task that waits, and what is submitted
//! next.
//!
//! A completion may come after its socket was closed, and after the slot has its next socket. The
//! key in it holds the generation, so a late one is told from one of the successor:
//! [`Uring::live`]. A slot is not freed while any operation on it is under way, because the kernel
//! still uses its number.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::Uring;
use super::socket::{SocketState, UringSocket};
use crate::Token;
use crate::buf::SendBuf;
use crate::sys::{Completion, Key};

impl Uring {
    pub(super) fn complete(&mut self, completion: Completion) -> Option<Token> {
        match completion {
            Completion::Received { key, result, buffer, more } => {
                self.received(key, result, buffer, more)
            }
            Completion::ReceivedLarge { key, result, buf } => self.received_large(key, result, buf),
            Completion::Discarded { key, result } => self.discarded(key, result),
            Completion::Sent { key, result, out } => self.sent(key, result, out),
            Completion::AcceptedDirect { key, result, more } => {
                let listening = &mut self.listening[key.index as usize];
                // A multishot accept ends by itself, e.g. when the table is full. The next `accept`
                // arms it again.
                if !more {
                    listening.disarm();
                }
                // A cancelled accept is no failed one; anything else is for the acceptor to count.
                if !result.as_ref().is_err_and(is_cancelled) {
                    listening.direct.push_back(result);
                }
                Some(listening.waiter)
            }
            Completion::Accepted { key, result } => {
                let listening = &mut self.listening[key.index as usize];
                listening.disarm();
                if !result.as_ref().is_err_and(is_cancelled) {
                    listening.ordinary.push_back(result);
                }
                Some(listening.waiter)
            }
            Completion::Installed { key, result } => self.installed(key, result),
            Completion::Polled { key } => {
                let socket = self.live(key)?;
                socket.state.clear(SocketState::POLLING);
                socket.state.set(SocketState::POLLED);
                self.finish(key)
            }
            Completion::ListenerPolled { key } => {
                let listening = &mut self.listening[key.index as usize];
                listening.end_poll();
                Some(listening.waiter)
            }
            // No task waits for it, but the slot has to stay until it is over.
            Completion::ShutDown { key } => {
                self.live(key)?.state.clear(SocketState::SHUTTING_DOWN);
                self.finish_closing(key)
            }
            Completion::Woken { more } => {
                // The kernel ends a multishot poll when the completion queue overflows. Without a
                // new one no other thread could wake this one any more.
                if !more {
                    self.ring.watch_waker(self.waker.as_fd());
                }
                None
            }
            Completion::Nothing => None,
        }
    }

    fn sent(&mut self, key: Key, result: i32, mut out: Box<SendBuf>) -> Option<Token> {
        let target = self.target(key);
        let socket = self.live(key)?;
        // An error counts as no bytes; it is kept in `send` for the task.
        out.at += usize::try_from(result).unwrap_or(0);
        if result > 0 && !out.has_left() && !socket.state.has(SocketState::CLOSING) {
            // The kernel took a part. Sent on from here, so that the task is woken once, and its
            // deadline sees the send as one.
            out.note_blocked();
            self.socket(key).send = self.ring.send(target, key, out).cast_signed();
            return None;
        }
        socket.state.clear(SocketState::SENDING);
        socket.state.set(SocketState::SENT);
        socket.send = result;
        self.buf_pool.put(out);
        self.finish(key)
    }

    /// After a completion: frees a socket that only waited for it, or returns the waiting task.
    pub(super) fn finish(&mut self, key: Key) -> Option<Token> {
        if self.socket(key).state.has(SocketState::CLOSING) {
            return self.finish_closing(key);
        }
        Some(self.socket(key).waiter.token())
    }

    pub(super) fn finish_closing(&mut self, key: Key) -> Option<Token> {
        let state = self.socket(key).state;
        if state.has(SocketState::CLOSING) && !state.has(SocketState::UNDER_WAY) {
            self.release(key);
        }
        None
    }

    pub(super) fn release(&mut self, key: Key) {
        let socket = self.socket(key);
        // 24 bits, as a key has in `user_data`. It wraps after 16 million sockets of one slot, of
        // which none can have an operation under way still.
        let generation = (socket.generation + 1) & 0xff_ffff;
        let had_descriptor = socket.fd.is_some();
        *socket = UringSocket { generation, ..UringSocket::default() };
        if had_descriptor && key.index < self.table {
            self.installed -= 1;
        }
        if !self.addrs.is_empty() || !self.recv_errors.is_empty() {
            self.forget_rare(key.index);
        }
        if key.index < self.moved {
            // By a system call of its own: the slot may be filled again before the next submission,
            // which would then close its successor.
            if self.ring.update_slot(key.index, None).is_ok() {
                self.moved_free.push(key.index);
            }
        } else if key.index < self.table {
            self.ring.close_direct(key.index);
            self.close_pushed = true;
        } else {
            self.ordinary_free.push(key.index - self.table);
        }
    }
}

fn is_cancelled(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::CANCELED)
}
