//! The result of the last reload.

/// The result of the last reload of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReload {
    /// When it was, in seconds since 1970.
    pub at_s: u64,
    /// Whether the configuration was taken.
    pub taken: bool,
    /// Why it was refused, a line for each mistake; empty if it was taken.
    pub reason: String,
    /// Settings whose new value needs a restart, so that the value of before stays.
    pub kept: Vec<&'static str>,
    /// When a configuration was last taken, in seconds since 1970; `None`: that of the start is in
    /// force.
    pub taken_at_s: Option<u64>,
}
