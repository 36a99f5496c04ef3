//! Exit codes, in one place: service managers and scripts depend on them.

/// Success, also of a drain without cut connections.
pub(crate) const CLEAN: u8 = 0;
/// Failure: port in use, no permission, a broken machine.
pub(crate) const FAILED: u8 = 1;
/// The command line was wrong.
pub(crate) const USAGE: u8 = 2;
/// A setting was wrong (`EX_CONFIG`): a restart will not help, see systemd's
/// `RestartPreventExitStatus=78`.
pub(crate) const CONFIG: u8 = 78;
/// A run of `gustnado bench` has failed by a threshold (`--fail-if`).
#[cfg(feature = "lab")]
pub(crate) const THRESHOLD: u8 = 99;
/// The drain's deadline came and connections were cut; the code of `timeout(1)`.
pub(crate) const CUT: u8 = 124;

/// Stopped at once by a signal, as shells report it: 130 for INT, 131 for QUIT, 143 for TERM.
pub(crate) fn by_signal(signal: i32) -> i32 {
    128 + signal
}

/// Converts it to an exit code of `main`.
#[cfg(feature = "lab")]
pub(crate) fn by_signal_code(signal: i32) -> u8 {
    u8::try_from(by_signal(signal)).unwrap_or(FAILED)
}
