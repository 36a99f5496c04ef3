//! Files that nginx shows as texts are no pages here.

use super::*;

const CLOSED: &str = "403 403 Forbidden";
const USUAL: &str = "types { text/html html htm shtml; application/xhtml+xml xhtml; image/svg+xml \
                     svg svgz; text/xml xml; }";

/// Each is what a `http`, a `server` or a location says, and whether that closes it.
#[test]
fn files_that_nginx_shows_as_texts_are_no_pages() {
    let spread = USUAL.replace("image/svg+xml svg svgz; ", "");
    for (types, is_closed) in [
        ("types { } default_type application/octet-stream;", true),
        ("types { text/plain html txt; }", true),
        ("types { text/javascript mjs; } types { text/html html; }", true),
        ("types { text/plain html; text/html xyz; }", true),
        ("types { text/plain HTML; }", true),
        (&spread, true),
        (&format!("{USUAL} types {{ text/plain svg; }}"), true),
        (&format!("{USUAL} types {{ include own.types; }}"), true),
        ("include mime.types; types { text/plain svg; }", true),
        ("include mime.types; types { application/wasm wasm; }", false),
        (USUAL, false),
        (&format!("{spread} types {{ application/xml SVG; }}"), false),
        (&format!("{spread} default_type text/html;"), false),
        ("types { } default_type text/html;", false),
        ("default_type text/plain;", false),
    ] {
        let import = imported(&format!("server {{ root /srv; location /a/ {{ {types} }} }}"));
        let site = parsed(&import).main;
        let expected = if is_closed { CLOSED } else { "/srv/a/x" };
        assert_eq!(served(&site, "/a/x"), expected, "{types}");
        assert_eq!(served(&site, "/x"), "/srv/x", "{types}");
        for text in [
            format!("server {{ root /srv; {types} }}"),
            format!("http {{ {types} server {{ root /srv; location /b/ {{ }} }} }}"),
        ] {
            let import = imported(&text);
            assert_eq!(served(&parsed(&import).main, "/a/x"), expected, "{text}");
            let told = reasons(&import).contains("files have the types of the server");
            assert_eq!(told, is_closed, "{text}\n{}", reasons(&import));
        }
    }
}

#[test]
fn an_expression_with_types_closes_the_endings_that_a_browser_would_run() {
    for (location, path, is_closed) in [
        ("~* ^/up/.*\\.(html?|svg)$ { types { text/plain html htm svg; } }", "/up/a.html", true),
        ("~* ^/up/.*\\.(html?|svg)$ { types { text/plain html htm svg; } }", "/up/a.svg", true),
        ("~* ^/up/.*\\.(html?|svg)$ { types { text/plain html htm svg; } }", "/up/a.txt", false),
        ("~ ^/up/ { types { } default_type text/plain; }", "/up/a.html", true),
        ("~ /x/[^/]+$ { types { text/plain html; } }", "/x/a.html", true),
        ("~ \\.mjs$ { types { } default_type text/javascript; }", "/a.mjs", false),
        ("~ \\.svg$ { types { image/svg+xml svg; } }", "/up/a.svg", false),
        ("~ ^/up/a\\.(css|js)$ { types { text/plain css js; } }", "/up/a.css", false),
    ] {
        let import = imported(&format!("server {{ root /srv; location {location} }}"));
        let found = served(&parsed(&import).main, path);
        let expected = if is_closed { "404".to_owned() } else { format!("/srv{path}") };
        assert_eq!(found, expected, "{location}\n{}", import.text);
        let line = "types: files have the types of the server, pages among them; what it stands \
                    in responds with 403";
        assert!(!is_closed || reasons(&import).contains(line), "{}", reasons(&import));
    }
}

#[test]
fn a_type_of_all_other_files_counts_for_a_table_that_is_inherited() {
    let text = "http { types { text/html html htm; } default_type text/html; server { root /srv; \
                location /a/ { default_type text/plain; } location /b/ { } } }";
    let site = parsed(&imported(text)).main;
    assert_eq!(served(&site, "/a/x"), CLOSED, "an image of SVG is a text");
    assert_eq!(served(&site, "/b/x"), "/srv/b/x");
}

#[test]
fn what_texts_are_declared_with_is_taken_over_or_told() {
    let import = imported(
        "http { charset koi8-r; default_type text/plain; max_ranges 1; server { root /srv; \
         location /utf/ { charset UTF-8; } location /none/ { charset off; } location /odd/ { \
         charset $charset; } location /text/ { default_type text/html; return 200 x; } location \
         /data/ { default_type application/json; return 200 x; } location /files/ { default_type \
         application/octet-stream; limit_rate 1m; } } }",
    );
    let file = parsed(&import);
    for (path, charset) in
        [("/", Some("koi8-r")), ("/utf", None), ("/none", Some("")), ("/files", Some("koi8-r"))]
    {
        let mut routes = file.main.routes.iter();
        let found = routes.find(|route| route.path == path);
        let mut settings = found.iter().flat_map(|route| &route.settings);
        let found = settings.find(|one| one.name == "charset").map(|one| one.value.clone());
        assert_eq!(found.as_deref(), charset.map(std::ffi::OsStr::new), "{path}\n{}", import.text);
    }
    for kind in ["text/html; charset=koi8-r", "application/json"] {
        assert!(import.text.contains(&format!("\ntype = \"{kind}\"\n")), "{}", import.text);
    }
    let all = reasons(&import);
    for part in [
        "default_type text/plain: files without a known ending are application/octet-stream",
        "max_ranges 1: it has no counterpart: left out",
        "charset $charset: its setting takes no such value: left out",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert_eq!(import.left.len(), 3, "{all}");
}
