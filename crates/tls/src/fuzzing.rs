//! What the fuzz targets call: bytes of a client, of a connection, and of files.
#![doc(hidden)]

use std::path::Path;

use rustls::server::ClientHello;

use crate::certificate_summary::CertificateSummary;
use crate::handshake::{ChooseConfig, Chosen, Handshake, HandshakeProgress};
use crate::identity::SiteIdentity;
use crate::records::{Cipher, DirectionSecret, KeyAndIv, Records, Secrets, TlsVersion};
use crate::tickets::TicketKeys;

/// Knows no site, and looks at what sites are chosen by.
struct NoSite;

impl ChooseConfig for NoSite {
    fn choose(&self, hello: &ClientHello<'_>) -> Option<Chosen> {
        _ = hello.server_name().map(str::to_ascii_lowercase);
        _ = hello.alpn().map(Iterator::count);
        None
    }
}

/// Takes the bytes of a client that begins, in pieces of `step` bytes. Returns whether it was
/// refused; the alert, if there is one, is whole.
///
/// # Panics
/// A handshake of no site is over, or an alert is none.
pub fn hello(bytes: &[u8], step: usize) -> bool {
    let mut handshake = Handshake::default();
    for piece in bytes.chunks(step.max(1)) {
        let mut out = Vec::new();
        handshake.push(piece);
        match handshake.advance(&NoSite, true, &mut out) {
            Ok(HandshakeProgress::NeedMore) => assert!(out.is_empty(), "nothing to say yet"),
            Ok(HandshakeProgress::Done(_)) => panic!("there is no site"),
            Err(_) => {
                assert!(out.is_empty() || matches!(out[..], [21, 3, 3, 0, 2, 2, _]), "{out:?}");
                return true;
            }
        }
    }
    false
}

/// Opens bytes as they come, in pieces of `step` bytes; then the same behind records that are
/// sealed. What is opened has to be what was sealed, or begin like it.
///
/// # Panics
/// Something was opened that nobody has sealed.
pub fn records(bytes: &[u8], step: usize) {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Chacha20Poly1305] {
        for version in [TlsVersion::V13, TlsVersion::V12] {
            let (mut one, mut other) = (side(cipher, version, 1), side(cipher, version, 2));
            let mut sealed = Vec::new();
            one.seal(bytes, step.clamp(1, 1 << 14), &mut sealed).expect("the key is fresh");
            sealed.extend_from_slice(bytes);
            let mut content = Vec::new();
            let mut pending: Vec<u8> = Vec::new();
            for piece in sealed.chunks(step.max(1)) {
                pending.extend_from_slice(piece);
                let mut room = vec![0; pending.len()];
                let Ok(opened) = other.open(&pending, &mut room, 0) else { break };
                content.extend_from_slice(&room[..opened.content]);
                pending.drain(..opened.taken);
                if opened.is_end {
                    break;
                }
            }
            // What an error comes with is not used.
            assert!(bytes.starts_with(&content), "{cipher:?} {version:?}");
        }
    }
}

/// One of two ends.
fn side(cipher: Cipher, version: TlsVersion, own: u8) -> Records {
    let secret_bytes = if cipher == Cipher::Aes256Gcm { 48 } else { 32 };
    let key_bytes = if cipher == Cipher::Aes128Gcm { 16 } else { 32 };
    let direction = |fill: u8| match version {
        TlsVersion::V13 => DirectionSecret::V13(vec![fill; secret_bytes], 0, None),
        TlsVersion::V12 => {
            DirectionSecret::V12(KeyAndIv { key: vec![fill; key_bytes], iv: [fill; 12] }, 0)
        }
    };
    let (read, write) = (direction(3 - own), direction(own));
    let secrets = Secrets { cipher, read, write, is_client: own == 2 };
    Records::new(&secrets).expect("the lengths fit")
}

/// Reads a file as certificates with a key, as authorities, and as keys of tickets.
pub fn files(path: &Path, now_s: i64) {
    let provider = crate::crypto::provider();
    _ = SiteIdentity::read(path, path, &provider, now_s).map_err(|error| error.to_string());
    _ = CertificateSummary::read_chain(path).map_err(|error| error.to_string());
    _ = crate::clients::authorities(path, |_| ()).map_err(|error| error.to_string());
    _ = TicketKeys::read(path).map_err(|error| error.to_string());
}
