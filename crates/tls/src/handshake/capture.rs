//! Takes the traffic secrets of one handshake, which the library tells nothing but a key log.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::KeyLog;
use zeroize::Zeroize;

const OF_CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const OF_SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// The key log of a single handshake. A log that was asked for (`SSLKEYLOGFILE`) gets all of it
/// too.
#[derive(Debug)]
pub(crate) struct Capture {
    secrets: Mutex<Captured>,
    also: Arc<dyn KeyLog>,
}

#[derive(Default)]
struct Captured {
    client: Option<Vec<u8>>,
    server: Option<Vec<u8>>,
}

impl Capture {
    pub(crate) fn new(also: Arc<dyn KeyLog>) -> Self {
        Self { secrets: Mutex::default(), also }
    }

    /// Takes the secrets out: what the client seals with, and what the server does.
    pub(crate) fn take(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        (secrets.client.take(), secrets.server.take())
    }
}

impl KeyLog for Capture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if self.also.will_log(label) {
            self.also.log(label, client_random, secret);
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        match label {
            OF_CLIENT => secrets.client = Some(secret.to_vec()),
            OF_SERVER => secrets.server = Some(secret.to_vec()),
            _ => {}
        }
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(label, OF_CLIENT | OF_SERVER) || self.also.will_log(label)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        for secret in [&mut self.client, &mut self.server].into_iter().flatten() {
            secret.zeroize();
        }
    }
}

// A log of this must not be a key log.
impl std::fmt::Debug for Captured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Captured").finish_non_exhaustive()
    }
}
