//! What a handler gets besides the request, and what it leaves to be sent.
//!
//! A handler writes the answer's head and any small body into the buffer of the turn; what is too
//! large for that is handed back as segments, which the connection sends afterwards in order.

pub use gustnado_tasks::Now;

pub use crate::files::{Rest, Segment};
pub use crate::status_page::{Turn, status_page};
