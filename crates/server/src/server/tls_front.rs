//! TLS by a server's settings, for connections that a program receives and sends itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gustnado_tls::{TlsAcceptor, TlsEnd, TlsSettingsError};

use super::{StartError, endpoint_of, tls};
use crate::builder::Server;

/// What takes connections by TLS with the certificates of a [`Server`], where an event loop with
/// sockets of its own serves them. See [`Server::tls_front`].
#[derive(Clone)]
pub struct TlsFront {
    acceptor: Arc<TlsAcceptor>,
    handshake_timeout: Duration,
    hsts: Duration,
}

impl Server {
    /// Reads certificates and keys as a start does, and serves nothing.
    ///
    /// - `address`: where the program listens, for messages.
    ///
    /// # Errors
    /// [`StartError`], as that of a start.
    pub fn tls_front(&self, address: &str) -> Result<TlsFront, StartError> {
        let endpoint = endpoint_of(address)?;
        let acceptor = tls::acceptor(self, &endpoint)?;
        let config = &self.config;
        Ok(TlsFront {
            acceptor,
            handshake_timeout: config.tls_handshake_timeout,
            hsts: config.hsts,
        })
    }
}

impl TlsFront {
    /// Takes a new connection.
    pub fn connect(&self) -> TlsEnd {
        TlsEnd::new(Arc::clone(&self.acceptor))
    }

    /// Reads the files again if one of them has changed. Returns whether they were replaced.
    ///
    /// # Errors
    /// The files cannot be used: the last ones stay in force. Each change is reported once.
    pub fn refresh(&self) -> Result<bool, TlsSettingsError> {
        self.acceptor.refresh(tls::now_s())
    }

    /// Returns what is to be said about the certificates and keys at the start.
    pub fn notes(&self) -> Vec<String> {
        tls::notes(&self.acceptor)
    }

    /// Returns the time for a handshake.
    pub fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout
    }

    /// Returns how long browsers are to use https only; zero: nothing is said about that.
    pub fn hsts(&self) -> Duration {
        self.hsts
    }
}

impl fmt::Debug for TlsFront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsFront").finish_non_exhaustive()
    }
}
