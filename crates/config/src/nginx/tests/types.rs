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
