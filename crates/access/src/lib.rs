//! What routes ask of requests besides files: addresses, rates, passwords, signatures, origins; and
//! rules of header fields and of paths.
//!
//! Rules without I/O: a [`Gate`] takes what a request says, and the time, and returns a verdict.
//! The crate `web` puts gates in front of endpoints, and the loops of connections ask them before
//! a body is read.
//!
//! A part of `gustnado`, without a stable API of its own.
#![forbid(unsafe_code)]
#![doc(hidden)]

mod addresses;
mod checks;
mod clients;
mod cors;
mod counts;
mod error;
mod gate;
mod hash;
mod header_rules;
mod lines;
mod passwords;
mod paths;
mod places;
mod preset;
mod response;
mod rewrites;
mod signature;
mod verified;

gustnado_tasks::debug_as_display!(AccessError);

pub use checks::{CheckFollower, CheckOutcome, CheckTicket, JoinedCheck};
pub use counts::{AccessCounts, Refusal};
pub use error::AccessError;
pub use gate::{Gate, GateRequest, GateVerdict};
pub use hash::{HashKind, hash_password};
pub use header_rules::HeaderRules;
pub use passwords::Passwords;
pub use places::{CheckPlace, CheckPlaces};
pub use preset::preset_headers;
pub use response::GateResponse;
pub use rewrites::Rewrites;
pub use signature::{UrlKeys, signed_url, signed_url_for};
