//! The client's side of a handshake.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection};

use super::{
    Established, HANDSHAKE_BYTES_MAX, HandshakeError, HandshakeProgress, info, not_tls,
    whole_record,
};
use crate::client_policy::ClientPolicy;
use crate::records::SEALED_BYTES_MAX;
use crate::session::{LibrarySession, Session, give, write_out};
use crate::traffic_secrets::Capture;

const ALERT_RECORD: u8 = 21;

/// A client's handshake under way.
pub(crate) struct ClientHandshake {
    /// `None`: it is over.
    connection: Option<Connection>,
    capture: Arc<Capture>,
    /// The beginning of a record that is not whole.
    partial: Vec<u8>,
    taken: usize,
}

impl ClientHandshake {
    /// Begins one. The hello is appended to `out`.
    ///
    /// # Errors
    /// The library's.
    pub(crate) fn begin(
        config: &ClientConfig,
        name: ServerName<'static>,
        out: &mut Vec<u8>,
    ) -> Result<Self, rustls::Error> {
        // The configuration is all connections' and lasts; a clone of it captures the secrets of
        // this handshake alone.
        let mut config = config.clone();
        let capture = Arc::new(Capture::new(Arc::clone(&config.key_log)));
        config.key_log = Arc::clone(&capture) as _;
        config.enable_secret_extraction = true;
        let mut connection = Connection::from(ClientConnection::new(Arc::new(config), name)?);
        write_out(&mut connection, out);
        Ok(Self { connection: Some(connection), capture, partial: Vec::new(), taken: 0 })
    }

    /// Goes on by received bytes. What is to be sent is appended to `out`, also where it fails: an
    /// alert.
    ///
    /// # Errors
    /// [`HandshakeError`]; the handshake is over then.
    pub(crate) fn advance(
        &mut self,
        received: &[u8],
        own_records: bool,
        out: &mut Vec<u8>,
    ) -> Result<HandshakeProgress, HandshakeError> {
        self.partial.extend_from_slice(received);
        let connection = self.connection.as_mut().expect("nothing is received after the end");
        while connection.is_handshaking() {
            if let (0, Some(first)) = (self.taken, self.partial.first())
                && !matches!(*first, super::HANDSHAKE_RECORD | ALERT_RECORD)
            {
                return Err(not_tls(*first));
            }
            let Some(bytes) = whole_record(&self.partial, SEALED_BYTES_MAX)? else {
                return Ok(HandshakeProgress::NeedMore);
            };
            self.taken += bytes;
            if self.taken > HANDSHAKE_BYTES_MAX {
                return Err(HandshakeError::TooLong { bytes_max: HANDSHAKE_BYTES_MAX });
            }
            let processed = give(connection, &self.partial[..bytes]);
            self.partial.drain(..bytes);
            write_out(connection, out);
            processed.map_err(HandshakeError::Refused)?;
        }
        let connection = self.connection.take().expect("it was there");
        let info = info(&connection, Arc::from(""), ClientPolicy::NONE)
            .map_err(HandshakeError::Refused)?;
        let capture = own_records.then(|| Arc::clone(&self.capture));
        let session = Session::Library(Box::new(LibrarySession { connection, capture }));
        let rest = std::mem::take(&mut self.partial);
        Ok(HandshakeProgress::Done(Box::new(Established { session, info, rest })))
    }
}
