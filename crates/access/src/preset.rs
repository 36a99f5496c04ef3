//! Header fields that make browsers more careful.

use gustnado_config::{AccessSettings, Headers};

/// The fields of the preset, each with a value that breaks few sites.
const PRESET: [(&str, &str); 5] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
];

/// Returns the fields of all responses that the settings ask for. Fields that are set by name take
/// precedence.
pub fn preset_headers(settings: &AccessSettings) -> Headers {
    let mut headers = Headers::default();
    if settings.security_headers {
        for (name, value) in PRESET {
            headers.set(name, value);
        }
    }
    // A policy says itself who may frame the page; the older field would contradict it in browsers
    // that know both.
    if settings.csp.to_ascii_lowercase().contains("frame-ancestors") {
        headers = without(&headers, "X-Frame-Options");
    }
    for (name, policy) in [
        ("Content-Security-Policy", &settings.csp),
        ("Content-Security-Policy-Report-Only", &settings.csp_report_only),
    ] {
        if !policy.is_empty() {
            headers.set(name, policy);
        }
    }
    if is_for_any(&settings.cors) {
        headers.set("Access-Control-Allow-Origin", "*");
    }
    headers
}

/// Returns whether pages of every origin may read responses.
pub(crate) fn is_for_any(origins: &[String]) -> bool {
    origins.iter().any(|origin| matches!(&**origin, "any" | "*"))
}

fn without(headers: &Headers, name: &str) -> Headers {
    let mut rest = Headers::default();
    let others = headers.iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name));
    others.for_each(|(name, value)| rest.set(name, value));
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_about_frames_replaces_the_older_field() {
        let mut settings = AccessSettings { security_headers: true, ..AccessSettings::default() };
        let has = |settings: &AccessSettings, name: &str| {
            preset_headers(settings).iter().any(|(known, _)| known == name)
        };
        assert!(has(&settings, "X-Frame-Options") && !has(&settings, "Content-Security-Policy"));
        settings.csp = "default-src 'self'; frame-ancestors 'none'".to_owned();
        assert!(!has(&settings, "X-Frame-Options") && has(&settings, "Content-Security-Policy"));
        assert!(preset_headers(&AccessSettings::default()).is_empty());
    }
}
