//! Which pages of other origins may read responses (the Fetch standard, §3.2).

use gustnado_config::AccessSettings;
use gustnado_http::fields::check_field;
use gustnado_http::method::Method;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;

use crate::AccessError;
use crate::preset::is_for_any;
use crate::response::GateResponse;

/// The longest list of fields that a preflight request may ask for, in bytes.
const ASKED_BYTES_MAX: usize = 1024;

/// The origins whose pages may read responses.
#[derive(Clone, Debug)]
pub(crate) struct Cors {
    /// All.
    any: bool,
    origins: Vec<String>,
    methods: String,
    /// `None`: those that are asked for.
    headers: Option<String>,
    credentials: bool,
    max_age_secs: u64,
}

impl Cors {
    /// Returns the origins of the settings; `None` if there are none.
    pub(crate) fn of(settings: &AccessSettings) -> Result<Option<Self>, AccessError> {
        if settings.cors.is_empty() {
            return Ok(None);
        }
        let any = is_for_any(&settings.cors);
        if any && settings.cors_credentials {
            return Err(AccessError::Setting {
                setting: "cors-credentials",
                problem: "expected origins by name, found any: every page could act for users who \
                     are logged in; name them in cors"
                    .to_owned(),
            });
        }
        let headers = settings.cors_headers.join(", ");
        Ok(Some(Self {
            any,
            origins: settings.cors.clone(),
            methods: settings.cors_methods.join(", "),
            headers: (!headers.is_empty()).then_some(headers),
            credentials: settings.cors_credentials,
            max_age_secs: settings.cors_max_age.as_secs(),
        }))
    }

    /// Returns whether the fields of a response depend on who asks.
    pub(crate) fn depends_on_origin(&self) -> bool {
        !self.any
    }

    /// Returns whether pages of the origin that a request names may read its response.
    fn admits(&self, origin: &[u8]) -> bool {
        let is_it = |known: &String| match known.split_once("://*.") {
            Some((scheme, domain)) => is_below(origin, scheme.as_bytes(), domain.as_bytes()),
            None => known.as_bytes() == origin,
        };
        self.any || self.origins.iter().any(is_it)
    }

    /// Returns the answer to a preflight request; `None` if it is none. `Err`: its origin may not.
    pub(crate) fn preflight(&self, view: RequestView<'_>) -> Option<Result<GateResponse, ()>> {
        if view.method() != Method::Options {
            return None;
        }
        view.field("access-control-request-method")?;
        let origin = view.field("origin")?;
        if !self.admits(origin) {
            return Some(Err(()));
        }
        let mut answer = GateResponse::new(Status::NO_CONTENT);
        self.add_origin(origin, &mut |name, value| answer.fields.push((name, value)));
        answer.fields.push(("Access-Control-Allow-Methods", self.methods.clone()));
        let asked = view.field("access-control-request-headers").filter(|asked| is_list(asked));
        let asked = || asked.map(|asked| String::from_utf8_lossy(asked).into_owned());
        if let Some(headers) = self.headers.clone().or_else(asked) {
            answer.fields.push(("Access-Control-Allow-Headers", headers));
        }
        if self.max_age_secs > 0 {
            answer.fields.push(("Access-Control-Max-Age", self.max_age_secs.to_string()));
        }
        answer.fields.push((
            "Vary",
            "Origin, Access-Control-Request-Method, Access-Control-Request-Headers".to_owned(),
        ));
        Some(Ok(answer))
    }

    /// Adds the fields of a response to a request, but for `Vary`.
    pub(crate) fn add(&self, view: RequestView<'_>, add: &mut dyn FnMut(&'static str, String)) {
        if let Some(origin) = view.field("origin").filter(|origin| self.admits(origin)) {
            self.add_origin(origin, add);
        }
    }

    fn add_origin(&self, origin: &[u8], add: &mut dyn FnMut(&'static str, String)) {
        let name = if self.any { "*".into() } else { String::from_utf8_lossy(origin) };
        add("Access-Control-Allow-Origin", name.into_owned());
        if self.credentials {
            add("Access-Control-Allow-Credentials", "true".to_owned());
        }
    }
}

/// Returns whether an origin has a scheme and a host below a domain, and the domain's port.
fn is_below(origin: &[u8], scheme: &[u8], domain: &[u8]) -> bool {
    let host = origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(b"://"));
    let below =
        host.and_then(|host| host.strip_suffix(domain)).and_then(|below| below.strip_suffix(b"."));
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    below.is_some_and(|below| !below.is_empty() && below.iter().all(letter))
}

/// Returns whether a value lists field names.
fn is_list(value: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        std::str::from_utf8(name)
            .is_ok_and(|name| check_field(name.trim_matches([' ', '\t']), b"").is_ok())
    };
    value.len() <= ASKED_BYTES_MAX && value.split(|byte| *byte == b',').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        let cors = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let settings = AccessSettings { cors, ..AccessSettings::default() };
        Cors::of(&settings).expect("it can be").expect("some origins")
    }

    #[test]
    fn an_origin_is_compared_whole() {
        let some = cors(&["https://a.org", "https://*.b.org", "http://*.c.org:8080"]);
        for origin in
            ["https://a.org", "https://x.b.org", "https://x.y.b.org", "http://x.c.org:8080"]
        {
            assert!(some.admits(origin.as_bytes()), "{origin}");
        }
        for origin in [
            "http://a.org",
            "https://a.org:444",
            "https://a.org.evil.org",
            "https://b.org",
            "https://.b.org",
            "https://evilb.org",
            "https://evil.org/.b.org",
            "https://evil.org#.b.org",
            "http://x.c.org",
            "null",
            "",
        ] {
            assert!(!some.admits(origin.as_bytes()), "{origin}");
        }
        assert!(cors(&["any"]).admits(b"null"));
    }

    #[test]
    fn a_list_of_fields_splits_no_response() {
        assert!(is_list(b"x-token, content-type"));
        for list in [&b""[..], b"a b", b"a,\r\nb", b"a,,b", &[b'a'; 1025]] {
            assert!(!is_list(list));
        }
    }

    #[test]
    fn every_page_may_not_act_for_who_is_logged_in() {
        let cors = vec!["any".to_owned()];
        let settings = AccessSettings { cors, cors_credentials: true, ..AccessSettings::default() };
        assert!(Cors::of(&settings).is_err_and(|error| error.to_string().contains("name them")));
    }
}
