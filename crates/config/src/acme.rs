//! Declaration of the settings of certificates from an authority (ACME).

use super::fields::{choice, file_path, list};
use super::tunable::{Field, SettingGroup, Tunable};

/// How the server proves to an authority that names are its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcmeChallenge {
    /// http-01 if a listener speaks plain HTTP, else tls-alpn-01; after a failure, the other one.
    #[default]
    Auto,
    /// A request in plain HTTP, which the authority sends to port 80 (RFC 8555 §8.3).
    Http01,
    /// A handshake, which the authority begins on port 443 (RFC 8737).
    TlsAlpn01,
    /// A record in the names' domain, which is made once.
    DnsPersist01,
}

impl AcmeChallenge {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Http01, Self::TlsAlpn01, Self::DnsPersist01];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 4] = ["auto", "http-01", "tls-alpn-01", "dns-persist-01"];

    /// Returns what a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Makes a [`Field::Text`].
macro_rules! text {
    ($field:ident, $what:literal, $allowed:ident) => {
        Field::Text {
            what: $what,
            allowed: $allowed,
            get: |config| &config.$field,
            set: |config, text| text.clone_into(&mut config.$field),
        }
    };
}

pub(super) const NAMES: Tunable = Tunable {
    name: "acme",
    group: SettingGroup::Acme,
    default: "",
    doc: "Names to obtain a certificate for, and to renew it; the listeners speak TLS",
    field: list!(acme, "a host name with a dot such as example.org, or an IP address", is_name),
};

pub(super) const EMAIL: Tunable = Tunable {
    name: "acme-email",
    group: SettingGroup::Acme,
    default: "",
    doc: "Where the authority may write to about the account",
    field: text!(acme_email, "an address such as me@example.org", is_email),
};

pub(super) const DIRECTORY: Tunable = Tunable {
    name: "acme-directory",
    group: SettingGroup::Acme,
    default: "https://acme-v02.api.letsencrypt.org/directory",
    doc: "The authority, by the URL of its directory; by default Let's Encrypt",
    field: text!(acme_directory, "a URL that begins with https://", is_url),
};

pub(super) const CA: Tunable = Tunable {
    name: "acme-ca",
    group: SettingGroup::Acme,
    default: "",
    doc: "PEM of who vouches for the authority's own server, in place of the system's",
    field: file_path!(acme_ca),
};

pub(super) const DIR: Tunable = Tunable {
    name: "acme-dir",
    group: SettingGroup::Acme,
    default: "",
    doc: "Folder of the certificate and the account, in place of one in STATE_DIRECTORY",
    field: file_path!(acme_dir),
};

pub(super) const PROFILE: Tunable = Tunable {
    name: "acme-profile",
    group: SettingGroup::Acme,
    default: "tlsserver",
    doc: "Profile of the certificate, such as shortlived, if the authority has it",
    field: text!(acme_profile, "the name of a profile", is_word),
};

pub(super) const CHALLENGE: Tunable = Tunable {
    name: "acme-challenge",
    group: SettingGroup::Acme,
    default: "auto",
    doc: "How the server proves that the names are its own",
    field: choice!(acme_challenge, AcmeChallenge),
};

pub(super) const EAB_ID: Tunable = Tunable {
    name: "acme-eab-id",
    group: SettingGroup::Acme,
    default: "",
    doc: "Id of the account elsewhere that some authorities want to know",
    field: text!(acme_eab_id, "the id that the authority gives", is_word),
};

pub(super) const EAB_KEY: Tunable = Tunable {
    name: "acme-eab-key",
    group: SettingGroup::Acme,
    default: "",
    doc: "File with the key of that account, in base64 for URLs",
    field: file_path!(acme_eab_key),
};

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-.*:".contains(&byte);
    let is_named = text.contains(['.', ':']) && text.bytes().all(is_letter);
    is_named && text.len() <= 253
}

fn is_email(text: &str) -> bool {
    let is_address = text
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.contains('@'));
    text.is_empty() || is_address && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_url(text: &str) -> bool {
    text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}
