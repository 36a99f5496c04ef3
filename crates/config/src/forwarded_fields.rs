//! The header fields in which trusted proxies name the client.

/// The header fields in which trusted proxies name the client. Fields of the other kind are
/// ignored: a proxy that does not set them passes on what a client may have forged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Port`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedFields {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 2] = [Self::XForwarded, Self::Forwarded];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 2] = ["x-forwarded", "forwarded"];

    /// Returns what a person writes for this member.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
