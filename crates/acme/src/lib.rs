//! Certificates from an authority that speaks ACME (RFC 8555): obtained, kept in a folder, renewed.
//!
//! One thread does all of it, in one task: [`start`]. It leaves a file with the certificate and its
//! key in the folder, which the server reads as any other, and again when it changes; and answers
//! to challenges, which the server gives. Several servers may share a folder: one file is locked
//! while one of them is at it.
//!
//! | in the folder | |
//! | --- | --- |
//! | `certificate.pem` | Key, certificate and issuers; at first one that is signed by itself. |
//! | `account-HOST.json` | The account with an authority. |
//! | `state.json` | When the next attempt is due, and what the last one has failed with. |
//! | `challenges/` | Answers to the challenges that are under way. |
//! | `lock` | Locked during an attempt. |
//!
//! What lives here: orders, accounts, the folder, and when to renew. What does not: the protocol,
//! which is instant-acme's; HTTP, which is the client's; and TLS. It uses the client and tls.
#![forbid(unsafe_code)]

mod account;
mod attempt;
mod authority;
mod certificate;
mod error;
mod keeper;
mod order;
mod schedule;
mod settings;
mod status;
mod store;

pub use error::AcmeError;
pub use keeper::{AcmeObserver, CertificateKeeper, KeeperHandle, start};
pub use settings::{AcmeSettings, ChallengeChoice, ExternalAccount, is_name};
pub use status::{AcmeStatus, dns_records};
pub use store::{CertificateStore, CertificateStoreError};
