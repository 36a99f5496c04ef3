//! What seals and opens the records of an established connection: the own layer, or the library.

use std::fmt;
use std::io::{Read, Write};
use std::mem;
use std::sync::Arc;

use rustls::{Connection, IoState};

use crate::records::{Opened, RecordError, Records, whole_record};
use crate::traffic_secrets::{Capture, extract, seal_alert};

/// What seals and opens the records of an established connection.
pub(crate) enum Session {
    /// The own layer, of which a connection that waits has no allocation of its own.
    Own(Records),
    /// The library's connection.
    Library(Box<LibrarySession>),
    /// Neither: its secrets could not be taken over.
    Broken,
}

/// The library's connection, for all of its life or until its secrets are taken over.
pub(crate) struct LibrarySession {
    pub connection: Connection,
    /// The secrets of a client's handshake. A server's tickets come after it, and only the library
    /// can use them: the own layer takes over with the first content, behind the tickets.
    pub capture: Option<Arc<Capture>>,
}

impl Session {
    /// Opens received bytes, as [`Records::open`].
    ///
    /// # Errors
    /// [`RecordError`].
    pub(crate) fn open(
        &mut self,
        received: &[u8],
        room: &mut [u8],
        now_ms: u64,
    ) -> Result<Opened, RecordError> {
        match self {
            Self::Own(records) => records.open(received, room, now_ms),
            Self::Library(library) => {
                let opened = open_by_library(&mut library.connection, received, room)?;
                if library.capture.is_some() && opened.content > 0 {
                    self.take_over()?;
                }
                Ok(opened)
            }
            Self::Broken => Err(NOT_TAKEN_OVER),
        }
    }

    /// Returns whether the library seals and opens.
    pub(crate) fn is_of_library(&self) -> bool {
        matches!(self, Self::Library(_))
    }

    /// Returns records that the library owes the peer for what was opened.
    pub(crate) fn owed(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        if let Self::Library(library) = self {
            write_out(&mut library.connection, &mut records);
        }
        records
    }

    /// Seals content behind what `out` holds.
    ///
    /// # Errors
    /// [`RecordError`].
    pub(crate) fn seal(
        &mut self,
        content: &[u8],
        record_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        match self {
            Self::Own(records) => records.seal(content, record_bytes, out),
            Self::Library(library) => {
                let connection = &mut library.connection;
                // Its buffer has a limit: what it takes is written out before the next.
                for content in content.chunks(record_bytes) {
                    connection.writer().write_all(content).expect("a record fits its buffer");
                    write_out(connection, out);
                }
                Ok(())
            }
            Self::Broken => Err(NOT_TAKEN_OVER),
        }
    }

    /// Seals the alert of an error, where it has one. Nothing else can be sealed afterwards.
    ///
    /// # Errors
    /// [`RecordError`].
    pub(crate) fn alert(
        &mut self,
        error: RecordError,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        match self {
            Self::Own(records) => records.alert(error, out),
            Self::Library(library) => {
                let before = out.len();
                write_out(&mut library.connection, out);
                // It tells what it has found itself. A record whose type or length is wrong never
                // gets to it.
                if out.len() == before
                    && let Self::Library(library) = mem::replace(self, Self::Broken)
                {
                    seal_alert(library.connection, error, out);
                }
                Ok(())
            }
            Self::Broken => Ok(()),
        }
    }

    /// Seals the orderly end of this direction.
    ///
    /// # Errors
    /// [`RecordError`]: a key that is used up cannot say it. The connection ends all the same.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> Result<(), RecordError> {
        match self {
            Self::Own(records) => records.close(out),
            Self::Library(library) => {
                library.connection.send_close_notify();
                write_out(&mut library.connection, out);
                Ok(())
            }
            Self::Broken => Ok(()),
        }
    }

    /// Goes on with the own layer.
    fn take_over(&mut self) -> Result<(), RecordError> {
        // What the library has to send, it has sealed already.
        if matches!(self, Self::Library(library) if library.connection.wants_write()) {
            return Ok(());
        }
        if let Self::Library(library) = mem::replace(self, Self::Broken) {
            let LibrarySession { connection, capture } = *library;
            let capture = capture.ok_or(NOT_TAKEN_OVER)?;
            let records = extract(connection, &capture).map_err(|_| NOT_TAKEN_OVER)?;
            *self = Self::Own(records);
        }
        Ok(())
    }
}

const NOT_TAKEN_OVER: RecordError = RecordError::Malformed("secret");

fn open_by_library(
    connection: &mut Connection,
    received: &[u8],
    room: &mut [u8],
) -> Result<Opened, RecordError> {
    let mut opened = Opened::default();
    while !opened.is_end {
        let rest = &received[opened.taken..];
        let Some(bytes) = whole_record(rest, room.len() - opened.content)? else { break };
        opened.taken += bytes;
        let state = give(connection, &rest[..bytes]).map_err(|error| match error {
            rustls::Error::AlertReceived(alert) => RecordError::Alert(u8::from(alert)),
            rustls::Error::DecryptError => RecordError::BadMac,
            _ => RecordError::Malformed("record"),
        })?;
        let content = state.plaintext_bytes_to_read();
        let room = &mut room[opened.content..opened.content + content];
        connection.reader().read_exact(room).expect("it is there");
        opened.content += content;
        opened.is_end = state.peer_has_closed();
    }
    Ok(opened)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own",
            Self::Library(_) => "Library",
            Self::Broken => "Broken",
        })
    }
}

/// Gives a whole record to the library, which takes a few kilobytes at a time.
pub(crate) fn give(
    connection: &mut Connection,
    mut record: &[u8],
) -> Result<IoState, rustls::Error> {
    loop {
        connection.read_tls(&mut record).expect("memory does not fail");
        let state = connection.process_new_packets()?;
        if record.is_empty() {
            return Ok(state);
        }
    }
}

pub(crate) fn write_out(connection: &mut Connection, out: &mut Vec<u8>) {
    while connection.wants_write() {
        connection.write_tls(out).expect("memory does not fail");
    }
}
