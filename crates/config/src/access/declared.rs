//! Their declarations.

use crate::fields::{duration, file_path, list, number, switch};
use crate::networks::{NETWORKS, is_network};
use crate::numbers::DAY;
use crate::tunable::{Field, SettingGroup, Tunable};
use gustnado_http::fields::check_field;

use super::request_rate::RequestRate;

/// The longest text of a policy or a realm, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// Returns whether a text can be the value of a header field.
fn is_value(text: &str) -> bool {
    let is_shown = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    text.len() <= TEXT_BYTES_MAX && text.bytes().all(is_shown)
}

fn is_realm(text: &str) -> bool {
    is_value(text) && !text.contains(['"', '\\'])
}

/// Returns whether a text is a token (RFC 9110 §5.6.2), as methods and names of fields are.
fn is_token(text: &str) -> bool {
    check_field(text, b"").is_ok()
}

/// Returns whether a text is `any`, or an origin as browsers send it (RFC 6454 §6.2), whose host
/// may begin with `*.` for all below.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| {
        let host = host.strip_prefix("*.").unwrap_or(host);
        let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_of_host = |byte: u8| is_small(byte) || b".-_:[]".contains(&byte);
        (1..=260).contains(&host.len()) && host.bytes().all(is_of_host)
    };
    matches!(text, "any" | "*") || host.is_some_and(is_host)
}

macro_rules! access {
    ($($const:ident $name:literal $default:literal $doc:literal $field:expr;)+) => {
        $(pub(crate) const $const: Tunable = Tunable {
            name: $name,
            group: SettingGroup::Access,
            default: $default,
            doc: $doc,
            field: $field,
        };)+
    };
}

access! {
    ALLOW "allow" "" "Clients that may come, by address or network; others get 403; none is all"
        list!(routes.access.allow, NETWORKS, is_network);
    DENY "deny" "" "Clients that get 403, even if allow has them"
        list!(routes.access.deny, NETWORKS, is_network);
    RATE_LIMIT "rate-limit" "off" "Requests of a client, such as 10/s, 600/m, 1000/h; more get 429"
        Field::Text {
            what: "a rate such as 10/s, 600/m or 1000/h, or off",
            allowed: |text| text == "off" || RequestRate::parse(text).is_some(),
            get: |config| match &*config.routes.access.rate_limit {
                "" => "off",
                rate => rate,
            },
            set: |config, text| {
                let rate = if text == "off" { "" } else { text };
                rate.clone_into(&mut config.routes.access.rate_limit);
            },
        };
    RATE_LIMIT_BURST "rate-limit-burst" "auto"
        "Requests that a client may send at once; auto is a second's worth, at least one"
        number!(routes.access.rate_limit_burst, Count, 1..=1_000_000, or "auto");
    RATE_LIMIT_CLIENTS "rate-limit-clients" "65536"
        "Clients whose rates are known one by one; more share places with them"
        number!(routes.access.rate_limit_clients, Count, 8..=16_777_216);
    RATE_LIMIT_PREFIX "rate-limit-prefix" "64"
        "Bits of an IPv6 address that make a client; of IPv4 it is the whole address"
        number!(routes.access.rate_limit_prefix, Count, 16..=128);
    BASIC_AUTH "basic-auth" ""
        "File of users and passwords, hashed by gustnado passwd; others get 401"
        file_path!(routes.access.basic_auth);
    BASIC_AUTH_REALM "basic-auth-realm" "restricted"
        "What browsers show where they ask for the password"
        Field::Text {
            what: "visible ASCII text without quotes and backslashes",
            allowed: is_realm,
            get: |config| &config.routes.access.basic_auth_realm,
            set: |config, text| text.clone_into(&mut config.routes.access.basic_auth_realm),
        };
    BASIC_AUTH_THREADS "basic-auth-threads" "2"
        "Passwords checked at a time; 32 times as many wait, and others get 503"
        number!(routes.access.basic_auth_threads, Count, 1..=256);
    SIGNED_URLS "signed-urls" ""
        "File of keys; only URLs that gustnado sign has signed by one are served"
        file_path!(routes.access.signed_urls);
    CORS "cors" "" "Origins whose pages may read responses: https://app.example.org, or any"
        list!(
            routes.access.cors,
            "an origin such as https://app.example.org, https://*.example.org for all below it, \
             or any",
            is_origin
        );
    CORS_METHODS "cors-methods" "GET,HEAD,POST,PUT,PATCH,DELETE" "Methods that they may use"
        list!(routes.access.cors_methods, "a method such as GET", is_token);
    CORS_HEADERS "cors-headers" ""
        "Header fields that they may send; none is every field that they ask for"
        list!(routes.access.cors_headers, "a header name such as X-Token", is_token);
    CORS_CREDENTIALS "cors-credentials" "false"
        "Let them send cookies and passwords; needs origins by name"
        switch!(routes.access.cors_credentials);
    CORS_MAX_AGE "cors-max-age" "10m" "How long browsers keep the answer to a preflight request"
        duration!(routes.access.cors_max_age, 1_000..=DAY, or "off");
    SECURITY_HEADERS "security-headers" "false"
        "Send X-Content-Type-Options, Referrer-Policy, X-Frame-Options and the like"
        switch!(routes.access.security_headers);
    CSP "csp" "" "Content-Security-Policy of all responses"
        Field::Text {
            what: "a policy such as default-src 'self', in visible ASCII",
            allowed: is_value,
            get: |config| &config.routes.access.csp,
            set: |config, text| text.clone_into(&mut config.routes.access.csp),
        };
    CSP_REPORT_ONLY "csp-report-only" ""
        "Content-Security-Policy-Report-Only of all responses, to try a policy"
        Field::Text {
            what: "a policy such as default-src 'self', in visible ASCII",
            allowed: is_value,
            get: |config| &config.routes.access.csp_report_only,
            set: |config, text| text.clone_into(&mut config.routes.access.csp_report_only),
        };
    IDLE_TIMEOUT "idle-timeout" "off"
        "Longest time without progress of a request, its handler included"
        duration!(routes.access.idle_timeout, 1..=DAY, or "off");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_send_them() {
        for origin in [
            "any",
            "*",
            "https://a.org",
            "http://localhost:3000",
            "https://*.a.org",
            "http://[::1]:80",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in [
            "",
            "a.org",
            "https://",
            "https://a.org/",
            "https://A.org",
            "null",
            "https://*",
            "ftp://a",
        ] {
            assert!(!is_origin(origin), "{origin}");
        }
    }
}
