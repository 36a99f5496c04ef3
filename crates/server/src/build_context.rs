//! What routes and their handlers are made ready with.

use std::sync::Arc;

use gustnado_tasks::BlockingPool;

use crate::server_stats::ServerStats;
#[cfg(feature = "tower")]
use crate::tokio_runtime::Tokio;
use gustnado_files::{FileOptions, Folders};

/// What routes are made ready with.
#[derive(Clone)]
pub(crate) struct BuildContext {
    pub(crate) pool: BlockingPool,
    pub(crate) files: FileOptions,
    /// How large a body may be that a service of tower reads, where the settings have a limit of
    /// their own: their default is not asked for.
    #[cfg(feature = "tower")]
    pub(crate) service_body_bytes: Option<u64>,
    /// The server's counters; none where there is no server.
    pub(crate) server: Option<Arc<dyn ServerStats>>,
    #[cfg(feature = "tower")]
    pub(crate) tokio: Arc<Tokio>,
    pub(crate) folders: Folders,
    /// Ready field lines that every answer of the server has anyway.
    pub(crate) common: Arc<[u8]>,
}

impl BuildContext {
    pub(crate) fn new(pool: BlockingPool, files: FileOptions) -> Self {
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
