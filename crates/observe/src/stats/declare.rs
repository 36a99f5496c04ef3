//! How counters are declared: what is generated from [the table](super::table) of them.

/// Generates everything that has one entry for each counter. A row is
///
/// ```text
/// name: Kind Visibility [family label "value"], server type "help", worker "help", cell Cell;
/// ```
///
/// where the label, the worker and the cell are optional. A counter for workers only has `only
/// worker "help"` in place of the rest.
macro_rules! counters {
    ($(
        $name:ident: $kind:ident $visibility:ident $([$family:ident $label:ident $value:literal])?
        $(,
            server $type:ident $help:literal
            $(, worker $worker:literal)?
            $(, cell $cell:ident)?
        )?
        $(, only worker $only:literal)?
    ;)*) => {
        /// All counters, in the order in which they are shown.
        pub(super) const COUNTERS: &[Counter] = &[$(Counter {
            name: stringify!($name),
            kind: Kind::$kind,
            visibility: Visibility::$visibility,
            label: counters!(@label $($family $label $value)?),
            help: concat!($($help)?),
            worker_help: concat!($($($worker)?)? $($only)?),
        },)*];

        /// The server's counters at one moment. Totals count from its start and only grow.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct Stats {
            $($(#[doc = $help] pub $name: $type,)?)*
        }

        /// One worker's part of [`Stats`].
        ///
        /// Where workers share tasks, a connection may be added by one and removed by another: then
        /// only the sums tell how many are open.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct WorkerStats {
            /// Its number, from 0; a thread that only accepts has the number after the last one.
            pub worker: usize,
            $($($(#[doc = $worker] pub $name: u64,)?)? $(#[doc = $only] pub $name: u64,)?)*
        }

        /// The cells of a worker's tally.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Cell {
            $($($($cell,)?)?)*
        }

        impl Cell {
            /// The number of cells.
            pub const COUNT: usize = [$($($(Self::$cell,)?)?)*].len();
        }

        impl Stats {
            /// Adds the cells of one worker.
            ///
            /// - `read`: returns the value of a cell.
            pub(super) fn add_cells(&mut self, read: impl Fn(Cell) -> u64) {
                $($($(self.$name += read(Cell::$cell);)?)?)*
            }

            /// How many numbers there are.
            pub(super) const NUMBERS: usize = [$($(stringify!($type),)?)*].len();

            /// Takes the numbers in the order of [`Stats::all`].
            pub(super) fn of_numbers(mut next: impl FnMut() -> u64) -> Self {
                Self { $($($name: Number::of(counters!(@next next, $type)),)?)* }
            }

            /// Adds the totals of another process.
            pub(super) fn add_totals(&mut self, other: &Self) {
                let uptime_ms = self.uptime_ms.max(other.uptime_ms);
                $($(
                    if matches!(Kind::$kind, Kind::Counter) {
                        <$type as Number>::add(&mut self.$name, other.$name);
                    }
                )?)*
                self.uptime_ms = uptime_ms;
            }

            /// Adds the current values of another process.
            pub(super) fn add_gauges(&mut self, other: &Self) {
                $($(
                    if matches!(Kind::$kind, Kind::Gauge) {
                        <$type as Number>::add(&mut self.$name, other.$name);
                    }
                )?)*
            }

            /// Returns every number with its name and where it is shown.
            pub(super) fn all(
                &self,
            ) -> impl Iterator<Item = (&'static str, u64, Visibility)> + use<> {
                [$($(
                    (
                        stringify!($name),
                        <$type as Into<u64>>::into(self.$name),
                        Visibility::$visibility,
                    ),
                )?)*].into_iter()
            }
        }

        impl WorkerStats {
            /// Takes the values that [`Stats`] has too; the others stay 0.
            pub(super) fn of(stats: &Stats) -> Self {
                Self { $($($($name: counters!(@of stats.$name, $worker),)?)?)* ..Self::default() }
            }

            /// Returns every number with its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$(
                    $($((counters!(@name $name, $worker), self.$name),)?)?
                    $((counters!(@name $name, $only), self.$name),)?
                )*].into_iter()
            }
        }
    };
    (@label) => { None };
    (@label $family:ident $label:ident $value:literal) => {
        Some((stringify!($family), stringify!($label), $value))
    };
    (@next $next:ident, $type:ident) => { $next() };
    (@of $stats:ident.$name:ident, $worker:literal) => { $stats.$name };
    (@name $name:ident, $worker:literal) => { stringify!($name) };
}

pub(super) use counters;
