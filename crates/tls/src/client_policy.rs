//! What a site wants of its clients' certificates, as one number to compare.

/// What a site wants of its clients' certificates: whose, and whether one is required. Two sites
/// with the same wish have the same policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientPolicy(u64);

impl ClientPolicy {
    /// No certificate is wanted.
    pub const NONE: Self = Self(0);

    /// Returns the policy with this number. It comes from a digest, so that two differ.
    #[cfg(feature = "tls")]
    pub(crate) fn of_digest(digest: u64) -> Self {
        Self(digest.max(1))
    }

    #[cfg(feature = "tls")]
    pub(crate) fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Returns whether a connection on which `agreed` was met may carry requests for a site with
    /// this policy (RFC 9110 §15.5.20; CVE-2025-23419).
    pub fn is_met_by(self, agreed: Self) -> bool {
        self == Self::NONE || self == agreed
    }
}
