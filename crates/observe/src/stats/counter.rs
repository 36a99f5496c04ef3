//! What the table says of each counter.

/// The kind of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A total since the start, which only grows.
    Counter,
    /// A current value.
    Gauge,
}

/// The places where a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Everywhere: in [`Stats::named`](super::Stats::named), and so on the page, in the periodic
    /// line and in Python.
    Everywhere,
    /// There, but for the periodic line: a person reads that.
    OnPages,
    /// In the field only, for programs.
    InStats,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counter {
    /// The field in [`Stats`](super::Stats) or [`WorkerStats`](super::WorkerStats), and the key on
    /// the page.
    pub(super) name: &'static str,
    /// Its kind.
    pub(super) kind: Kind,
    /// The places where it is shown.
    pub(super) visibility: Visibility,
    /// Its family, label and value, if several rows count the same for different things:
    /// `("answers", "class", "2xx")`.
    pub(super) label: Option<(&'static str, &'static str, &'static str)>,
    /// Its meaning for the whole server; empty if it exists for each worker only.
    pub(super) help: &'static str,
    /// Its meaning for each worker; empty if it exists in sum only.
    pub(super) worker_help: &'static str,
}

/// The type of a number.
pub(super) trait Number: Copy {
    /// Takes it as it was written.
    fn of(number: u64) -> Self;

    /// Adds that of another process.
    fn add(&mut self, other: Self);
}

impl Number for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn add(&mut self, other: Self) {
        *self = self.wrapping_add(other);
    }
}

impl Number for bool {
    fn of(number: u64) -> Self {
        number != 0
    }

    /// What holds for all is what holds for the server.
    fn add(&mut self, other: Self) {
        *self &= other;
    }
}
