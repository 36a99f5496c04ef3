//! The one interface that a protocol's loop has to its connection.
//!
//! A [`Socket`] is a connection that may have a pace, and may be sealed by TLS. Operations that
//! depend on neither keep their name; the pace itself is a [`Pacer`]. Both are allocated only where
//! there is one.
//!
//! | to | there is |
//! | --- | --- |
//! | receive | [`Socket::poll_recv`], [`Socket::poll_recv_request`], [`Socket::receive`] |
//! | send in the loop | [`Socket::start_send`], [`Socket::poll_sent`], [`Socket::take_unsent`] |
//! | send and wait | [`Socket::send`], [`Socket::send_at_once`], [`Socket::send_file`] |
//! | end | [`Socket::shutdown_write`], [`Socket::linger`], [`Socket::reset_on_drop`]; drop it |
//! | keep time | [`Socket::set_deadline`], [`Socket::now`], [`Socket::poll_deadline`] |
//! | know the peer | [`Socket::peer`], [`Socket::local`] |
//! | begin TLS | [`Socket::accept_tls`], [`Socket::connect_tls`] |
//! | give it to another protocol | [`Socket::take`] |
//!
//! TLS is in two parts, neither of which does I/O. The handshake (`handshake`) is rustls's. It
//! leaves secrets behind, and the records of the connection (`records`) are sealed and opened with
//! them here, in the worker's buffers: a connection that waits holds its secrets and nothing else.
//!
//! What lives here: sockets, the arithmetic of their pace, and TLS. What does not: the choice of a
//! connection's pace or certificate, and any protocol above. It uses tasks.
#![forbid(unsafe_code)]

#[cfg(feature = "tls")]
mod acceptor;
#[cfg(feature = "tls")]
mod batch;
#[cfg(feature = "tls")]
mod certificate_summary;
#[cfg(feature = "tls")]
mod challenges;
mod client_policy;
#[cfg(feature = "tls")]
mod clients;
#[cfg(feature = "tls")]
mod connector;
#[cfg(feature = "tls")]
mod crypto;
#[cfg(feature = "tls")]
mod files;
#[cfg(all(feature = "tls", fuzzing))]
pub mod fuzzing;
#[cfg(feature = "tls")]
mod handshake;
mod handshake_failure;
#[cfg(feature = "tls")]
mod identity;
#[cfg(feature = "tls")]
mod in_flight;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod pacer;
mod rates;
#[cfg(feature = "tls")]
mod records;
#[cfg(feature = "tls")]
mod session;
#[cfg(feature = "tls")]
mod settings;
#[cfg(feature = "tls")]
mod shared_infos;
#[cfg(feature = "tls")]
mod sites;
mod socket;
#[cfg(feature = "tls")]
mod stamps;
#[cfg(feature = "tls")]
mod tickets;
#[cfg(feature = "tls")]
mod tls_end;
mod tls_property;
#[cfg(feature = "tls")]
mod traffic_secrets;

#[cfg(feature = "tls")]
pub use acceptor::{AcceptError, TlsAcceptor};
#[cfg(feature = "tls")]
pub use certificate_summary::CertificateSummary;
#[cfg(feature = "tls")]
pub use challenges::AcmeChallenges;
pub use client_policy::ClientPolicy;
#[cfg(feature = "tls")]
pub use clients::{ClientSettings, ClientsError};
#[cfg(feature = "tls")]
pub use connector::{ConnectTlsError, ConnectorError, ConnectorSettings, TlsConnector, Trust};
#[cfg(feature = "tls")]
pub use files::UnreadableFile;
#[cfg(feature = "tls")]
pub use handshake::{HandshakeError, TlsInfo};
pub use handshake_failure::{HandshakeFailure, HandshakeRefusal};
#[cfg(feature = "tls")]
pub use identity::{IdentityError, SiteIdentity, certificate_names, certificates_in};
#[cfg(not(feature = "tls"))]
pub use no_tls::{AcceptError, AcmeChallenges, TlsAcceptor, TlsInfo};
pub use pacer::{BodyPacer, Grant, Pacer, RoutePacer};
pub use rates::{Buckets, Flows, ResponsePace};
#[cfg(feature = "tls")]
pub use records::{RecordError, TlsVersion};
#[cfg(feature = "tls")]
pub use settings::{TlsSettings, TlsSettingsError, TlsSite};
pub use socket::{MoreTime, SendFailed, Socket};
#[cfg(feature = "tls")]
pub use tickets::{TicketKeys, TicketKeysError};
#[cfg(feature = "tls")]
pub use tls_end::{TlsEnd, TlsEndError};
pub use tls_property::TlsProperty;
