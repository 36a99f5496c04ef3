//! `WebSocket`s (RFC 6455) over [`Tunnel`](gustnado_web::tunnel::Tunnel)s: by an upgrade in
//! HTTP/1.1, by CONNECT in HTTP/2 (RFC 8441).
//!
//! ```text
//! handshake ─▶ run: the handler's future ── recv, send ──▶ core: frames in, frames out ──▶ tunnel
//!                          │ it waits                         ▲
//!                          └─ what it has sent leaves ────────┘ (senders in other tasks add to it)
//! ```
//!
//! What a handler sends while it does not wait leaves in one send. A socket that waits holds its
//! state and no buffer.
#![forbid(unsafe_code)]

mod carrier;
mod client;
mod core;
mod deflate;
mod endpoint;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod halves;
mod handshake;
mod message;
mod offer;
mod options;
mod outbox;
mod random;
mod run;
mod sender;
mod socket;
mod topic;

pub use client::WebSocketRequest;
pub use endpoint::{WebSocketEndpoint, websocket};
pub use error::{OpenError, SendError, WebSocketError};
pub use gustnado_http::websocket::deflate::DeflateOptions;
pub use gustnado_http::websocket::{CloseCode, MessageKind, Violation};
pub use halves::{RecvResult, WebSocketReceiver};
pub use message::{CloseFrame, MessagePiece, WebSocketMessage};
pub use offer::{WebSocketAcceptor, WebSocketOffer};
pub use options::{Origins, WebSocketOptions};
pub use sender::WebSocketSender;
pub use socket::WebSocket;
pub use topic::{SlowPeer, Subscription, Topic};
