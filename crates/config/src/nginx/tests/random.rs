//! Any words in any order.

use super::*;
use proptest::prelude::*;

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("server"),
        Just("location"),
        Just("{"),
        Just("}"),
        Just(";"),
        Just("/a"),
        Just("/"),
        Just("/a/"),
        Just("root"),
        Just("/srv"),
        Just("alias"),
        Just("return"),
        Just("301"),
        Just("https://x$request_uri"),
        Just("listen"),
        Just("80"),
        Just("443"),
        Just("ssl"),
        Just("server_name"),
        Just("a.org"),
        Just("*.b.org"),
        Just("~"),
        Just("\\.php$"),
        Just("="),
        Just("^~"),
        Just("http"),
        Just("if"),
        Just("($host"),
        Just("a.org)"),
        Just("deny"),
        Just("allow"),
        Just("10.0.0.0/8"),
        Just("auth_basic"),
        Just("auth_basic_user_file"),
        Just("gzip"),
        Just("limit_rate"),
        Just("try_files"),
        Just("$uri"),
        Just("/index.html"),
        Just("all"),
        Just("403"),
        Just("\"${x}\""),
        Just("add_header"),
        Just("expires"),
        Just("1d"),
        Just("rewrite"),
        Just("^/a/(.*)$"),
        Just("/b/$1"),
        Just("permanent"),
        Just("@x"),
        Just("\"\\u{0}\""),
        Just("ü"),
        Just("default_server"),
        Just("418"),
        Just("internal"),
        Just("error_page"),
        Just("/404.html"),
        Just("[::]:80"),
        Just("ipv6only=off"),
        Just("quic"),
        Just("/a/b"),
        Just("/a/b/"),
        Just("location = /a/ {"),
        Just("location /a/b {"),
        Just("} server { root /srv;"),
        Just("index"),
        Just("^/a/b$"),
        Just("autoindex"),
        Just("on"),
    ];
    proptest::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn whatever_is_imported_can_be_read(inner in words()) {
        let text = format!("http {{ server {{ root /srv; {inner} }} }}");
        let read = |_: &Path| Err("no such file".to_owned());
        if let Ok(import) = import(Path::new("/n/nginx.conf"), &text, &read) {
            let file = ConfigFile::parse(Path::new("x.toml"), &import.text, |_| Ok(()));
            prop_assert!(file.is_ok(), "{}\n{}", file.expect_err("it is none"), import.text);
            let is_closed = import.left.iter().any(|one| one.why.contains("so all is 403"));
            prop_assert!(!is_closed, "what was made could not be read: {text}");
            prop_assert!(import.text != CLOSED || !import.left.is_empty(), "{text}");
        }
    }
}
