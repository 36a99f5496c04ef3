//! Bounds of HTTP/2, as the settings say.

use gustnado_config::Config;
use gustnado_http::h2::{GlitchLimits, H2Limits};

/// Returns what connections keep to.
pub(super) fn h2_limits(config: &Config) -> H2Limits {
    H2Limits {
        streams_max: config.h2_streams,
        window_bytes: config.h2_window_bytes,
        window_bytes_max: config.h2_window_bytes_max.max(config.h2_window_bytes),
        glitches: GlitchLimits {
            burst: config.h2_glitches,
            per_second: config.h2_glitches_per_second,
        },
    }
}

/// Returns the bound for slow clients, where it is below that of all.
pub(super) fn h2_unsent_max(config: &Config) -> usize {
    let Config { h2_notsent_lowat: slow, notsent_lowat: all, .. } = *config;
    if all > 0 && all <= slow { 0 } else { slow }
}
