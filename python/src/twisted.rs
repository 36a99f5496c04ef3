//! HTTP under Twisted: the engine reads and responds to the plain requests of a connection.
//!
//! Twisted's channel and transport exist from the start and keep their behaviour. A plain request
//! that arrives in one piece is parsed here, and the channel is brought to the state in which its
//! own parser would leave it. Everything else goes to that parser, so unusual requests, subclasses
//! and patched channels behave as before.

mod cyclone;
mod ordinary;
mod plain;
mod timeout;
mod tls;
mod words;

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::guarded::Guarded;
pub(crate) use cyclone::{CycloneApi, cyclone_head};
use ordinary::Ordinary;
pub(crate) use ordinary::TwistedApi;
use plain::PlainRequest;
pub(crate) use timeout::TwistedTimeout;
use tls::TlsTransport;
pub(crate) use tls::{TlsLink, TwistedTls};
pub(crate) use words::{HeadWords, escape_for_log};

/// Bytes received at once, as Twisted does.
const RECV_BYTES: usize = 64 << 10;
/// Maximum bytes queued here; Twisted's own buffers take the rest.
const WAITING_MAX: usize = 64 << 10;

/// A connection of a site.
#[pyclass(frozen, module = "gustnado._gustnado")]
pub(crate) struct TwistedConnection {
    fd: RawFd,
    /// The transport.
    server: Py<PyAny>,
    /// The protocol that the factory built, and its channel.
    protocol: Py<PyAny>,
    channel: Py<PyAny>,
    /// The transport's own methods, which send through Twisted.
    write: Py<PyAny>,
    /// The stack of log contexts, and the connection's own.
    contexts: Py<PyList>,
    context: Py<PyAny>,
    channel_kind: ChannelKind,
    tls: Option<TlsTransport>,
    /// Output to send.
    out: Guarded<Vec<u8>>,
    /// It is queued to be flushed by the next turn.
    is_queued: Guarded<bool>,
    /// Twisted's buffers hold earlier bytes.
    is_draining: Guarded<bool>,
    /// A producer is asked for more by Twisted's own sends only, so all bytes go that way.
    is_pulled: Guarded<bool>,
    /// Twisted's parser has received bytes.
    is_touched: Guarded<bool>,
    /// Set if ordinary requests are handled here.
    ordinary: OnceLock<Ordinary>,
}

/// The kind of channel.
enum ChannelKind {
    /// twisted.web's. The channel's own factory makes its requests, and may take the channel only.
    Site { request_factory: Py<PyAny>, is_simple: bool },
    /// Cyclone's, with its API and the client's address, if its own functions are not
    /// needed.
    Cyclone(Option<(Py<CycloneApi>, Py<PyAny>)>),
}

/// The result of polling a readable connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionLook {
    Done,
    /// It has ended: Twisted will find out.
    Ended,
    /// It has failed.
    Failed,
}

#[pymethods]
impl TwistedConnection {
    /// - `fd`: the connection's descriptor.
    /// - `server`: the transport, a `tcp.Server`.
    /// - `write`: its own method.
    /// - `protocol`, `channel`: what the factory built, and the `HTTPChannel` in it.
    /// - `contexts`, `context`: the stack of log contexts, and that of this connection.
    /// - `is_simple`: the channel's request factory takes the channel only; `None`: it has no such
    ///   factory, because it is Cyclone's.
    /// - `cyclone`: Cyclone's API, and the client's address.
    /// - `tls`: the connection's TLS, and the transport's method that sends bytes as they are.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "it is made in one place")]
    fn new(
        fd: RawFd,
        server: Py<PyAny>,
        write: Py<PyAny>,
        protocol: Py<PyAny>,
        channel: &Bound<'_, PyAny>,
        contexts: Py<PyList>,
        context: Py<PyAny>,
        is_simple: Option<bool>,
        cyclone: Option<(Py<CycloneApi>, Py<PyAny>)>,
        tls: Option<(Py<TlsLink>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let channel_kind = match is_simple {
            Some(is_simple) => {
                let request_factory = channel.getattr("requestFactory")?.unbind();
                ChannelKind::Site { request_factory, is_simple }
            }
            None => ChannelKind::Cyclone(cyclone),
        };
        Ok(Self {
            fd,
            server,
            protocol,
            channel: channel.clone().unbind(),
            write,
            contexts,
            context,
            channel_kind,
            tls: tls.map(|(link, write)| TlsTransport { link, write }),
            out: Guarded::default(),
            is_queued: Guarded::default(),
            is_draining: Guarded::default(),
            is_pulled: Guarded::default(),
            is_touched: Guarded::default(),
            ordinary: OnceLock::new(),
        })
    }

    /// Enables the handling of ordinary requests to a site.
    ///
    /// - `api`: Twisted's API.
    /// - `peer`, `host`: the connection's ends.
    /// - `reads`: the descriptors that the reactor reads.
    /// - `timeout`: the replacement of the channel's `callLater`.
    /// - `hsts`: the value of `Strict-Transport-Security`, if it is sent.
    fn enable_ordinary(
        slf: &Bound<'_, Self>,
        api: Py<TwistedApi>,
        peer: Py<PyAny>,
        host: Py<PyAny>,
        reads: Py<PyAny>,
        timeout: Option<Py<TwistedTimeout>>,
        hsts: Option<Py<PyBytes>>,
    ) -> PyResult<()> {
        let (py, connection) = (slf.py(), slf.get());
        let site = connection.channel.getattr(py, intern!(py, "site"))?;
        let fd = connection.fd.into_pyobject(py)?.into_any().unbind();
        let ordinary = Ordinary { api, site, peer, host, fd, reads, timeout, hsts };
        // It is logged once.
        _ = connection.ordinary.set(ordinary);
        Ok(())
    }

    /// Replaces the transport's `write`. Returns whether the caller must queue it to be flushed by
    /// the next turn.
    fn put(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(bytes) = data.cast::<PyBytes>() else {
            // Twisted's method raises the error for what cannot be sent.
            self.hand_over(py)?;
            return self.write.call1(py, (data,)).map(|_| false);
        };
        let bytes = bytes.as_bytes();
        if !self.takes_bytes(py, bytes.len())? {
            self.pass_on(py)?;
            self.is_draining.set(true);
            return self.write.call1(py, (data,)).map(|_| false);
        }
        self.out.borrow_mut().extend_from_slice(bytes);
        Ok(!self.is_queued.replace(true))
    }

    /// Moves queued bytes to Twisted's own buffers, which send them with the next turn: a separate
    /// send would cost the client another wake-up.
    fn hand_over(&self, py: Python<'_>) -> PyResult<()> {
        if !self.out.borrow_mut().is_empty() {
            self.pass_on(py)?;
            self.is_draining.set(true);
        }
        Ok(())
    }

    /// Says whether a producer is registered that has to be asked for each piece.
    fn set_pulled(&self, is_pulled: bool) {
        self.is_pulled.set(is_pulled);
    }

    /// Drops queued bytes.
    fn forget(&self) {
        self.out.borrow_mut().clear();
    }
}

impl TwistedConnection {
    /// Sends queued bytes. Twisted's own buffers get what the kernel does not take.
    ///
    /// - `send`: sends to a descriptor; `None` if it is not watched.
    pub(crate) fn flush(
        &self,
        py: Python<'_>,
        send: impl FnOnce(RawFd, &[u8]) -> Option<io::Result<usize>>,
    ) -> PyResult<()> {
        self.is_queued.set(false);
        if let Some(tls) = &self.tls {
            return self.flush_sealed(py, tls, send);
        }
        let mut out = self.out.borrow_mut();
        if out.is_empty() {
            return Ok(());
        }
        // Twisted finds an error with its next attempt.
        let taken = send(self.fd, &out).and_then(Result::ok).unwrap_or(0);
        if taken == out.len() {
            out.clear();
            if out.capacity() > WAITING_MAX {
                *out = Vec::new();
            }
            return Ok(());
        }
        out.drain(..taken);
        drop(out);
        self.pass_on(py)?;
        self.is_draining.set(true);
        Ok(())
    }

    /// Returns the connection's descriptor.
    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Returns whether that many bytes may be queued here.
    fn takes_bytes(&self, py: Python<'_>, count: usize) -> PyResult<bool> {
        let is_twisteds = self.is_pulled.get() || self.is_draining(py)?;
        if is_twisteds || self.out.borrow_mut().len() + count > WAITING_MAX {
            return Ok(false);
        }
        let server = self.server.bind(py);
        let is_open = server.getattr(intern!(py, "connected"))?.is_truthy()?
            && !server.getattr(intern!(py, "_writeDisconnected"))?.is_truthy()?;
        Ok(is_open)
    }

    /// Returns whether Twisted's buffers hold earlier bytes.
    fn is_draining(&self, py: Python<'_>) -> PyResult<bool> {
        // Records of TLS get there by other ways, too.
        if self.is_draining.get() || self.tls.is_some() {
            let server = self.server.bind(py);
            let is_empty = server.getattr(intern!(py, "_tempDataLen"))?.extract::<usize>()? == 0
                && server.getattr(intern!(py, "offset"))?.extract::<usize>()?
                    >= server.getattr(intern!(py, "dataBuffer"))?.len()?;
            self.is_draining.set(!is_empty);
        }
        Ok(self.is_draining.get())
    }

    /// Queues bytes for the next flush.
    fn append(&self, py: Python<'_>, parts: &[&[u8]]) -> PyResult<()> {
        if self.takes_bytes(py, parts.iter().map(|part| part.len()).sum())? {
            let mut out = self.out.borrow_mut();
            for part in parts {
                out.extend_from_slice(part);
            }
            return Ok(());
        }
        self.pass_on(py)?;
        self.is_draining.set(true);
        self.write.call1(py, (PyBytes::new(py, &parts.concat()),)).map(drop)
    }

    /// Moves queued bytes to Twisted's own buffers.
    fn pass_on(&self, py: Python<'_>) -> PyResult<()> {
        let out = std::mem::take(&mut *self.out.borrow_mut());
        if out.is_empty() {
            return Ok(());
        }
        self.write.call1(py, (PyBytes::new(py, &out),)).map(drop)
    }

    /// Receives what has arrived and responds to it. Output is sent with the next flush, for which
    /// the caller has queued the connection.
    pub(crate) fn poll_once(
        &self,
        py: Python<'_>,
        head_words: &HeadWords,
        buf: &mut Vec<u8>,
        recv: impl FnOnce(RawFd, &mut [u8]) -> Option<io::Result<usize>>,
    ) -> PyResult<ConnectionLook> {
        if !self.server.bind(py).getattr(intern!(py, "protocol"))?.is(&self.protocol) {
            // The connection was taken over: its transport reads it.
            return Ok(ConnectionLook::Ended);
        }
        buf.resize(RECV_BYTES, 0);
        let received = recv(self.fd, buf);
        let count = match received {
            Some(Ok(count)) if count > 0 => count,
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(ConnectionLook::Done);
            }
            Some(Err(_)) => return Ok(ConnectionLook::Failed),
            _ => return Ok(ConnectionLook::Ended),
        };
        self.is_queued.set(true);
        let contexts = self.contexts.bind(py);
        contexts.append(&self.context)?;
        let taken = match &self.tls {
            None => self.take(py, head_words, &buf[..count]),
            Some(tls) => self.take_sealed(py, head_words, tls, &buf[..count]),
        };
        contexts.del_item(contexts.len() - 1)?;
        taken.map(|()| ConnectionLook::Done)
    }

    fn take(&self, py: Python<'_>, head_words: &HeadWords, chunk: &[u8]) -> PyResult<()> {
        let channel = self.channel.bind(py);
        let mut rest = chunk;
        if self.is_between_requests(channel)? {
            let ordinary = self.ordinary.get();
            // Ordinary requests do not need it.
            let mut is_reset = !matches!(self.channel_kind, ChannelKind::Site { .. });
            while let Some(plain) = PlainRequest::read(rest) {
                let taken = ordinary.map(|it| it.respond(self, channel, head_words, &plain));
                match &self.channel_kind {
                    _ if taken.transpose()? == Some(true) => {}
                    ChannelKind::Site { request_factory, is_simple } => {
                        if !std::mem::replace(&mut is_reset, true) {
                            channel.call_method0(intern!(py, "resetTimeout"))?;
                        }
                        let factory = request_factory.bind(py);
                        let request = if *is_simple {
                            factory.call1((channel,))?
                        } else {
                            factory.call1((channel, 0))?
                        };
                        respond_for_site(channel, &request, head_words, &plain)?;
                    }
                    ChannelKind::Cyclone(known) => {
                        respond_for_cyclone(channel, known.as_ref(), &plain)?;
                    }
                }
                rest = &rest[plain.len()..];
                if !rest.is_empty() && self.is_leaving(py)? {
                    // The rest stays where Twisted's parser leaves it then.
                    self.is_touched.set(true);
                    let name = intern!(py, "_buffer");
                    let waiting = channel.getattr(name)?.add(PyBytes::new(py, rest))?;
                    return channel.setattr(name, waiting);
                }
                if rest.is_empty() || !self.is_between_requests(channel)? {
                    break;
                }
            }
        }
        if !rest.is_empty() {
            self.is_touched.set(true);
            // It resets the time-out.
            self.protocol.call_method1(
                py,
                intern!(py, "dataReceived"),
                (PyBytes::new(py, rest),),
            )?;
        }
        Ok(())
    }

    /// Returns whether this side is closing the connection.
    fn is_leaving(&self, py: Python<'_>) -> PyResult<bool> {
        self.server.bind(py).getattr(intern!(py, "disconnecting"))?.is_truthy()
    }

    /// Returns whether the channel expects the first byte of a request with its original parser.
    fn is_between_requests(&self, channel: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = channel.py();
        let is = |name: &Bound<'_, PyString>| channel.getattr(name)?.is_truthy();
        let is_site = matches!(self.channel_kind, ChannelKind::Site { .. });
        if is_site && (is(intern!(py, "_handlingRequest"))? || !is(intern!(py, "persistent"))?) {
            return Ok(false);
        }
        if !is(intern!(py, "line_mode"))? || is(intern!(py, "paused"))? {
            return Ok(false);
        }
        if !self.is_touched.get() {
            return Ok(true);
        }
        let own = channel.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
        let has_begun = if is_site {
            let first = channel.getattr(intern!(py, "_HTTPChannel__first_line"))?;
            is(intern!(py, "_HTTPChannel__header"))? || first.extract::<i64>()? != 1
        } else {
            is(intern!(py, "_headersbuffer"))?
        };
        let is_clean = !is(intern!(py, "_buffer"))?
            && !has_begun
            && !own.contains(intern!(py, "dataReceived"))?;
        self.is_touched.set(!is_clean);
        Ok(is_clean)
    }
}

/// Method, target, version, fields and body of a request, and its total length.
type PlainParts<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    &'static str,
    Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
    Bound<'py, PyBytes>,
    usize,
);

/// Returns the parts of the plain request at the beginning of received bytes, if there is one, so
/// that a test can compare them with what Twisted reads.
#[pyfunction]
pub(crate) fn read_plain_request<'py>(py: Python<'py>, received: &[u8]) -> Option<PlainParts<'py>> {
    let plain = PlainRequest::read(received)?;
    let bytes = |part: &[u8]| PyBytes::new(py, part);
    Some((
        bytes(plain.method()),
        bytes(plain.target()),
        if plain.is_old() { "HTTP/1.0" } else { "HTTP/1.1" },
        plain.fields().map(|(name, value)| (bytes(name), bytes(value))).collect(),
        bytes(plain.body()),
        plain.len(),
    ))
}

/// Brings a channel of twisted.web to the state in which its own parser would leave it.
fn respond_for_site(
    channel: &Bound<'_, PyAny>,
    request: &Bound<'_, PyAny>,
    head_words: &HeadWords,
    plain: &PlainRequest<'_>,
) -> PyResult<()> {
    let py = channel.py();
    channel.getattr(intern!(py, "requests"))?.call_method1(intern!(py, "append"), (request,))?;
    let headers = request.getattr(intern!(py, "requestHeaders"))?;
    let headers = headers.getattr(intern!(py, "_rawHeaders"))?.cast_into::<PyDict>()?;
    for (name, value) in plain.fields() {
        let (name, value) = (head_words.of(py, name)?, PyBytes::new(py, value));
        match headers.get_item(&name)? {
            Some(values) => values.cast::<PyList>()?.append(value)?,
            None => headers.set_item(name, PyList::new(py, [value])?)?,
        }
    }
    let version = head_words.version(py, plain.is_old());
    request.call_method0(intern!(py, "parseCookies"))?;
    let persistent = channel.call_method1(intern!(py, "checkPersistence"), (request, &version))?;
    channel.setattr(intern!(py, "persistent"), persistent)?;
    request.call_method1(intern!(py, "gotLength"), (plain.body().len(),))?;
    if !plain.body().is_empty() {
        let body = PyBytes::new(py, plain.body());
        request.call_method1(intern!(py, "handleContentChunk"), (body,))?;
    }
    channel.setattr(intern!(py, "_command"), PyBytes::new(py, plain.method()))?;
    channel.setattr(intern!(py, "_path"), PyBytes::new(py, plain.target()))?;
    channel.setattr(intern!(py, "_version"), version)?;
    channel.call_method0(intern!(py, "allContentReceived")).map(drop)
}

/// Does the same with a connection of Cyclone, which takes heads whole.
fn respond_for_cyclone(
    channel: &Bound<'_, PyAny>,
    known: Option<&(Py<CycloneApi>, Py<PyAny>)>,
    plain: &PlainRequest<'_>,
) -> PyResult<()> {
    let py = channel.py();
    if let Some((api, remote)) = known
        && plain.body().is_empty()
        && let Some(request) = api.get().make_request(channel, plain, remote.bind(py))?
    {
        channel.setattr(intern!(py, "_request"), &request)?;
        return channel.call_method1(intern!(py, "request_callback"), (request,)).map(drop);
    }
    channel.call_method1(intern!(py, "_on_headers"), (PyBytes::new(py, plain.head_lines()),))?;
    // A head that Cyclone refuses is consumed already.
    let waits = !channel.getattr(intern!(py, "line_mode"))?.is_truthy()?;
    if waits && !plain.body().is_empty() {
        let body = PyBytes::new(py, plain.body());
        channel.call_method1(intern!(py, "rawDataReceived"), (body,))?;
    }
    Ok(())
}
