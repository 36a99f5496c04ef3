//! How the table of settings names the fields of [`Config`](super::Config): each once, though it is
//! read and written.

/// Makes a [`Field::Number`](super::Field): `number!(port, Count, 0..=65_535)`. A word after `or`
/// stands for 0.
macro_rules! number {
    ($($path:ident).+, $unit:ident, $min:literal..=$max:expr $(, or $zero:literal)?) => {
        $crate::tunable::Field::Number {
            unit: $crate::unit::Unit::$unit,
            min: $min,
            max: $max,
            zero: $crate::fields::number!(@word $($zero)?),
            get: |config| $crate::numbers::wide(config.$($path).+),
            set: |config, number| config.$($path).+ = $crate::numbers::narrow(number),
        }
    };
    (@word) => { None };
    (@word $zero:literal) => { Some($zero) };
}

/// Makes a [`Field::Number`](super::Field) of milliseconds for a field that is a duration.
macro_rules! duration {
    ($($path:ident).+, $min:literal..=$max:expr $(, or $zero:literal)?) => {
        $crate::tunable::Field::Number {
            unit: $crate::unit::Unit::Duration,
            min: $min,
            max: $max,
            zero: $crate::fields::number!(@word $($zero)?),
            get: |config| $crate::numbers::millis(config.$($path).+),
            set: |config, number| {
                config.$($path).+ = ::std::time::Duration::from_millis(number);
            },
        }
    };
}

/// Makes a [`Field::Choice`](super::Field) among the members of a type.
macro_rules! choice {
    ($($path:ident).+, $type:ident) => {
        $crate::tunable::Field::Choice {
            names: &$type::NAMES,
            get: |config| config.$($path).+.as_str(),
            set: |config, place| config.$($path).+ = $type::ALL[place],
        }
    };
}

/// Makes a [`Field::Switch`](super::Field).
macro_rules! switch {
    ($($path:ident).+) => {
        $crate::tunable::Field::Switch {
            get: |config| config.$($path).+,
            set: |config, on| config.$($path).+ = on,
        }
    };
}

/// Makes a [`Field::Path`](super::Field).
macro_rules! file_path {
    ($($path:ident).+) => {
        $crate::tunable::Field::Path {
            get: |config| config.$($path).+.as_deref(),
            set: |config, path| config.$($path).+ = path,
        }
    };
}

/// Makes a [`Field::List`](super::Field) of texts for which `allowed` returns true.
macro_rules! list {
    ($($path:ident).+, $what:expr, $allowed:ident) => {
        $crate::tunable::Field::List {
            what: $what,
            allowed: $allowed,
            get: |config| &config.$($path).+,
            set: |config, texts| config.$($path).+ = texts,
        }
    };
}

pub(super) use {choice, duration, file_path, list, number, switch};
