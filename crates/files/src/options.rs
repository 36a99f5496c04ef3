//! The options that a folder is opened with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gustnado_compress::CompressionCounts;
use gustnado_config::{Listing, RouteSettings};

use super::trace::LookupTrace;

/// Options of a folder.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// What is served, and how.
    pub settings: RouteSettings,
    /// Respond with a listing for a folder without an index where the setting is `auto`.
    pub lists_on_auto: bool,
    /// Bytes of memory for cached files, of all workers together; 0 for none.
    pub cache_bytes: u64,
    /// Number of threads that call `Files::respond`, at least 1. Each gets an equal share of the
    /// bounds.
    pub workers: usize,
    /// The most threads that wait for the folder's disk, so that no worker does; 0 lets the workers
    /// wait. They are started when a file is not in memory, and end when idle.
    pub threads: usize,
    /// Longest time that a request waits for the disk.
    pub wait: Duration,
    /// What is compressed and sent compressed is counted here.
    pub counts: Arc<CompressionCounts>,
    /// Where the steps of lookups are noted; `None`, as on a server that serves, is nowhere.
    pub trace: Option<LookupTrace>,
    /// Patterns of paths below the folder's own that are not served from it, so that no archive and
    /// no listing has what lies there, and no other path leads to it: see
    /// [`gustnado_config::path_matches`].
    pub elsewhere: Vec<String>,
    /// Archives of folders that are made at once, on the whole server.
    pub archives_max: u64,
    /// A folder on whose disk an archive may keep what does not stay in memory.
    pub spool: PathBuf,
}

impl FileOptions {
    /// Returns whether a folder without an index is listed.
    pub fn lists(&self) -> bool {
        match self.settings.listing {
            Listing::Auto => self.lists_on_auto,
            listing => listing == Listing::On,
        }
    }
}

/// One worker, which waits for the disk itself: no cache, no listing, nothing hidden.
impl Default for FileOptions {
    fn default() -> Self {
        Self {
            settings: RouteSettings::default(),
            lists_on_auto: false,
            cache_bytes: 0,
            workers: 1,
            threads: 0,
            wait: Duration::MAX,
            counts: Arc::default(),
            trace: None,
            elsewhere: Vec::new(),
            archives_max: 4,
            spool: std::env::temp_dir(),
        }
    }
}
