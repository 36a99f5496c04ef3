//! How a socket becomes one of TLS: the handshake as its server, and as its client.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::Poll;

use gustnado_tasks::{Charge, Connection, ConnectionError, MemoryKind, RecvBuf};
use rustls::pki_types::ServerName;

use super::sealed::{Sealed, broken};
use super::{More, Socket};
use crate::acceptor::{AcceptError, TlsAcceptor};
use crate::batch::Batch;
use crate::connector::{ConnectTlsError, TlsConnector};
use crate::handshake::{
    ClientHandshake, Established, Handshake, HandshakeError, HandshakeProgress,
};
use crate::in_flight::{UnderWay, await_turn};
use crate::shared_infos::SharedInfos;

/// Bytes that a handshake under way holds, most of them in the library.
const HANDSHAKE_BYTES: usize = 10 << 10;

thread_local! {
    /// Room for what this worker's connections keep when their handshakes are over.
    static KEPT: RefCell<(Batch<More>, Batch<Sealed>)> =
        const { RefCell::new((Batch::new(), Batch::new())) };
}

impl Socket {
    /// Takes a connection by TLS: the handshake, within the acceptor's time. From then on content
    /// is sealed and opened. Returns content that came right behind the handshake.
    ///
    /// - `received`: bytes that were received before: behind a PROXY header.
    ///
    /// # Errors
    /// [`AcceptError`]. The peer was told, but for plain HTTP, which can still be answered.
    pub async fn accept_tls(
        &mut self,
        acceptor: &TlsAcceptor,
        received: &[u8],
    ) -> Result<Vec<u8>, AcceptError> {
        let mut handshake = Handshake::default();
        self.refresh_now();
        self.set_deadline(self.now().mono_ms.saturating_add(acceptor.settings.handshake_ms));
        handshake.push(received);
        let begin = || {
            let mut charge = Charge::new(MemoryKind::Heads);
            charge.set(HANDSHAKE_BYTES);
            (acceptor.in_flight.begin(), charge)
        };
        let mut under_way = (!received.is_empty()).then(begin);
        loop {
            while !handshake.is_ready() {
                let piece = self.recv_of_handshake(under_way.as_ref()).await?;
                under_way.get_or_insert_with(begin);
                handshake.push(piece.bytes());
            }
            if handshake.is_at_hello() {
                await_turn().await;
            }
            let mut out = Vec::new();
            let failed = match handshake.advance(acceptor, acceptor.settings.own_records, &mut out)
            {
                Ok(HandshakeProgress::Done(established)) => {
                    self.begin_sealed(&acceptor.infos, *established, out);
                    let content = self.open_rest().map_err(AcceptError::Lost)?;
                    if content.is_empty() {
                        // Otherwise tickets leave with the first response.
                        let (connection, sealed) = self.sealed();
                        sealed.flush(connection);
                    }
                    return Ok(content);
                }
                Ok(HandshakeProgress::NeedMore) => None,
                Err(error) => Some(error),
            };
            if !out.is_empty() {
                self.send_records(&mut out).await.map_err(AcceptError::Lost)?;
            }
            if let Some(error) = failed {
                return Err(error.into());
            }
        }
    }

    /// Takes up a connection by TLS: the handshake, within the socket's deadline. From then on
    /// content is sealed and opened. Returns content that came right behind the handshake.
    ///
    /// - `host`: the name or the address that the server's certificate has to have; an IPv6 address
    ///   without brackets.
    ///
    /// # Errors
    /// [`ConnectTlsError`]. The peer was told.
    pub async fn connect_tls(
        &mut self,
        connector: &TlsConnector,
        host: &str,
    ) -> Result<Vec<u8>, ConnectTlsError> {
        let mut charge = Charge::new(MemoryKind::Heads);
        charge.set(HANDSHAKE_BYTES);
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| ConnectTlsError::Name { host: host.to_owned() })?;
        let mut out = Vec::new();
        let mut handshake = ClientHandshake::begin(&connector.config, name, &mut out)
            .map_err(HandshakeError::Refused)?;
        loop {
            if !out.is_empty() {
                self.send_records(&mut out).await.map_err(ConnectTlsError::Lost)?;
            }
            let progress = {
                let piece = self.connection.recv(false).await.map_err(ConnectTlsError::Lost)?;
                if piece.bytes().is_empty() {
                    return Err(ConnectTlsError::Closed);
                }
                handshake.advance(piece.bytes(), connector.own_records, &mut out)
            };
            match progress {
                Ok(HandshakeProgress::NeedMore) => {}
                Ok(HandshakeProgress::Done(mut established)) => {
                    established.info.server_name = Some(host.to_ascii_lowercase().into());
                    // The last of the handshake leaves with the first request.
                    self.begin_sealed(&connector.infos, *established, out);
                    return self.open_rest().map_err(ConnectTlsError::Lost);
                }
                Err(error) => {
                    if !out.is_empty() {
                        _ = self.send_records(&mut out).await;
                    }
                    return Err(error.into());
                }
            }
        }
    }

    async fn send_records(&mut self, records: &mut Vec<u8>) -> Result<(), ConnectionError> {
        let mut sent = Connection::outgoing();
        sent.bytes.append(records);
        self.connection.send(sent).await
    }

    /// Seals and opens from now on.
    ///
    /// - `records`: the last of the handshake, such as tickets, which are not sent yet.
    fn begin_sealed(&mut self, infos: &SharedInfos, established: Established, records: Vec<u8>) {
        let Established { session, info, rest } = established;
        let mut sealed = Sealed::new(session, infos.share(info));
        sealed.held.add_records(records);
        sealed.held.keep_partial(rest);
        KEPT.with_borrow_mut(|(mores, sealeds)| {
            let more = self.more.get_or_insert_with(|| mores.boxed(More::default()));
            more.sealed = Some(sealeds.boxed(sealed));
        });
    }

    /// Opens what came behind the handshake. Returns its content.
    fn open_rest(&mut self) -> Result<Vec<u8>, ConnectionError> {
        let now_ms = self.now().mono_ms;
        let opened = self.sealed().1.open(&[], now_ms);
        opened.map(|content| content.bytes().to_vec()).map_err(|error| {
            self.tell(error);
            broken(error)
        })
    }

    /// Receives bytes of a handshake, unless it has to give way to others.
    async fn recv_of_handshake(
        &mut self,
        under_way: Option<&(UnderWay<'_>, Charge)>,
    ) -> Result<RecvBuf, AcceptError> {
        let piece = poll_fn(|context| {
            if under_way.is_some_and(|(under_way, _)| under_way.poll_evicted(context)) {
                return Poll::Ready(Err(AcceptError::Evicted));
            }
            self.connection.poll_recv(false).map_err(AcceptError::Lost)
        });
        let piece = piece.await?;
        if piece.bytes().is_empty() { Err(AcceptError::Closed) } else { Ok(piece) }
    }
}
