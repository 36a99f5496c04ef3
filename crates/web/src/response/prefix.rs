//! First bytes of responses, prepared once a second.

use gustnado_http::response_writer::Opening;

use super::ContentTypeId;

/// First bytes of responses, and the second that they are valid for.
#[derive(Debug)]
pub struct ResponsePrefix {
    pub unix_secs: u64,
    pub opening: Opening,
    /// The same up to the length of the content, for each frequent type.
    pub by_type: [Vec<u8>; ContentTypeId::COUNT],
}

impl ResponsePrefix {
    pub fn new(unix_secs: u64, lines: &[u8]) -> Self {
        let opening = Opening::new(lines);
        let by_type = ContentTypeId::ALL.map(|kind| {
            let fields = format!("Content-Type: {}\r\nContent-Length: ", kind.name());
            [opening.of_ok(), fields.as_bytes()].concat()
        });
        Self { unix_secs, opening, by_type }
    }
}

impl Default for ResponsePrefix {
    /// Returns one that is valid for no second.
    fn default() -> Self {
        Self::new(u64::MAX, b"")
    }
}
