//! A client's end of a connection by HTTP/2: the text of HTTP/1.1 on the side of the test, frames
//! on the side of the server.
//!
//! Every request is a stream, in the order of the text; responses are read in that order, too. Like
//! a plain connection, it receives when the test reads, so that a test which does not read holds
//! the server up. What waits for a window of the server leaves by a thread meanwhile, as it would
//! by the kernel. What HTTP/2 cannot say fails the test.

mod requests;
mod responses;
mod text;

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_http::h2::{ErrorCode, GlitchLimits, H2Client, H2ClientEvent, H2ClientLimits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::link::Wire;
use requests::Requests;
use responses::{Responses, TextEnd};

/// The protocol's own side.
type Core = H2Client<()>;

/// What may wait for a window of the server before a write waits, too.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How much the server may send on each stream before the test has read any of it.
const WINDOW_BYTES: u32 = 1 << 20;
/// How long a kernel may take bytes that the server has closed to.
const LATE_MAX: Duration = Duration::from_millis(50);
/// What is received at once.
const PIECE_BYTES: usize = 16 << 10;
/// How long another thread may have received what this one waits for.
const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// A connection by HTTP/2, for several threads.
pub(crate) struct Gateway {
    wire: Wire,
    /// Locked while no thread waits for the socket.
    state: Mutex<State>,
    is_silent: AtomicBool,
}

struct State {
    core: Core,
    began: Instant,
    requests: Requests,
    responses: Responses,
    /// Received, and not a whole frame yet.
    received: Vec<u8>,
    /// Frames that leave once the connection has begun, and no other frame is under way.
    frames: Vec<u8>,
    /// What leaves next.
    unsent: Vec<u8>,
    /// A window, or a stream, has to come for what waits.
    is_blocked: bool,
    /// A thread sends what waits.
    is_pumping: bool,
    shut: Shut,
    /// A send has found that the server has reset it: no receive will say so any more.
    is_reset: bool,
    /// When something was first written after the server had closed.
    written_late: Option<Instant>,
    /// Why the test cannot go on.
    fault: Option<String>,
}

/// Whether more is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shut {
    No,
    /// Nothing but what waits.
    Wanted,
    Done,
}

impl Gateway {
    /// Begins. Nothing is sent before the test sends something.
    pub(crate) fn begin(wire: Wire) -> Self {
        let limits = H2ClientLimits {
            window_bytes: WINDOW_BYTES,
            window_bytes_max: WINDOW_BYTES,
            head_bytes_max: usize::from(u16::MAX),
            fields_max: 10_000,
            glitches: GlitchLimits { burst: 0, ..GlitchLimits::default() },
            ..H2ClientLimits::default()
        };
        let mut frames = Vec::new();
        let state = State {
            core: H2Client::new(limits, &mut frames),
            began: Instant::now(),
            requests: Requests::new(),
            responses: Responses::default(),
            received: Vec::new(),
            frames,
            unsent: Vec::new(),
            is_blocked: false,
            is_pumping: false,
            shut: Shut::No,
            is_reset: false,
            written_late: None,
            fault: None,
        };
        Self { wire, state: Mutex::new(state), is_silent: AtomicBool::new(false) }
    }

    /// The socket below.
    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Leaves out what a close in order needs.
    pub(crate) fn keep_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Reads text. 0 is its end.
    pub(crate) fn read(&self, piece: &mut [u8]) -> io::Result<usize> {
        let deadline = self.wire.read_timeout().map(|time| Instant::now() + time);
        loop {
            {
                let mut state = self.state();
                let count = state.take(piece);
                state.step(&self.wire);
                match state.responses.end() {
                    _ if count > 0 => return Ok(count),
                    None => {}
                    Some(TextEnd::InOrder) => return Ok(0),
                    Some(TextEnd::Reset) => return Err(ErrorKind::ConnectionReset.into()),
                }
            }
            if self.poll(PollFlags::IN, deadline)? {
                self.state().receive(&self.wire);
            }
        }
    }

    /// Takes text. What the server has no window for yet leaves later.
    pub(crate) fn write(self: &Arc<Self>, text: &[u8]) -> io::Result<usize> {
        let deadline = self.wire.write_timeout().map(|time| Instant::now() + time);
        let text = &text[..text.len().min(PIECE_BYTES)];
        loop {
            {
                let mut state = self.state();
                if State::is_over(&self.wire) {
                    let since = state.written_late.get_or_insert_with(Instant::now);
                    if since.elapsed() > LATE_MAX {
                        return Err(ErrorKind::BrokenPipe.into());
                    }
                }
                if state.waiting_bytes() < WAITING_BYTES_MAX {
                    state.requests.add(text);
                    self.push(&mut state);
                    return Ok(text.len());
                }
            }
            self.poll(PollFlags::empty(), deadline)?;
        }
    }

    /// Says that nothing more is sent, once all has left.
    pub(crate) fn shut_write(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state();
        if state.shut == Shut::Done {
            return Err(ErrorKind::NotConnected.into());
        }
        state.shut = Shut::Wanted;
        self.push(&mut state);
        Ok(())
    }

    /// Sends what can be sent, and leaves the rest to a thread.
    fn push(self: &Arc<Self>, state: &mut State) {
        state.step(&self.wire);
        if state.is_waiting() && !std::mem::replace(&mut state.is_pumping, true) {
            let gateway = Arc::downgrade(self);
            thread::spawn(move || while gateway.upgrade().is_some_and(|gateway| gateway.pump()) {});
        }
    }

    /// Waits for the server once, and sends more. Returns whether some is left.
    fn pump(&self) -> bool {
        let wanted = {
            let state = locked(&self.state);
            let reads = !state.responses.is_full() && !state.responses.has_last();
            let input = if reads { PollFlags::IN } else { PollFlags::empty() };
            input | if state.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
        };
        let is_ready = self.poll(wanted, None);
        let mut state = locked(&self.state);
        if is_ready.is_ok_and(|is_ready| is_ready) && wanted.contains(PollFlags::IN) {
            state.receive(&self.wire);
        }
        state.step(&self.wire);
        state.is_pumping = state.is_waiting();
        state.is_pumping
    }

    /// Waits for the socket, or for what another thread may do. Returns whether the socket is
    /// ready.
    fn poll(&self, wanted: PollFlags, deadline: Option<Instant>) -> io::Result<bool> {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        match poll(&mut [PollFd::new(&self.wire, wanted)], Some(&SLICE)) {
            Ok(count) if wanted.is_empty() && count > 0 => {
                // An end, which is reported whatever is asked for.
                thread::sleep(Duration::from_millis(2));
                Ok(true)
            }
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The state, if the test can go on.
    fn state(&self) -> MutexGuard<'_, State> {
        let state = locked(&self.state);
        if let Some(fault) = &state.fault
            && !thread::panicking()
        {
            let fault = fault.clone();
            drop(state);
            panic!("{fault}");
        }
        state
    }
}

impl Drop for Gateway {
    /// Closes as the drop of a plain connection does: in order, or by a reset if the test has left
    /// content unread. Frames about the connection, which no test reads, are no content.
    fn drop(&mut self) {
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let mut state = locked(&self.state);
        state.step(&self.wire);
        let received = state.receive(&self.wire);
        if state.responses.text_bytes() > 0 || received == PIECE_BYTES {
            self.wire.reset_on_close();
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A test that panics with it has failed already.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn waiting_bytes(&self) -> usize {
        self.requests.waiting_bytes() + self.unsent.len()
    }

    /// Whether something waits for the server.
    fn is_waiting(&self) -> bool {
        self.fault.is_none() && (self.is_blocked || !self.unsent.is_empty())
    }

    /// Whether the server has closed.
    fn is_over(wire: &Wire) -> bool {
        let mut looked = [PollFd::new(wire, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut looked, Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Takes text for the test, and gives the server as much of a window.
    fn take(&mut self, piece: &mut [u8]) -> usize {
        let (count, contents) = self.responses.take(piece);
        for (id, bytes) in contents {
            self.core.take(id, bytes, &mut self.frames);
        }
        count
    }

    /// Translates and sends what can be sent now.
    fn step(&mut self, wire: &Wire) {
        if self.responses.has_last() {
            self.requests.stop();
            self.shut = if self.shut == Shut::Done { Shut::Done } else { Shut::Wanted };
        }
        let out = (&mut self.unsent, &mut self.frames);
        match self.requests.advance(&mut self.core, &mut self.responses, out) {
            Ok(is_blocked) => self.is_blocked = is_blocked,
            Err(fault) => self.fail(fault.into_message()),
        }
        if self.requests.has_begun() && !self.requests.is_within_frame() {
            self.unsent.append(&mut self.frames);
        }
        while !self.unsent.is_empty() {
            match send(wire, &self.unsent, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                // What it has sent before can still be read.
                Err(error) => {
                    self.is_reset |= error == rustix::io::Errno::CONNRESET;
                    self.unsent.clear();
                }
            }
        }
        if self.shut == Shut::Wanted && !self.is_waiting() {
            self.shut = Shut::Done;
            // The server may have ended it already.
            drop(wire.shutdown(Shutdown::Write));
        }
    }

    /// Receives what is here. Returns how much that was.
    fn receive(&mut self, wire: &Wire) -> usize {
        let mut piece = [0; PIECE_BYTES];
        match recv(wire, &mut piece[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                let end = if self.is_reset { TextEnd::Reset } else { TextEnd::InOrder };
                self.responses.cut_all(end);
                0
            }
            Ok((count, _)) => {
                self.received.extend_from_slice(&piece[..count]);
                self.translate();
                count
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            Err(_) => {
                self.responses.cut_all(TextEnd::Reset);
                0
            }
        }
    }

    /// Translates what was received.
    fn translate(&mut self) {
        let received = std::mem::take(&mut self.received);
        if !self.core.has_settings() && received.starts_with(b"HTTP/1.") {
            return self.responses.raw(&received);
        }
        let mut rest = &received[..];
        loop {
            let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            match self.core.next(rest, now_ms, &mut self.frames) {
                Ok((used, event)) => {
                    rest = &rest[used..];
                    let Some(event) = event else { break };
                    self.act_on(event);
                }
                Err(error) => {
                    self.fail(format!("the server breaks a rule of HTTP/2: {error:?}"));
                    break;
                }
            }
        }
        self.received = rest.to_vec();
    }

    fn act_on(&mut self, event: H2ClientEvent<'_, ()>) {
        match event {
            H2ClientEvent::Interim { id, head } => {
                self.responses.head((id, false), (head, self.core.head_bytes()), false);
            }
            H2ClientEvent::Response { id, head, is_end } => {
                let is_leaving = self.core.is_used_up();
                self.responses.head((id, is_end), (head, self.core.head_bytes()), is_leaving);
                if is_end && self.responses.finish(id, None) {
                    self.core.close(id, ErrorCode::NoError, &mut self.frames);
                }
            }
            H2ClientEvent::Data { id, bytes, is_end } => {
                self.responses.content(id, bytes);
                if is_end && self.responses.finish(id, None) {
                    self.core.close(id, ErrorCode::NoError, &mut self.frames);
                }
            }
            H2ClientEvent::Trailers { id } => {
                if self.responses.finish(id, Some(self.core.trailers())) {
                    self.core.close(id, ErrorCode::NoError, &mut self.frames);
                }
            }
            H2ClientEvent::Reset { fault: Some(fault), .. } => {
                self.fail(format!("the server breaks a rule of HTTP/2: {fault}"));
            }
            H2ClientEvent::Reset { stream, code, .. } => self.responses.reset(stream.id, code),
            H2ClientEvent::GoAway { refused, .. } => {
                for stream in refused {
                    self.responses.cut(stream.id, TextEnd::InOrder);
                }
            }
            H2ClientEvent::Window => {}
        }
    }

    fn fail(&mut self, fault: String) {
        self.requests.stop();
        self.fault.get_or_insert(fault);
    }
}
