//! Context in which routes and their handlers are built.

use std::sync::Arc;

use gustnado_config::{BodyPolicy, Config, StatusRange, WebSocketSettings};
use gustnado_http::fields::Fields;
use gustnado_tasks::BlockingPool;

use crate::encoders::IdleEncoders;
use crate::error_page::ErrorPage;
use crate::handler::{Handler, UploadsFn};
use crate::handler_limits::LimitContext;
use crate::server_context::ServerContext;
use crate::spool::Spool;
#[cfg(feature = "tower")]
use crate::tokio_runtime::Tokio;
use gustnado_files::{FileOptions, Folders};
use gustnado_observe::server_stats::ServerStats;

/// Resources that routes and their handlers are built with.
#[derive(Clone)]
pub struct BuildContext {
    pub pool: BlockingPool,
    /// What jobs of the pool compress responses with.
    pub encoders: IdleEncoders,
    /// The limits of handlers.
    pub limits: LimitContext,
    pub files: FileOptions,
    /// Where whole bodies are kept, if their route says nothing else.
    pub body_policy: BodyPolicy,
    /// The disk that they may take.
    pub spool: Arc<Spool>,
    /// What `WebSocket`s keep to, if their endpoint says nothing else.
    pub websockets: WebSocketSettings,
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
    /// Fields of the server that its routes add, as some of them have others in their place.
    /// Responses that no route makes have them as well.
    pub overridden: Arc<Fields>,
    /// Pages about the server that its settings want, by their paths. They stay when routes are
    /// replaced.
    pub pages: Vec<(String, Handler)>,
    /// Pages for errors, where a site has none of its own. They stay when routes are replaced.
    pub error_pages: Arc<[(StatusRange, ErrorPage)]>,
    /// Makes the handler of a folder that takes files; `None` takes none.
    pub uploads: Option<UploadsFn>,
}

impl BuildContext {
    /// Returns what handlers may know.
    pub fn server_context(&self) -> ServerContext {
        ServerContext { websockets: self.websockets, server: self.server.clone() }
    }

    pub fn new(pool: BlockingPool, limits: LimitContext, files: FileOptions) -> Self {
        Self {
            pool,
            encoders: IdleEncoders::default(),
            limits,
            files,
            body_policy: BodyPolicy::Spool,
            spool: Arc::default(),
            websockets: WebSocketSettings::of(&Config::default()),
            #[cfg(feature = "tower")]
            service_body_bytes: None,
            server: None,
            #[cfg(feature = "tower")]
            tokio: Arc::default(),
            folders: Folders::default(),
            common: Arc::from([]),
            overridden: Arc::default(),
            pages: Vec::new(),
            error_pages: Arc::default(),
            uploads: None,
        }
    }
}
