//! Exit codes, in one place: service managers and scripts depend on them.

/// Done, also after a drain that cut nobody off.
pub(crate) const CLEAN: u8 = 0;
/// It could not be done: port in use, no permission, a broken machine.
pub(crate) const FAILED: u8 = 1;
/// The command line was wrong.
pub(crate) const USAGE: u8 = 2;
/// A setting was wrong (`EX_CONFIG`): starting again will not help, see systemd's
/// `RestartPreventExitStatus=78`.
pub(crate) const CONFIG: u8 = 78;
/// A run of `gustnado bench` was measured, and one of its bounds (`--fail-if`) struck.
#[cfg(feature = "lab")]
pub(crate) const THRESHOLD: u8 = 99;
/// The drain's deadline came and connections were cut, as `timeout(1)` would say it.
pub(crate) const CUT: u8 = 124;

/// Stopped at once by a signal, as a shell would report it: 130 for INT, 131 for QUIT, 143 for
/// TERM.
pub(crate) fn by_signal(signal: i32) -> i32 {
    128 + signal
}

/// The same as an exit code of `main`.
#[cfg(feature = "lab")]
pub(crate) fn by_signal_code(signal: i32) -> u8 {
    u8::try_from(by_signal(signal)).unwrap_or(FAILED)
}
