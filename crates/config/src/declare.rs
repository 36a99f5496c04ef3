//! How structs of settings are declared.

/// Declares a struct of settings: each field once, with its type and its value before the default
/// of [`TUNABLES`](super::TUNABLES) is set. The macro that it makes passes fields and types to
/// another one, which gives the builder a method for each.
///
/// - `own`: fields whose method takes another type, and is written by hand.
macro_rules! settings {
    (
        $d:tt
        $(#[$meta:meta])*
        $name:ident, $each:ident;
        own { $($(#[$own_doc:meta])* $own:ident: $own_type:ty $(= $own_blank:expr)?,)* }
        usual { $($(#[$doc:meta])* $field:ident: $type:ty $(= $blank:expr)?,)+ }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$own_doc])* pub $own: $own_type,)*
            $($(#[$doc])* pub $field: $type,)+
        }

        impl $name {
            /// Returns the values before the table's defaults are set.
            pub(crate) fn blank() -> Self {
                Self {
                    $($own: settings!(@blank $($own_blank)?),)*
                    $($field: settings!(@blank $($blank)?),)+
                }
            }
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $each {
            ($d callback:ident) => { $d callback! { $name; $($field: $type,)+ } };
        }
    };
    (@blank) => { Default::default() };
    (@blank $blank:expr) => { $blank };
}
