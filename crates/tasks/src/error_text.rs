//! Texts of errors. `fn main() -> gustnado::Result<()>`, the form of every example, prints what
//! `Debug` writes: so that has to be what a person can use, and not the names of fields.

use std::error::Error;
use std::fmt;

/// Writes an error's `Display`, and the causes that it leaves out.
///
/// # Errors
/// What the formatter says.
pub fn write_with_causes(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    f.write_str(&text)
}

/// Implements `Debug` for error types by [`write_with_causes`].
#[macro_export]
#[doc(hidden)]
macro_rules! debug_as_display {
    ($($error:ty),+ $(,)?) => { $(
        /// `Display`, and the causes that it leaves out.
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::write_with_causes(self, f)
            }
        }
    )+ };
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;

    /// An error that writes its cause, or leaves it out.
    struct Failed(bool, io::Error);

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.0 { write!(f, "it failed: {}", self.1) } else { f.write_str("it failed") }
        }
    }

    impl std::error::Error for Failed {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.1)
        }
    }

    debug_as_display!(Failed);

    #[test]
    fn an_error_reads_with_the_causes_that_it_leaves_out_and_no_other() {
        for writes_cause in [true, false] {
            let error = Failed(writes_cause, io::Error::other("the cause"));
            assert_eq!(format!("{error:?}"), "it failed: the cause");
        }
    }
}
