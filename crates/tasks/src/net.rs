//! Connections and listeners as tasks see them.

pub(crate) mod acceptor;
pub(crate) mod closing;
pub(crate) mod connection;
pub(crate) mod connection_error;
pub(crate) mod connection_id;
pub(crate) mod idleness;
pub(crate) mod listener_handle;
pub(crate) mod progress_timeout;
pub(crate) mod send_step;
pub(crate) mod send_watch;
