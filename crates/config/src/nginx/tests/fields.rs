//! Fields of responses: which of them errors have.

use super::*;

/// Returns the route of a path.
fn route<'f>(file: &'f ConfigFile, path: &str) -> &'f RouteSpec {
    let mut routes = file.main.routes.iter();
    routes.find(|route| route.path == path).unwrap_or_else(|| panic!("no route {path}"))
}

const FIELDS: &str = r#"
http {
    add_header X-Outer 1;
    expires 1h;
    server {
        root /srv;
        location / { }
        location /own/ { add_header X-A a; add_header X-B b always; add_header Vary Cookie; }
        location /kept/ { expires 1y; add_header Cache-Control "public, immutable" always; }
        location /never/ { expires off; add_header Cache-Control no-store always; }
        location /none/ { expires off; add_header Cache-Control no-store; }
        location /text/ { return 200 ok; }
        location /to/ { return 302 /; }
        location /gone/ { return 410; }
        location /all/ { add_header X-B b always; return 410; }
        location ~ \.css$ { expires 7d; }
    }
}
"#;

#[test]
fn errors_have_the_fields_that_are_always_added_and_no_others() {
    let import = imported(FIELDS);
    let file = parsed(&import);
    let of_all = |path: &str| route(&file, path).headers.iter().collect::<Vec<_>>();
    let of_some = |path: &str| {
        let all = route(&file, path).header_rules.iter().flat_map(|rule| {
            assert_eq!(rule.statuses.len(), 10, "{}", import.text);
            assert!(rule.statuses.iter().all(|one| one.last < 400), "{}", import.text);
            let added = rule.add.iter().map(|(name, value)| (&**name, &**value));
            rule.set.iter().chain(added)
        });
        all.collect::<Vec<_>>()
    };
    let hour = ("Cache-Control", "max-age=3600");
    for (path, all, some) in [
        ("/", &[][..], &[("X-Outer", "1")][..]),
        ("/own", &[("X-B", "b")], &[("X-A", "a"), ("Vary", "Cookie")]),
        ("/kept", &[("Cache-Control", "public, immutable")], &[]),
        ("/never", &[("Cache-Control", "no-store")], &[]),
        ("/none", &[], &[]),
        ("/text/{*rest}", &[], &[hour, ("X-Outer", "1")]),
        ("/to/{*rest}", &[], &[hour, ("X-Outer", "1")]),
        ("/gone/{*rest}", &[], &[]),
        ("/all/{*rest}", &[("X-B", "b")], &[]),
    ] {
        assert_eq!(of_all(path), all, "{path}\n{}", import.text);
        assert_eq!(of_some(path), some, "{path}\n{}", import.text);
    }
    let css = ("/**.css", "max-age=604800");
    for (path, rules) in [
        ("/", &[css, ("/**", "max-age=3600")][..]),
        ("/kept", &[css, ("/**", "max-age=31536000, public, immutable")]),
        ("/never", &[css]),
        ("/none", &[css, ("/**", "no-store")]),
    ] {
        assert_eq!(rules_of(route(&file, path)), rules, "{path}\n{}", import.text);
    }
}

#[test]
fn a_field_that_no_rule_takes_closes() {
    for name in ["Via", "Content-Length", "Upgrade", "Set-Cookie2", "a:b", "Keep-Alive"] {
        for always in ["", " always"] {
            let import = imported(&format!(
                "server {{ root /srv; location /a/ {{ add_header {name} x{always}; }} }}"
            ));
            assert_eq!(served(&parsed(&import).main, "/a/x"), "403 403 Forbidden", "{name}");
        }
    }
}
