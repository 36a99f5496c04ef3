//! Locations within others: nginx takes the longest prefix, whatever contains it.

use super::*;

fn of_users(text: &str) -> NginxImport {
    imported_with(text, &|path| match path.to_str() {
        Some("/etc/nginx/users") => Ok("ann:$2y$05$abc\n".to_owned()),
        _ => Err("no such file".to_owned()),
    })
}

/// Returns whether the route of a path asks for a password or an address.
fn is_guarded(import: &NginxImport, path: &str) -> bool {
    let file = parsed(import);
    let found = served(&file.main, path);
    let is_of = |route: &&RouteSpec| {
        let RouteAction::Folder(folder) = &route.action else { return false };
        Path::new(&found).starts_with(folder)
    };
    let folders = file.main.routes.iter().filter(is_of);
    let deepest = folders.max_by_key(|route| route.path.len());
    deepest.is_none_or(|route| {
        route.settings.iter().any(|one| ["basic-auth", "allow"].contains(&one.name))
    })
}

#[test]
fn what_is_within_an_open_folder_is_as_closed_as_the_server() {
    for (guard, open) in [
        ("auth_basic x; auth_basic_user_file users;", "auth_basic off;"),
        ("allow 10.0.0.0/8; deny all;", "allow all;"),
    ] {
        let import = of_users(&format!(
            "server {{ root /srv; {guard} location /pub/ {{ {open} }} location /pub/in/ {{ }} \
             location /pub/in/out/ {{ {open} }} location = /pub/plan.pdf {{ }} \
             location = /pub/open.pdf {{ {open} }} location = /plan.pdf {{ }} }}"
        ));
        let site = parsed(&import).main;
        for (path, expected, guarded) in [
            ("/a", "/srv/a", true),
            ("/pub/a", "/srv/pub/a", false),
            ("/pub/in/a", "/srv/pub/in/a", true),
            ("/pub/in/out/a", "/srv/pub/in/out/a", false),
            ("/pub/plan.pdf", "403 403 Forbidden", true),
            ("/pub/open.pdf", "/srv/pub/open.pdf", false),
            ("/plan.pdf", "/srv/plan.pdf", true),
        ] {
            assert_eq!(served(&site, path), expected, "{path}\n{}", import.text);
            assert_eq!(is_guarded(&import, path), guarded, "{path}\n{}", import.text);
        }
        let of_outer = site.routes.iter().find(|route| route.path == "/pub").expect("a route");
        let forbidden = of_outer.settings.iter().find(|one| one.name == "forbidden");
        let forbidden = &forbidden.expect("a setting").value;
        assert_eq!(forbidden, "/in/*,/in/out/*,/plan.pdf", "none is found by another path");
    }
}

#[test]
fn what_is_within_an_alias_is_looked_for_beneath_the_root() {
    let import = imported(
        "server { root /srv; location /x/ { alias /other/; } location /x/in/ { } \
         location = /x/one.txt { } location ~ \\.(css|js)$ { expires 1d; } location ~ \\.bak$ { \
         deny all; } location ^~ /s/ { autoindex on; } location /s/in/ { } location /r/ { root \
         /r; } }",
    );
    let site = parsed(&import).main;
    for (path, expected) in [
        ("/x/a.txt", "/other/a.txt"),
        ("/x/in/a.txt", "/srv/x/in/a.txt"),
        ("/x/in/a.css", "/srv/x/in/a.css"),
        ("/x/one.txt", "403 403 Forbidden"),
        ("/x/a.css", "404"),
        ("/r/a.css", "404"),
        ("/s/a.bak", "/srv/s/a.bak"),
        ("/s/in/a.bak", "404"),
        ("/s/in/a.txt", "/srv/s/in/a.txt"),
    ] {
        assert_eq!(served(&site, path), expected, "{path}\n{}", import.text);
    }
    let reasons = reasons(&import);
    for part in [
        "location ~ \\.(css|js)$: what it matches is not served beneath /x/: 404",
        "location ~ \\.(css|js)$: what it matches is not served beneath /r/: 404",
        "location = /x/one.txt: a single file has no route: it responds with 403",
    ] {
        assert!(reasons.contains(part), "{part}\n{reasons}");
    }
}

#[test]
fn of_a_path_with_and_without_a_slash_each_keeps_its_own_location() {
    for (locations, expected) in [
        ("location /p { autoindex on; } location /p/ { deny all; }", "403 403 Forbidden"),
        ("location /p/ { deny all; } location /p { autoindex on; }", "403 403 Forbidden"),
        ("location /p { alias /o; } location /p/ { internal; }", "403 403 Forbidden"),
        ("location /p { autoindex on; } location /p/ { return 404; }", "404 404"),
        (
            "location /p { autoindex on; } location /p/ { proxy_pass http://x; }",
            "403 403 Forbidden",
        ),
        ("location /p { return 200 a; } location /p/ { return 200 b; }", "200 b"),
        ("location /p { deny all; } location /p/ { autoindex on; }", "/srv/p/x"),
        ("location /p { return 301 /p/; } location /p/ { alias /o/; }", "/o/x"),
        ("location /p { return 301 /p/; } location /p/ { }", "/srv/p/x"),
        ("location /p { rewrite ^ /q permanent; } location /p/ { }", "/srv/p/x"),
        ("location /p/ { return 403; } location /p { alias /o; }", "403 403"),
    ] {
        let import = imported(&format!("server {{ root /srv; {locations} }}"));
        let site = parsed(&import).main;
        assert_eq!(served(&site, "/p/x"), expected, "{locations}\n{}", import.text);
        assert_eq!(served(&site, "/px"), "404", "{locations}\n{}", import.text);
        assert_eq!(served(&site, "/a"), "/srv/a", "{locations}\n{}", import.text);
        let told = "it is for that path alone: another one has a slash";
        assert!(reasons(&import).contains(told), "{locations}");
    }
}

#[test]
fn a_longer_location_has_precedence_over_what_a_shorter_one_says_of_its_paths() {
    for (locations, expected) in [
        ("location /a/ { rewrite ^/a/b/(.*)$ /n/$1 permanent; } location /a/b/ { }", "/srv/a/b/x"),
        ("location /a/ { rewrite ^/a/(.*)$ /n/$1 permanent; } location /a/b/ { }", "/srv/a/b/x"),
        ("location /a/ { deny all; } location /a/b/ { }", "/srv/a/b/x"),
        ("location /a/ { return 200 x; } location /a/b/ { }", "/srv/a/b/x"),
        ("location /a { deny all; } location /a/b/ { deny all; }", "403 403 Forbidden"),
        ("location /a { autoindex on; } location /a/b { return 410; }", "410 410"),
    ] {
        let import = imported(&format!("server {{ root /srv; {locations} }}"));
        let found = served(&parsed(&import).main, "/a/b/x");
        assert_eq!(found, expected, "{locations}\n{}", import.text);
    }
}

#[test]
fn a_path_of_a_folder_that_is_for_something_else_is_not_served_from_it() {
    for location in [
        "location = / { proxy_pass http://x; } location / { root /srv; }",
        "location = / { deny all; }",
        "location = / { return 302 /start/; }",
        "location = / { rewrite ^ /start/ permanent; }",
        "location / { rewrite ^/$ /start/ permanent; }",
        "rewrite ^/$ /start/ permanent;",
    ] {
        let import = imported(&format!("server {{ root /srv; {location} }}"));
        let site = parsed(&import).main;
        assert_eq!(served(&site, "/"), "404", "{location}\n{}", import.text);
        assert_eq!(served(&site, "/a"), "/srv/a", "{location}\n{}", import.text);
        assert!(!import.left.is_empty() || location.contains("deny"), "{location}");
    }
    let import = imported("server { root /srv; location = /index.html { return 301 /x; } }");
    let site = parsed(&import).main;
    let route = site.routes.iter().find(|route| route.path == "/").expect("a folder");
    assert_eq!(route.settings[0].value, "/index.html", "{}", import.text);
    let none = imported("server { location @x { return 200 x; } }");
    assert_eq!(served(&parsed(&none).main, "/"), "403 403 Forbidden", "{}", none.text);
    assert!(reasons(&none).contains("it serves nothing that can be taken over"));
}

#[test]
fn what_looks_for_other_files_than_the_folder_around_it_is_not_part_of_it() {
    let import = imported(
        "server { root /srv; autoindex on; location ~ ^/a/ { try_files $uri/index.html =404; } \
         location ~ \\.css$ { try_files $uri =404; } location ~ ^/b/ { autoindex off; } \
         location ~ \\.js$ { autoindex off; } location = /c/ { autoindex off; } \
         location = /d { try_files $uri/index.html =404; } location /e.x { try_files \
         $uri/index.html =404; } location = /f { try_files $uri =404; } location /g.x { } }",
    );
    let site = parsed(&import).main;
    for (path, expected) in [
        ("/a/x", "404"),
        ("/b/x", "404"),
        ("/x.css", "/srv/x.css"),
        ("/x.js", "/srv/x.js"),
        ("/c/", "403 403 Forbidden"),
        ("/c/x", "/srv/c/x"),
        ("/d", "403 403 Forbidden"),
        ("/e.x", "403 403 Forbidden"),
        ("/f", "403 403 Forbidden"), // If it is a folder, it is not listed.
        ("/g.x", "/srv/g.x"),
    ] {
        assert_eq!(served(&site, path), expected, "{path}\n{}", import.text);
    }
}

/// Pages that nginx does not show to all are not pages here.
#[test]
fn a_page_for_errors_is_what_nginx_serves_at_its_path() {
    for (directives, expected) in [
        ("", Some("/srv/e/404.html")),
        ("location / { root /other; }", Some("/other/e/404.html")),
        ("location = /e/404.html { internal; }", Some("/srv/e/404.html")),
        ("location /e/ { internal; root /pages; }", Some("/pages/e/404.html")),
        ("location ~ \\.html$ { expires 1d; }", Some("/srv/e/404.html")),
        ("location ~ \\.html$ { deny all; } location = /e/404.html { }", Some("/srv/e/404.html")),
        ("location /e { deny all; }", None),
        ("location /e/ { allow 10.0.0.0/8; deny all; }", None),
        ("location = /e/404.html { proxy_pass http://x; }", None),
        ("location = /e/404.html { internal; deny all; }", None),
        ("location /e/ { alias /pages/; }", None),
        ("location /e/ { return 200 x; }", None),
        ("location ~ \\.html$ { deny all; }", None),
        ("location ~ ^/e/ { root /pages; }", None),
        ("allow 10.0.0.0/8; deny all;", None),
    ] {
        let text = format!("server {{ root /srv; error_page 404 /e/404.html; {directives} }}");
        let import = imported_with(&text, &|_| Ok("gone".to_owned()));
        let line = expected.map(|file| format!("[[error-page]]\nstatus = 404\nfile = \"{file}\""));
        if let Some(line) = line {
            assert!(import.text.contains(&line), "{directives}\n{}", import.text);
        } else {
            assert!(!import.text.contains("error-page"), "{directives}\n{}", import.text);
            let why = "the page /e/404.html is not shown to all: left out";
            assert!(reasons(&import).contains(why), "{directives}\n{}", reasons(&import));
        }
    }
    let own = imported("server { root /srv; location /a/ { error_page 404 /x.html; } }");
    assert!(reasons(&own).contains("pages for errors are those of the server"));
    let none = imported("server { root /srv; index index.php; }");
    assert!(none.text.contains("index = []"), "{}", none.text);
}

#[test]
fn a_folder_whose_index_is_left_out_is_not_listed_in_its_place() {
    let of = |location: &str| {
        let import = imported(&format!("server {{ root /srv; autoindex on; {location} }}"));
        let file = parsed(&import);
        let route = file.main.routes.iter().find(|route| route.path == "/").expect("a route");
        let listing = route.settings.iter().find(|one| one.name == "listing").expect("a setting");
        (served(&file.main, "/"), served(&file.main, "/a/"), listing.value.clone() == "on")
    };
    let (none, root, folder) = ("404".to_owned(), "/srv/".to_owned(), "/srv/a".to_owned());
    for (location, expected) in [
        ("", (root.clone(), folder.clone(), true)),
        ("location = /x.html { deny all; }", (root.clone(), folder.clone(), true)),
        ("location = /index.html { deny all; }", (none.clone(), folder.clone(), true)),
        ("location = /index.html { return 301 /x; }", (none.clone(), folder.clone(), true)),
        ("location = /a/index.html { deny all; }", (root.clone(), none.clone(), true)),
        ("location /a { deny all; }", (root.clone(), "403 403 Forbidden".to_owned(), true)),
        ("location /index { deny all; }", (root.clone(), folder.clone(), false)),
        ("location ~ \\.html$ { deny all; }", (root.clone(), folder.clone(), false)),
        ("location ~ ^/a/.*\\.html$ { deny all; }", (root.clone(), folder.clone(), false)),
        ("location ~ \\.(bak|php)$ { deny all; }", (root.clone(), folder.clone(), true)),
    ] {
        assert_eq!(of(location), expected, "{location}");
    }
}
