//! Any words in any order.

use super::*;
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "server",
    "location",
    "{",
    "}",
    ";",
    "/a",
    "/",
    "/a/",
    "root",
    "/srv",
    "alias",
    "return",
    "301",
    "https://x$request_uri",
    "listen",
    "80",
    "443",
    "ssl",
    "server_name",
    "a.org",
    "*.b.org",
    "~",
    "\\.php$",
    "=",
    "^~",
    "http",
    "if",
    "($host",
    "a.org)",
    "deny",
    "allow",
    "10.0.0.0/8",
    "auth_basic",
    "auth_basic_user_file",
    "gzip",
    "limit_rate",
    "try_files",
    "$uri",
    "/index.html",
    "all",
    "403",
    "\"${x}\"",
    "add_header",
    "expires",
    "1d",
    "rewrite",
    "^/a/(.*)$",
    "/b/$1",
    "permanent",
    "@x",
    "\"\\u{0}\"",
    "ü",
    "default_server",
    "418",
    "internal",
    "error_page",
    "/404.html",
    "[::]:80",
    "ipv6only=off",
    "quic",
    "/a/b",
    "/a/b/",
    "location = /a/ {",
    "location /a/b {",
    "} server { root /srv;",
    "index",
    "^/a/b$",
    "autoindex",
    "on",
    "types { text/plain html; }",
    "charset",
    "default_type",
    "koi8-r",
    "text/html",
    "Vary",
    "Cache-Control",
    "always",
    "Via",
    "*.org",
];

fn words() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(WORDS);
    proptest::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn whatever_is_imported_can_be_read(inner in words()) {
        let text = format!("http {{ server {{ root /srv; {inner} }} }}");
        let read = |_: &Path| Err("no such file".to_owned());
        if let Ok(import) = import(Path::new("/n/nginx.conf"), &text, &read) {
            let file = ConfigFile::parse(Path::new("x.toml"), &import.text, ValueChecks::NONE);
            prop_assert!(file.is_ok(), "{}\n{}", file.expect_err("it is none"), import.text);
            let is_closed = import.left.iter().any(|one| one.why.contains("so all is 403"));
            prop_assert!(!is_closed, "what was made could not be read: {text}");
            prop_assert!(import.text != CLOSED || !import.left.is_empty(), "{text}");
        }
    }
}
