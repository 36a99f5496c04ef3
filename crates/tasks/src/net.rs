//! Connections and listeners as tasks see them.

pub(crate) mod acceptor;
pub(crate) mod closing;
pub(crate) mod link;
pub(crate) mod link_id;
pub(crate) mod listening;
pub(crate) mod patience;
pub(crate) mod send_watch;
