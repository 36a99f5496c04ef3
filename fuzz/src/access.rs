//! What gates and rewrites read of a request: the origin of a preflight request, user and password,
//! signatures, and a head with another target.
#![no_main]

use std::sync::LazyLock;

use gustnado_access::{Gate, GateRequest, GateVerdict, Rewrites};
use gustnado_config::AccessSettings;
use gustnado_config::config_file::Rewrite;
use gustnado_http::credentials::Credentials;
use gustnado_http::head::{Decoded, Head};
use gustnado_http::limits::Limits;
use gustnado_http::path::CanonicalPath;
use gustnado_http::request::RequestView;
use gustnado_tasks::{Endpoint, Now};
use libfuzzer_sys::fuzz_target;

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let keys = std::env::temp_dir().join(format!("gustnado-fuzz-keys-{}", std::process::id()));
    std::fs::write(&keys, "0123456789abcdef0123456789abcdef\n").expect("a file");
    let origins = ["https://a.org", "https://*.b.org:8443"];
    let settings = AccessSettings {
        cors: origins.iter().map(|origin| (*origin).to_owned()).collect(),
        signed_urls: Some(keys),
        ..AccessSettings::default()
    };
    Gate::new(&settings, None, None, &Default::default()).expect("settings that can be used")
});

static REWRITES: LazyLock<Rewrites> = LazyLock::new(|| {
    let rewrite = |(from, to)| Rewrite::new(from, to).expect("well formed");
    let all = [("/a/{*rest}", "/b/{rest}"), ("/u/{id}", "/users/{id}?own=1"), ("/s", "/t")];
    Rewrites::new(&all.map(rewrite)).expect("well formed")
});

struct Asked<'a>(RequestView<'a>);

impl GateRequest for Asked<'_> {
    fn view(&self) -> RequestView<'_> {
        self.0
    }

    fn with_sent_target(&self, read: &mut dyn FnMut(&str, &[u8])) {
        if let Ok(path) = CanonicalPath::of(self.0.path()) {
            read(path.as_str(), self.0.query().unwrap_or_default());
        }
    }

    fn client(&self) -> Option<Endpoint> {
        None
    }

    fn is_through_stranger(&self) -> bool {
        false
    }
}

fuzz_target!(|input: &[u8]| {
    let Ok(Decoded::Done(head)) = Head::decode(input, &mut 0, &Limits::default()) else { return };
    let view = head.on(input);
    if let Some(found) = Credentials::of(view) {
        assert!(!found.user().contains(&b':'));
    }
    // No input has the signature of a key that nobody knows.
    match GATE.check(&Asked(view), Now { unix_secs: 1, mono_ms: 1 }) {
        GateVerdict::Respond(response) => {
            for (name, value) in &response.fields {
                assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value:?}");
            }
        }
        verdict => panic!("{verdict:?}"),
    }
    let Ok(path) = CanonicalPath::of(view.path()) else { return };
    let query = view.query().and_then(|query| std::str::from_utf8(query).ok());
    let Some(target) = REWRITES.target(path.as_str(), query) else { return };
    let Some((head, bytes)) = head.with_target(input, &target) else { return };
    // What was made is what would have been read.
    if let Ok(again) = Head::decode(&bytes, &mut 0, &Limits::default()) {
        assert_eq!(again, Decoded::Done(head), "{target}");
    }
    assert_eq!(head.on(&bytes).fields().count(), view.fields().count());
});
