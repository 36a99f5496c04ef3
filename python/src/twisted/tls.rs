//! TLS of Twisted's transports: they receive and send the bytes, the engine opens and seals them.

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use gustnado::config::SiteTls;
use gustnado::{Server, TlsEnd, TlsEndError, TlsFront};

use super::TwistedConnection;
use super::words::HeadWords;
use crate::errors;
use crate::guarded::Guarded;

/// A certificate of hosts: their names, its file, and that of its key.
type SitePair = (Vec<String>, String, String);

/// The certificates of a port, and what else is set about its TLS.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct TwistedTls(TlsFront);

#[pymethods]
impl TwistedTls {
    /// Reads certificates and keys.
    ///
    /// - `address`: where the port listens, for messages.
    /// - `settings`: names and values, as on the command line.
    /// - `sites`: certificates of hosts that have some of their own.
    #[new]
    fn new(address: &str, settings: Vec<(String, String)>, sites: Vec<SitePair>) -> PyResult<Self> {
        // HTTP/2 is for the engine's own connections.
        let mut server = Server::new().http2(false);
        for (name, value) in settings {
            let set = server.set(&name, &value);
            server = set.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        for (hosts, cert, key) in sites {
            let own = SiteTls { cert: cert.into(), key: Some(key.into()), ..SiteTls::default() };
            server = server.site_tls(&hosts, own);
        }
        let front = server.tls_front(address).map_err(|error| errors::of_start(&error))?;
        Ok(Self(front))
    }

    /// Takes a new connection.
    fn connect(&self) -> TlsLink {
        TlsLink {
            end: Guarded::new(self.0.connect()),
            owed: Guarded::default(),
            began: Instant::now(),
            failure: OnceLock::new(),
        }
    }

    /// Reads the files again if one of them has changed. Raises a `ValueError` if they cannot be
    /// used: the last ones stay in force.
    fn refresh(&self) -> PyResult<bool> {
        self.0.refresh().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns what is to be logged at the start.
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// The time for a handshake, in seconds.
    #[getter]
    fn handshake_timeout(&self) -> f64 {
        self.0.handshake_timeout().as_secs_f64()
    }

    /// The value of `Strict-Transport-Security`, if it is to be sent.
    #[getter]
    fn hsts<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let seconds = self.0.hsts().as_secs();
        (seconds > 0).then(|| PyBytes::new(py, format!("max-age={seconds}").as_bytes()))
    }
}

/// The TLS of one connection.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct TlsLink {
    end: Guarded<TlsEnd>,
    /// What is to be sent before anything else.
    owed: Guarded<Vec<u8>>,
    began: Instant,
    failure: OnceLock<LinkFailure>,
}

/// Why the connection is over.
struct LinkFailure {
    text: String,
    /// The client speaks plain HTTP.
    is_plain: bool,
}

#[pymethods]
impl TlsLink {
    /// Takes received bytes, and returns the content in them.
    fn receive<'py>(&self, py: Python<'py>, received: &[u8]) -> Bound<'py, PyBytes> {
        let mut content = Vec::new();
        self.open(received, &mut content);
        PyBytes::new(py, &content)
    }

    /// Returns what is to be sent for this content, behind what is owed.
    fn seal<'py>(&self, py: Python<'py>, content: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.sealed(content))
    }

    /// Returns what tells the peer that nothing follows, behind what is owed.
    fn close<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = self.owed.take();
        self.end.borrow_mut().close(&mut out);
        PyBytes::new(py, &out)
    }

    /// Whether the handshake is over.
    #[getter]
    fn is_established(&self) -> bool {
        self.end.borrow_mut().info().is_some()
    }

    /// Whether the peer has said that nothing follows.
    #[getter]
    fn has_ended(&self) -> bool {
        self.end.borrow_mut().has_ended()
    }

    /// Why the connection is over, and whether the client speaks plain HTTP.
    #[getter]
    fn failure(&self) -> Option<(&str, bool)> {
        self.failure.get().map(|failure| (&*failure.text, failure.is_plain))
    }

    /// Version, cipher suite and the name that the client has asked for, once the handshake is
    /// over.
    #[getter]
    fn agreed(&self) -> Option<(&'static str, &'static str, Option<String>)> {
        let end = self.end.borrow_mut();
        let info = end.info()?;
        Some((info.version.name(), info.cipher, info.server_name.as_deref().map(str::to_owned)))
    }

    /// The protocol by ALPN, if the client has offered one.
    #[getter]
    fn alpn<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let end = self.end.borrow_mut();
        Some(PyBytes::new(py, end.info()?.alpn.as_deref()?))
    }

    /// The client's certificates in DER, its own first.
    #[getter]
    fn client_chain<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let end = self.end.borrow_mut();
        let chain = end.info().map(|info| &*info.client_chain).unwrap_or_default();
        chain.iter().map(|certificate| PyBytes::new(py, certificate)).collect()
    }
}

impl TlsLink {
    /// Appends the content of received bytes. Returns whether the handshake or the connection has
    /// ended with them.
    pub(super) fn open(&self, received: &[u8], content: &mut Vec<u8>) -> bool {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut end = self.end.borrow_mut();
        let was_established = end.info().is_some();
        let mut owed = self.owed.borrow_mut();
        if let Err(error) = end.receive(received, now_ms, content, &mut owed) {
            self.fail(&error);
        }
        let has_begun = !was_established && end.info().is_some();
        has_begun || end.has_ended() || self.failure.get().is_some()
    }

    /// Returns what is to be sent for this content, behind what is owed.
    pub(super) fn sealed(&self, content: &[u8]) -> Vec<u8> {
        let mut out = self.owed.take();
        let sealed = self.end.borrow_mut().seal(content, &mut out);
        if let Err(error) = sealed {
            self.fail(&error);
        }
        out
    }

    fn fail(&self, error: &TlsEndError) {
        let is_plain = error.is_plain_http();
        // The first one is the cause of the others.
        _ = self.failure.set(LinkFailure { text: error.to_string(), is_plain });
    }
}

/// The TLS of a connection.
pub(super) struct TlsTransport {
    pub(super) link: Py<TlsLink>,
    /// The transport's method that sends bytes as they are.
    pub(super) write: Py<PyAny>,
}

impl TwistedConnection {
    /// Seals and sends queued bytes, behind the records that TLS itself owes.
    pub(super) fn flush_sealed(
        &self,
        py: Python<'_>,
        tls: &TlsTransport,
        send: impl FnOnce(RawFd, &[u8]) -> Option<io::Result<usize>>,
    ) -> PyResult<()> {
        let records = tls.link.get().sealed(&self.out.take());
        if records.is_empty() {
            return Ok(());
        }
        // Records that are in Twisted's buffers leave before these, or no peer could open them.
        let taken = if self.is_draining(py)? {
            0
        } else {
            send(self.fd, &records).and_then(Result::ok).unwrap_or(0)
        };
        if taken == records.len() {
            return Ok(());
        }
        tls.write.call1(py, (PyBytes::new(py, &records[taken..]),)).map(drop)
    }

    /// Opens received records, and takes what is in them.
    pub(super) fn take_sealed(
        &self,
        py: Python<'_>,
        head_words: &HeadWords,
        tls: &TlsTransport,
        received: &[u8],
    ) -> PyResult<()> {
        let mut content = Vec::new();
        let has_changed = tls.link.get().open(received, &mut content);
        if !content.is_empty() {
            self.take(py, head_words, &content)?;
        }
        if has_changed {
            self.server.call_method0(py, intern!(py, "_tlsChanged"))?;
        }
        Ok(())
    }
}
