//! `WebSocket`s of Python programs.
//!
//! The task of a connection receives messages and puts them into a [`SocketLink`]. Python takes
//! them out of it, on the same thread, and sends through it.

mod futures;
mod held;
mod link;
mod native;
mod pump;
mod receive;
mod run;
mod running;
mod starter;
mod waiter;

pub(crate) use link::{CloseOrigin, SocketEnd, SocketLink};
pub(crate) use native::{PyWebSocket, SocketRequest};
pub(crate) use pump::{LinkEnd, Pump};
pub(crate) use receive::{MessageAwaitable, ReceiveForm};
pub(crate) use run::SocketRun;
pub(crate) use running::RunningCalls;
pub(crate) use starter::SocketStarter;
