//! What stands for TLS in a build without it: types that have no value, and a socket that is never
//! sealed.

use std::fs::File;
use std::sync::Arc;
use std::task::Poll;

use gustnado_tasks::{Connection, ConnectionError, ProgressTimeout, RecvBuf, SendBuf};

use crate::client_policy::ClientPolicy;
use crate::handshake_failure::HandshakeFailure;
use crate::socket::{MoreTime, Socket};
use crate::tls_property::TlsProperty;

/// Takes connections by TLS. There is none in a build without the feature `tls`.
#[derive(Debug)]
pub enum TlsAcceptor {}

impl TlsAcceptor {
    /// Returns what a host wants of its clients' certificates.
    pub fn policy_of(&self, _: &str) -> ClientPolicy {
        match *self {}
    }

    /// Returns the answers to challenges of certificate authorities.
    pub fn challenges(&self) -> Option<&Arc<AcmeChallenges>> {
        match *self {}
    }

    /// Returns whether a host wants certificates of its clients at all.
    pub fn has_policies(&self) -> bool {
        match *self {}
    }
}

/// Answers to the challenges of certificate authorities.
#[derive(Debug)]
pub enum AcmeChallenges {}

impl AcmeChallenges {
    /// Returns the answer to a token.
    pub fn of_token(&self, _: &[u8]) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// Why a connection has not got through its handshake.
#[derive(Debug)]
pub enum AcceptError {}

impl AcceptError {
    /// Returns how it failed.
    pub fn failure(&self) -> HandshakeFailure {
        match *self {}
    }
}

/// What two ends have agreed on.
#[derive(Debug)]
pub enum TlsInfo {}

impl TlsInfo {
    /// Returns whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        match *self {}
    }

    /// Returns whether a certificate authority has asked for a proof.
    pub fn is_challenge(&self) -> bool {
        match *self {}
    }

    /// Returns the value of a property.
    pub fn property(&self, _: TlsProperty) -> Option<&[u8]> {
        match *self {}
    }

    /// Returns what the site of the handshake wanted of the client's certificate.
    pub fn policy(&self) -> ClientPolicy {
        match *self {}
    }
}

#[expect(clippy::unused_self, reason = "with TLS they use it")]
impl Socket {
    /// Takes a connection by TLS.
    ///
    /// # Errors
    /// [`AcceptError`].
    #[expect(clippy::unused_async, reason = "with TLS it waits")]
    pub async fn accept_tls(
        &mut self,
        acceptor: &TlsAcceptor,
        _: &[u8],
    ) -> Result<Vec<u8>, AcceptError> {
        match *acceptor {}
    }

    /// Returns whether bytes travel by TLS: never.
    #[inline]
    pub fn is_sealed(&self) -> bool {
        false
    }

    /// Returns what the handshake has agreed on: nothing.
    #[inline]
    pub fn tls(&self) -> Option<&Arc<TlsInfo>> {
        None
    }

    /// Returns whether the peer has ended its direction in order: its bytes' end says so.
    pub fn has_ended(&self) -> bool {
        true
    }

    /// Returns whether the peer has said by TLS that nothing follows: never.
    pub fn has_closed(&self) -> bool {
        false
    }

    pub(super) fn start_send_sealed(&mut self, _: Box<SendBuf>) {
        unreachable!("nothing is sealed")
    }

    /// Closes in order, which takes no step of its own here.
    #[expect(clippy::unused_async, reason = "with TLS it waits")]
    pub async fn close(&mut self) {}

    pub(super) fn open(
        &mut self,
        _: Poll<Result<RecvBuf, ConnectionError>>,
        _: bool,
        _: impl FnMut(&mut Connection) -> Poll<Result<RecvBuf, ConnectionError>>,
    ) -> Poll<Result<RecvBuf, ConnectionError>> {
        unreachable!("nothing is sealed")
    }

    /// Opens received bytes, which no socket here has to.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn open_bytes(&mut self, _: &[u8], _: bool) -> Result<Option<RecvBuf>, ConnectionError> {
        unreachable!("nothing is sealed")
    }

    pub(super) fn take_unsent_sealed(&mut self) -> Option<Box<SendBuf>> {
        unreachable!("nothing is sealed")
    }

    pub(super) fn left_sealed(&self) -> u64 {
        unreachable!("nothing is sealed")
    }

    pub(super) fn poll_sent_sealed(&mut self) -> Poll<Result<(), ConnectionError>> {
        unreachable!("nothing is sealed")
    }

    pub(super) fn queue_close(&mut self) {
        unreachable!("nothing is sealed")
    }

    pub(super) fn leave_open(&mut self) {
        unreachable!("nothing is sealed")
    }

    #[expect(clippy::unused_async, reason = "with TLS it waits")]
    pub(super) async fn send_file_sealed(
        &mut self,
        _: &File,
        _: &mut u64,
        _: u64,
        _: ProgressTimeout,
        _: MoreTime<'_>,
    ) -> Result<(), ConnectionError> {
        unreachable!("nothing is sealed")
    }
}
