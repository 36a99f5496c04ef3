//! A server's end of a TLS connection whose bytes a program receives and sends itself.
//!
//! For event loops with sockets of their own, such as Twisted's. Without I/O: received bytes go in,
//! content and bytes to send come out.

use std::mem;
use std::sync::Arc;

use crate::acceptor::TlsAcceptor;
use crate::handshake::{Established, Handshake, HandshakeError, HandshakeProgress, TlsInfo};
use crate::records::{CONTENT_BYTES_MAX, RecordError};
use crate::session::Session;

/// Content that may wait for the end of the handshake, in bytes. Protocols whose server speaks
/// first have some.
const EARLY_BYTES_MAX: usize = 64 << 10;

/// Why a connection is of no further use. What tells the peer was appended to what is to be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsEndError {
    /// The handshake.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// A record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// More content was sent before the end of the handshake than may wait for it.
    #[error("more than {EARLY_BYTES_MAX} bytes were sent before the end of the handshake")]
    Early,
}

impl TlsEndError {
    /// Returns whether the client speaks plain HTTP: then it was told nothing by TLS.
    pub fn is_plain_http(&self) -> bool {
        matches!(self, Self::Handshake(HandshakeError::PlainHttp))
    }
}

/// A server's end of a TLS connection.
pub struct TlsEnd {
    acceptor: Arc<TlsAcceptor>,
    state: TlsEndState,
    /// The beginning of a record whose rest is not there yet.
    partial: Vec<u8>,
    has_ended: bool,
    is_closed: bool,
}

enum TlsEndState {
    /// With content that waits for its end.
    Handshaking(Box<Handshake>, Vec<u8>),
    Established(Session, Box<TlsInfo>),
    Failed,
}

impl TlsEnd {
    /// Takes a new connection.
    pub fn new(acceptor: Arc<TlsAcceptor>) -> Self {
        let state = TlsEndState::Handshaking(Box::default(), Vec::new());
        Self { acceptor, state, partial: Vec::new(), has_ended: false, is_closed: false }
    }

    /// Takes received bytes.
    ///
    /// - `now_ms`: milliseconds of a clock that only advances.
    /// - `content`: gets the content of all whole records.
    /// - `out`: gets what is to be sent.
    ///
    /// # Errors
    /// [`TlsEndError`]: the connection is over, once `out` was sent.
    pub fn receive(
        &mut self,
        received: &[u8],
        now_ms: u64,
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsEndError> {
        let taken = self.take(received, now_ms, content, out);
        if taken.is_err() {
            self.state = TlsEndState::Failed;
        }
        taken
    }

    fn take(
        &mut self,
        received: &[u8],
        now_ms: u64,
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsEndError> {
        match &mut self.state {
            TlsEndState::Handshaking(handshake, early) => {
                handshake.push(received);
                let own_records = self.acceptor.settings.own_records;
                let HandshakeProgress::Done(established) =
                    handshake.advance(&*self.acceptor, own_records, out)?
                else {
                    return Ok(());
                };
                let early = mem::take(early);
                let Established { session, info, rest } = *established;
                self.state = TlsEndState::Established(session, Box::new(info));
                self.seal(&early, out)?;
                self.open(&rest, now_ms, content, out)
            }
            TlsEndState::Established(..) => self.open(received, now_ms, content, out),
            TlsEndState::Failed => Ok(()),
        }
    }

    fn open(
        &mut self,
        received: &[u8],
        now_ms: u64,
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsEndError> {
        let TlsEndState::Established(session, _) = &mut self.state else { return Ok(()) };
        if self.has_ended {
            return Ok(());
        }
        self.partial.extend_from_slice(received);
        let before = content.len();
        // All of it fits, so that no whole record is left for later.
        content.resize(before + self.partial.len(), 0);
        match session.open(&self.partial, &mut content[before..], now_ms) {
            Ok(opened) => {
                content.truncate(before + opened.content);
                self.partial.drain(..opened.taken);
                self.has_ended = opened.is_end;
                out.append(&mut session.owed());
                if self.partial.is_empty() {
                    // A connection that waits holds no buffer.
                    self.partial = Vec::new();
                }
                Ok(())
            }
            Err(error) => {
                content.truncate(before);
                // A key that is used up cannot seal it; the connection ends all the same.
                _ = session.alert(error, out);
                Err(error.into())
            }
        }
    }

    /// Seals content behind what `out` holds. Content of a connection that was closed or has failed
    /// is dropped.
    ///
    /// # Errors
    /// [`TlsEndError`]: the connection is over.
    pub fn seal(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<(), TlsEndError> {
        match &mut self.state {
            _ if self.is_closed || content.is_empty() => Ok(()),
            TlsEndState::Handshaking(_, early) if early.len() + content.len() > EARLY_BYTES_MAX => {
                self.state = TlsEndState::Failed;
                Err(TlsEndError::Early)
            }
            TlsEndState::Handshaking(_, early) => {
                early.extend_from_slice(content);
                Ok(())
            }
            TlsEndState::Established(session, _) => {
                Ok(session.seal(content, CONTENT_BYTES_MAX, out)?)
            }
            TlsEndState::Failed => Ok(()),
        }
    }

    /// Ends this direction in order: `out` gets what tells the peer. A second call does nothing.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if !mem::replace(&mut self.is_closed, true)
            && let TlsEndState::Established(session, _) = &mut self.state
        {
            // A key that is used up cannot seal it; the connection ends all the same.
            _ = session.close(out);
        }
    }

    /// Returns whether the peer has said that nothing follows.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns what the handshake has agreed on, once it is over.
    pub fn info(&self) -> Option<&TlsInfo> {
        match &self.state {
            TlsEndState::Established(_, info) => Some(info),
            _ => None,
        }
    }
}

impl std::fmt::Debug for TlsEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsEnd").field("info", &self.info()).finish_non_exhaustive()
    }
}
