//! What routes and their handlers are made ready with.

use std::sync::Arc;

use gustnado_tasks::BlockingPool;

#[cfg(feature = "tower")]
use crate::tokio_runtime::Tokio;
use gustnado_files::{FileOptions, Folders};
use gustnado_observe::server_stats::ServerStats;

/// What routes are made ready with.
#[derive(Clone)]
pub struct BuildContext {
    pub pool: BlockingPool,
    pub files: FileOptions,
    /// How large a body may be that a service of tower reads, where the settings have a limit of
    /// their own: their default is not asked for.
    #[cfg(feature = "tower")]
    pub service_body_bytes: Option<u64>,
    /// The server's counters; none where there is no server.
    pub server: Option<Arc<dyn ServerStats>>,
    #[cfg(feature = "tower")]
    pub tokio: Arc<Tokio>,
    pub folders: Folders,
    /// Ready field lines that every answer of the server has anyway.
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
