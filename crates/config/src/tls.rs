//! Declaration of the settings of TLS.

use super::fields::{choice, duration, file_path, number, switch};
use super::numbers::HOUR;
use super::tunable::{SettingGroup, Tunable};

/// The oldest version of TLS that clients may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersionMin {
    /// TLS 1.2 (RFC 5246), with AEAD ciphers and forward secrecy alone.
    #[default]
    V12,
    /// TLS 1.3 (RFC 8446).
    V13,
}

impl TlsVersionMin {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::V12, Self::V13];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 2] = ["1.2", "1.3"];

    /// Returns what a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What seals and opens the records of TLS after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRecords {
    /// The server's own layer, which holds no buffer for a connection that waits.
    #[default]
    Own,
    /// The library that does the handshake.
    Rustls,
}

impl TlsRecords {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::Own, Self::Rustls];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 2] = ["own", "rustls"];

    /// Returns what a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Whether clients have to present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsClientAuth {
    /// None is asked for.
    #[default]
    None,
    /// One is asked for, and checked if it comes.
    Optional,
    /// A client without one is refused.
    Required,
}

impl TlsClientAuth {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::None, Self::Optional, Self::Required];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 3] = ["none", "optional", "required"];

    /// Returns what a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

pub(super) const CERT: Tunable = Tunable {
    name: "tls-cert",
    group: SettingGroup::Tls,
    default: "",
    doc: "The server's certificate in PEM, each issuer behind it; listeners then speak TLS",
    field: file_path!(tls_cert),
};

pub(super) const KEY: Tunable = Tunable {
    name: "tls-key",
    group: SettingGroup::Tls,
    default: "",
    doc: "Its private key in PEM; without one it is in the file of the certificate",
    field: file_path!(tls_key),
};

pub(super) const VERSION_MIN: Tunable = Tunable {
    name: "tls-version-min",
    group: SettingGroup::Tls,
    default: "1.2",
    doc: "The oldest version of TLS that clients may speak",
    field: choice!(tls_version_min, TlsVersionMin),
};

pub(super) const HANDSHAKE_TIMEOUT: Tunable = Tunable {
    name: "tls-handshake-timeout",
    group: SettingGroup::Tls,
    default: "10s",
    doc: "Time for a handshake, from the connection's start",
    field: duration!(tls_handshake_timeout, 100..=HOUR),
};

pub(super) const RECORDS: Tunable = Tunable {
    name: "tls-records",
    group: SettingGroup::Tls,
    default: "own",
    doc: "What seals records after the handshake: the server's own layer, or the library",
    field: choice!(tls_records, TlsRecords),
};

pub(super) const STRICT_NAMES: Tunable = Tunable {
    name: "tls-strict-names",
    group: SettingGroup::Tls,
    default: "false",
    doc: "Refuse clients that ask for no name, or for one that no certificate has",
    field: switch!(tls_strict_names),
};

pub(super) const CLIENT_AUTH: Tunable = Tunable {
    name: "tls-client-auth",
    group: SettingGroup::Tls,
    default: "none",
    doc: "Whether clients have to present a certificate",
    field: choice!(tls_client_auth, TlsClientAuth),
};

pub(super) const CLIENT_CA: Tunable = Tunable {
    name: "tls-client-ca",
    group: SettingGroup::Tls,
    default: "",
    doc: "The authorities that may have issued clients' certificates, in PEM",
    field: file_path!(tls_client_ca),
};

pub(super) const CLIENT_CRL: Tunable = Tunable {
    name: "tls-client-crl",
    group: SettingGroup::Tls,
    default: "",
    doc: "Lists of clients' certificates that are revoked, in PEM, one of each authority",
    field: file_path!(tls_client_crl),
};

pub(super) const TICKET_KEYS: Tunable = Tunable {
    name: "tls-ticket-keys",
    group: SettingGroup::Tls,
    default: "",
    doc: "Keys of session tickets that servers share: a line of 64 hexadecimal digits each",
    field: file_path!(tls_ticket_keys),
};

pub(super) const HANDSHAKES: Tunable = Tunable {
    name: "tls-handshakes",
    group: SettingGroup::Tls,
    default: "4096",
    doc: "Handshakes under way; beyond it, the oldest one ends",
    field: number!(tls_handshakes, Count, 1..=1_000_000),
};

pub(super) const HTTPS_REDIRECT: Tunable = Tunable {
    name: "https-redirect",
    group: SettingGroup::Tls,
    default: "false",
    doc: "Answer plain HTTP with 308 to the same URL of https",
    field: switch!(https_redirect),
};

pub(super) const HSTS: Tunable = Tunable {
    name: "hsts",
    group: SettingGroup::Tls,
    default: "off",
    doc: "How long browsers use https only (Strict-Transport-Security), such as 365d",
    field: duration!(hsts, 1_000..=YEARS, or "off"),
};

/// Ten years, in milliseconds.
const YEARS: u64 = 10 * 366 * 24 * HOUR;
