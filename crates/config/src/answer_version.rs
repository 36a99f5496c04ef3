//! Which version of HTTP answers call themselves.

/// The version in the status line of responses. Whatever it is, a response uses nothing that the
/// client's version lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerVersion {
    /// 1.1, also to a client of 1.0, as RFC 9110 §2.5 has it.
    #[default]
    Newest,
    /// 1.0 to all clients: no chunks, and each response says whether the connection goes on.
    Old,
    /// The version of the request.
    AsAsked,
}

impl AnswerVersion {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Newest, Self::Old, Self::AsAsked];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["1.1", "1.0", "as-asked"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
