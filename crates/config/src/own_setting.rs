//! A setting of a site or a route by its name.

use std::ffi::OsString;
use std::fmt;

use super::error::ConfigError;
use super::layers::Settings;
use super::route_settings::RouteSettings;
use super::tunable::Tunable;

/// A setting of a site or a route by its name, as a configuration file has it.
///
/// ```
/// use gustnado_config::{OwnSetting, RouteSettings};
///
/// let setting = OwnSetting::new("spa", "index.html")?;
/// let mut settings = RouteSettings::default();
/// setting.tune(&mut settings);
/// assert_eq!(settings.spa, "index.html");
/// # Ok::<(), gustnado_config::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct OwnSetting {
    tunable: &'static Tunable,
    value: OsString,
}

impl OwnSetting {
    /// # Errors
    /// No setting has this name, or it is the server's alone, or it does not take the value.
    pub fn new(name: &str, value: impl Into<OsString>) -> Result<Self, ConfigError> {
        let value = value.into();
        let tunable = Settings::check(name, &value)?;
        if !tunable.fits_route() {
            return Err(ConfigError::NotOfRoute { name: tunable.name });
        }
        Ok(Self { tunable, value })
    }

    /// Sets it.
    pub fn tune(&self, settings: &mut RouteSettings) {
        settings.set(self.tunable, &self.value).expect("it was checked when it was made");
    }
}

impl fmt::Debug for OwnSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnSetting ({} = {:?})", self.tunable.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Listing;

    #[test]
    fn a_setting_by_its_name_is_checked_at_once() {
        let tuned = |name: &str, value: &str| {
            let mut settings = RouteSettings::default();
            OwnSetting::new(name, value).map(|setting| setting.tune(&mut settings))?;
            Ok::<_, ConfigError>(settings)
        };
        assert_eq!(tuned("listing", "on").map(|of| of.listing), Ok(Listing::On));
        let limits = tuned("limit-body-bytes", "1k").map(|of| of.limits.body_bytes_max);
        assert_eq!(limits, Ok(Some(1_024)));
        assert_eq!(tuned("allow", "off").map(|of| of.access.allow), Ok(Vec::new()));
        assert_eq!(tuned("basic-auth", "off").map(|of| of.access.basic_auth), Ok(None));
        let refused = |name, value| tuned(name, value).expect_err("it is refused").to_string();
        assert!(refused("listig", "on").contains("did you mean \"listing\"?"));
        assert!(refused("workers", "2").contains("is the server's alone"));
        for guard in ["allow", "deny", "forbidden", "basic-auth", "signed-urls"] {
            assert!(refused(guard, "").contains("or off for none, found \"\""), "{guard}");
        }
        assert!(refused("allow", " , ").contains("or off for none"));
        assert!(refused("listing", "maybe").contains("found \"maybe\""));
    }
}
