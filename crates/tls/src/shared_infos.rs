//! What handshakes have agreed on, held once for all connections that agree on the same.

use std::sync::{Arc, Mutex, PoisonError};

use crate::handshake::TlsInfo;

/// How many are kept: browsers and other clients of a few sites.
const KEPT_MAX: usize = 32;

/// The last infos that differ.
#[derive(Debug, Default)]
pub(crate) struct SharedInfos(Mutex<Vec<Arc<TlsInfo>>>);

impl SharedInfos {
    /// Returns an info that is equal. A client with a certificate has one of its own.
    pub(crate) fn share(&self, info: TlsInfo) -> Arc<TlsInfo> {
        if !info.client_chain.is_empty() {
            return Arc::new(info);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|known| **known == info) {
            // The ones that are asked for stay in front.
            kept[..=at].rotate_right(1);
            return Arc::clone(&kept[0]);
        }
        let info = Arc::new(info);
        kept.truncate(KEPT_MAX - 1);
        kept.insert(0, Arc::clone(&info));
        info
    }
}
