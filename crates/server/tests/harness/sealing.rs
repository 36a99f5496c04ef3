//! A client's end of a connection by TLS: raw content in both directions, over records of rustls.
//!
//! It reads and writes at the socket's own pace and within its time limits, so that a test which
//! reads slowly, or is cut off in the middle, does the same as on a plain connection.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustls::ClientConnection;

use super::link::Wire;
use super::transport;

/// What is sealed at once: the content of one record.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// A connection by TLS, for several threads.
pub(crate) struct Sealing {
    wire: Wire,
    /// Locked while no thread waits for the socket.
    state: Mutex<State>,
    /// Records that the kernel has not taken yet. Locked while they are sent, since their order is
    /// that of their numbers, and before `state`.
    unsent: Mutex<Vec<u8>>,
    is_open: AtomicBool,
    is_silent: AtomicBool,
    is_early: bool,
}

struct State {
    client: ClientConnection,
    /// Records that were received and not opened yet.
    received: Vec<u8>,
    /// What ended it: each later operation fails with the same.
    failed: Option<ErrorKind>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A test that panics with it has failed already.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sealing {
    /// Begins with a handshake.
    ///
    /// - `is_early`: the server may not accept the connection yet. Then the handshake goes on when
    ///   the client reads, and what is sent until then leaves behind it.
    pub(crate) fn begin(wire: Wire, is_early: bool) -> Self {
        let client = transport::client();
        let sealing = Self {
            wire,
            state: Mutex::new(State { client, received: Vec::new(), failed: None }),
            unsent: Mutex::default(),
            is_open: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            is_early,
        };
        // What fails now is found by the first operation, where a test expects it.
        _ = if is_early { sealing.seal(|_| Ok(())) } else { sealing.open() };
        sealing
    }

    /// The socket below.
    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Leaves out the alert that ends a direction in order.
    pub(crate) fn keep_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Reads content. 0 is an end that the server has announced; one without that is an error.
    pub(crate) fn read(&self, piece: &mut [u8]) -> io::Result<usize> {
        self.open()?;
        loop {
            if let Some(count) = locked(&self.state).take(piece)? {
                return Ok(count);
            }
            self.receive()?;
        }
    }

    /// Seals some bytes and sends them. Those that the kernel does not take in time are sent by the
    /// next operation.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let bytes = &bytes[..bytes.len().min(RECORD_BYTES_MAX)];
        match self.seal(|client| client.writer().write_all(bytes)) {
            Err(error) if !is_wait(&error) => Err(error),
            _ => Ok(bytes.len()),
        }
    }

    /// Sends what the kernel has not taken yet.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.send(&mut locked(&self.unsent))
    }

    /// Ends this direction in order (RFC 8446 §6.1). The socket stays open in both.
    pub(crate) fn send_close(&self) -> io::Result<()> {
        self.seal(|client| {
            client.send_close_notify();
            Ok(())
        })
    }

    /// Sends what `act` seals.
    fn seal(&self, act: impl FnOnce(&mut ClientConnection) -> io::Result<()>) -> io::Result<()> {
        if !self.is_early {
            self.open()?;
        }
        let mut unsent = locked(&self.unsent);
        locked(&self.state).seal(&mut unsent, act)?;
        self.send(&mut unsent)
    }

    /// Completes the handshake.
    fn open(&self) -> io::Result<()> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut unsent = locked(&self.unsent);
        loop {
            let is_open = {
                let mut state = locked(&self.state);
                state.seal(&mut unsent, |_| Ok(()))?;
                !state.client.is_handshaking()
            };
            self.send(&mut unsent)?;
            if is_open {
                self.is_open.store(true, Ordering::Release);
                return Ok(());
            }
            self.receive()?;
            locked(&self.state).advance()?;
        }
    }

    /// Waits for records.
    fn receive(&self) -> io::Result<()> {
        let mut piece = [0; RECORD_BYTES_MAX];
        let count = (&self.wire).read(&mut piece);
        let mut state = locked(&self.state);
        match count {
            Ok(0) => {
                // rustls tells an end that was announced from one that was not.
                state.client.read_tls(&mut io::empty())?;
                if state.client.is_handshaking() {
                    return Err(state.fail(ErrorKind::UnexpectedEof));
                }
            }
            Ok(count) => state.received.extend_from_slice(&piece[..count]),
            Err(error) if is_wait(&error) || error.kind() == ErrorKind::Interrupted => {
                return Err(error);
            }
            Err(error) => return Err(state.fail(error.kind())),
        }
        Ok(())
    }

    fn send(&self, unsent: &mut Vec<u8>) -> io::Result<()> {
        while !unsent.is_empty() {
            match (&self.wire).write(unsent) {
                Ok(count) => drop(unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the connection as the drop of a plain one does: in order, or by a reset if the test has
    /// left content unread. Tickets, which no test reads, are no content.
    fn end(&self) -> io::Result<()> {
        fcntl_setfl(&self.wire, fcntl_getfl(&self.wire)? | OFlags::NONBLOCK)?;
        self.send_close()?;
        let mut piece = [0; 1];
        if self.read(&mut piece)? > 0 {
            self.wire.reset_on_close();
        }
        Ok(())
    }
}

impl Drop for Sealing {
    fn drop(&mut self) {
        if !self.is_silent.load(Ordering::Relaxed) && self.is_open.load(Ordering::Acquire) {
            // The server may have closed.
            _ = self.end();
        }
    }
}

impl State {
    /// Takes content that is here. `None`: more has to be received.
    fn take(&mut self, piece: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.client.reader().read(piece) {
                Err(error) if is_wait(&error) => {}
                taken => return taken.map(Some),
            }
            self.check()?;
            if self.received.is_empty() {
                return Ok(None);
            }
            self.advance()?;
        }
    }

    /// Opens some of what was received.
    fn advance(&mut self) -> io::Result<()> {
        let count = self.client.read_tls(&mut &self.received[..])?;
        self.received.drain(..count);
        if let Err(error) = self.client.process_new_packets() {
            self.fail(ErrorKind::InvalidData);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(())
    }

    /// Appends what `act` makes the client send.
    fn seal(
        &mut self,
        records: &mut Vec<u8>,
        act: impl FnOnce(&mut ClientConnection) -> io::Result<()>,
    ) -> io::Result<()> {
        self.check()?;
        act(&mut self.client)?;
        while self.client.wants_write() {
            self.client.write_tls(records)?;
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn fail(&mut self, kind: ErrorKind) -> io::Error {
        self.failed = Some(kind);
        kind.into()
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
