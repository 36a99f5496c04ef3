//! What is wanted of an authority.

use std::net::IpAddr;
use std::path::PathBuf;

/// What is wanted of an authority, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// The names of the certificate: hosts in lower case, and IP addresses.
    pub names: Vec<String>,
    /// Where the authority writes to; `None` for nowhere.
    pub email: Option<String>,
    /// The URL of the authority's directory.
    pub directory: String,
    /// Who vouches for the authority's own server, in PEM; `None` for the system's authorities.
    pub trusted: Option<PathBuf>,
    /// Where all of it is kept.
    pub folder: PathBuf,
    /// The profile of the certificate; one that the authority does not have is left out.
    pub profile: String,
    /// How this server proves that the names are its own.
    pub challenge: ChallengeChoice,
    /// The account elsewhere that the authority wants to know (RFC 8555 §7.3.4).
    pub external: Option<ExternalAccount>,
}

/// How a server proves that names are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeChoice {
    /// By one that the server can answer, and by the other one if it fails.
    Auto {
        /// A listener speaks plain HTTP.
        has_plain: bool,
    },
    /// By a request on port 80 (RFC 8555 §8.3).
    Http01,
    /// By a handshake on port 443 (RFC 8737).
    TlsAlpn01,
    /// By a record in the names' domain, which is made once (draft-ietf-acme-dns-persist).
    DnsPersist01,
}

/// An account elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Its id, which the authority gives.
    pub id: String,
    /// A file with its key, in base64 for URLs, as the authority gives it.
    pub key: PathBuf,
}

/// Returns whether an authority can be asked for a name: a host with a dot, or an IP address.
pub fn is_name(name: &str) -> bool {
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let bare = name.strip_prefix("*.").unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    bare.len() <= 253 && bare.contains('.') && bare.split('.').all(is_label)
}

impl AcmeSettings {
    /// Returns the challenge of an attempt.
    ///
    /// - `failures`: attempts that have failed before it, in a row.
    pub(crate) fn challenge_of(&self, failures: u32) -> ChallengeChoice {
        match self.challenge {
            ChallengeChoice::Auto { has_plain } if has_plain == failures.is_multiple_of(2) => {
                ChallengeChoice::Http01
            }
            // Without a plain listener, another server may still answer on port 80: after failures.
            ChallengeChoice::Auto { .. } => ChallengeChoice::TlsAlpn01,
            chosen => chosen,
        }
    }
}

impl ChallengeChoice {
    /// Returns the name of the challenge.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto { .. } => "auto",
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::DnsPersist01 => "dns-persist-01",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn hosts_and_addresses_can_be_asked_for() {
        for name in ["example.org", "*.example.org", "192.0.2.1", "2001:db8::1", "xn--a.test"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "localhost", "a..b", "-a.test", "a_b.test", "*.", "a.*.test", "a b.test"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
