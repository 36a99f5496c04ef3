//! The one interface that a protocol's loop has to its connection.
//!
//! A [`Socket`] is a connection that may have a pace. Operations that do not depend on a pace keep
//! their name; the pace itself is a [`Pacer`], which is allocated only if something is paced.
//!
//! | to | there is |
//! | --- | --- |
//! | receive | [`Socket::poll_recv`], [`Socket::poll_recv_request`], [`Socket::receive`] |
//! | send in the loop | [`Socket::start_send`], [`Socket::poll_sent`], [`Socket::take_unsent`] |
//! | send and wait | [`Socket::send`], [`Socket::send_at_once`], [`Socket::send_file`] |
//! | end | [`Socket::shutdown_write`], [`Socket::linger`], [`Socket::reset_on_drop`]; drop it |
//! | keep time | [`Socket::set_deadline`], [`Socket::now`], [`Socket::poll_deadline`] |
//! | know the peer | [`Socket::peer`], [`Socket::local`] |
//! | give it to another protocol | [`Socket::take`] |
//!
//! What lives here: sockets, and the arithmetic of their pace. What does not: the choice of a
//! connection's pace, and any protocol. It uses tasks.
#![forbid(unsafe_code)]

mod pacer;
mod rates;
mod socket;

pub use pacer::Pacer;
pub use rates::{Buckets, Flows, ResponsePace};
pub use socket::{MoreTime, SendFailed, Socket};
