//! Context in which routes and their handlers are built.

use std::sync::Arc;

use gustnado_tasks::BlockingPool;

#[cfg(feature = "tower")]
use crate::tokio_runtime::Tokio;
use gustnado_files::{FileOptions, Folders};
use gustnado_observe::server_stats::ServerStats;

/// Resources that routes and their handlers are built with.
#[derive(Clone)]
pub struct BuildContext {
    pub pool: BlockingPool,
    pub files: FileOptions,
    /// Limit in bytes of a body that a tower service reads, if the settings have a limit other than
    /// the default.
    #[cfg(feature = "tower")]
    pub service_body_bytes: Option<u64>,
    /// The server's counters; `None` without a server.
    pub server: Option<Arc<dyn ServerStats>>,
    #[cfg(feature = "tower")]
    pub tokio: Arc<Tokio>,
    pub folders: Folders,
    /// Serialized field lines that every response of the server has.
    pub common: Arc<[u8]>,
}

impl BuildContext {
    pub fn new(pool: BlockingPool, files: FileOptions) -> Self {
        Self {
            pool,
            files,
            #[cfg(feature = "tower")]
            service_body_bytes: None,
            server: None,
            #[cfg(feature = "tower")]
            tokio: Arc::default(),
            folders: Folders::default(),
            common: Arc::from([]),
        }
    }
}
