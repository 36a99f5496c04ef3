//! A piece of a response's content.

use std::sync::Arc;

use gustnado_tasks::BlockingPool;

use super::open_file::OpenFile;

/// One piece of a response's content.
#[derive(Debug)]
pub enum Segment {
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// A part of a regular file, to be sent without reading it into memory. A file that is shorter
    /// by now must cut the connection: the promised length cannot be kept.
    File {
        /// Open for reading, perhaps shared with other responses: its position is not to be used.
        file: Arc<OpenFile>,
        /// First byte to send.
        offset: u64,
        /// Bytes to send, at least 1.
        len: u64,
        /// Reads it into memory before it is sent, where it may lie on a disk that is slow.
        cold: Option<BlockingPool>,
    },
}
