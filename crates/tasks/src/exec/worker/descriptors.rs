//! The number of descriptors that connections may have.

/// Descriptors that are left for files, listeners and the rest of the process: so many, or three of
/// four where there are few.
const RESERVED_DESCRIPTORS: usize = 128;
/// Of how many descriptors one may be an ordinary one beside a ring's own: connections that are
/// sent files have these. The rest is for the files, and for all else.
pub(crate) const INSTALLED_PART: usize = 4;

/// Returns the number of the first descriptor that is kept for files and the rest, where a process
/// may hold `limit` of these: half of what [`descriptors_for_connections`] leaves. The files that
/// are being sent may have taken the other half, and more.
pub(crate) fn scarce_from(limit: usize) -> usize {
    limit - (limit - descriptors_for_connections(limit).min(limit)) / 2
}

/// Returns how many connections may be ordinary descriptors in a process that may hold `limit` of
/// these.
pub fn descriptors_for_connections(limit: usize) -> usize {
    (limit - RESERVED_DESCRIPTORS.min(limit - limit / 4)).max(1)
}
