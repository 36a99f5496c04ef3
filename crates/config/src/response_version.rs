//! The HTTP version in the status line of responses.

/// The HTTP version in the status line of responses. A response never uses a feature that the
/// client's version does not have, whatever its status line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseVersion {
    /// 1.1, also to a client of 1.0, as RFC 9110 §2.5 has it.
    #[default]
    Newest,
    /// 1.0 to all clients: no chunks, and each response states whether the connection is kept.
    Old,
    /// The version of the request.
    AsRequested,
}

impl ResponseVersion {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Newest, Self::Old, Self::AsRequested];
    /// What a person writes for each member.
    pub const NAMES: [&'static str; 3] = ["1.1", "1.0", "as-asked"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
