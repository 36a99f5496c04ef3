//! A piece of a response's content.

use std::sync::Arc;

use gustnado_tasks::BlockingPool;

use super::open_file::OpenFile;

/// One piece of a response's content.
#[derive(Debug)]
pub enum Segment {
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// A part of a regular file, sent without reading it into memory. If the file is shorter by
    /// now, the connection must be cut: the promised length cannot be kept.
    File {
        /// The open file, possibly shared with other responses, so its position must not be used.
        file: Arc<OpenFile>,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at least 1.
        len: u64,
        /// Reads it into memory before it is sent, if it may not be there.
        cold: Option<BlockingPool>,
    },
}
