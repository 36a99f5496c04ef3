//! What proves to a certificate authority that a name is this server's (RFC 8555 §8): answers to
//! its challenges, in a folder that several servers may share.
//!
//! | file | what is in it is the answer to |
//! | --- | --- |
//! | `http-01.TOKEN` | a request for `/.well-known/acme-challenge/TOKEN` (RFC 8555 §8.3) |
//! | `tls-alpn-01.NAME` | a hello for this name with `acme-tls/1` alone (RFC 8737) |

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ClientHello;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::files::read_file;
use crate::stamps::{FileStamp, stamp};

/// The protocol by which an authority asks (RFC 8737 §6.2). No other is spoken on its connection.
pub(crate) const ALPN: &[u8] = b"acme-tls/1";
/// Challenges under way, of all certificates together; and bytes of each.
const CHALLENGES_MAX: usize = 256;
const BYTES_MAX: u64 = 16 << 10;

/// Answers to the challenges of certificate authorities. One serves all listeners and workers.
pub struct AcmeChallenges {
    folder: PathBuf,
    current: RwLock<Answers>,
}

#[derive(Default)]
struct Answers {
    /// The folder as it was before it was read.
    stamp: Option<FileStamp>,
    of_tokens: HashMap<String, Vec<u8>>,
    of_names: HashMap<String, Arc<ServerConfig>>,
}

impl AcmeChallenges {
    /// - `folder`: where the answers are, in a file each. It may be missing.
    pub fn new(folder: PathBuf) -> Self {
        let all = Self { folder, current: RwLock::default() };
        all.refresh();
        all
    }

    /// Returns where the answers are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the answers again if there are others.
    pub fn refresh(&self) {
        let stamp = stamp(&self.folder);
        if self.current.read().unwrap_or_else(PoisonError::into_inner).stamp == stamp {
            return;
        }
        let answers = Answers { stamp, ..self.read() };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = answers;
    }

    /// Returns the name of the file with the answer to a token.
    pub fn token_file(token: &str) -> String {
        format!("http-01.{token}")
    }

    /// Returns the name of the file with the certificate for a name, which is in lower case.
    pub fn name_file(name: &str) -> String {
        format!("tls-alpn-01.{name}")
    }

    /// Returns the answer to a token.
    pub fn of_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        let token = std::str::from_utf8(token).ok()?;
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.of_tokens.get(token).cloned()
    }

    /// Returns what an authority is shown that asks for a name.
    pub(crate) fn of_hello(&self, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
        if !hello.alpn()?.eq([ALPN]) {
            return None;
        }
        let name = hello.server_name()?.to_ascii_lowercase();
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.of_names.get(&name).map(Arc::clone)
    }

    fn read(&self) -> Answers {
        let mut answers = Answers::default();
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for file in files.take(CHALLENGES_MAX) {
            let name = file.file_name();
            let Some((kind, of)) = name.to_str().and_then(|name| name.split_once('.')) else {
                continue;
            };
            if file.metadata().map_or(u64::MAX, |meta| meta.len()) > BYTES_MAX {
                continue;
            }
            // One that was just removed is no longer asked for.
            let Ok(bytes) = read_file(&file.path()) else { continue };
            match kind {
                "http-01" => _ = answers.of_tokens.insert(of.to_owned(), bytes.to_vec()),
                "tls-alpn-01" => {
                    let config = config(&bytes).map(|config| (of.to_owned(), config));
                    answers.of_names.extend(config);
                }
                _ => {}
            }
        }
        answers
    }
}

/// Returns the configuration that shows a certificate to an authority.
fn config(pem: &[u8]) -> Option<Arc<ServerConfig>> {
    let certificate = CertificateDer::from_pem_slice(pem).ok()?;
    let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
    let provider = Arc::new(crate::crypto::provider());
    let key = provider.key_provider.load_private_key(key).ok()?;
    // (The library would refuse the critical extension that the certificate is for.)
    let resolver = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![ALPN.to_vec()];
    Some(Arc::new(config))
}

// Keys are in no log.
impl fmt::Debug for AcmeChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeChallenges").field("folder", &self.folder).finish_non_exhaustive()
    }
}
