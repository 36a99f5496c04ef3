//! `gustnado import` and `gustnado init`: what they write is served, and what is closed stays so.

mod gustnado;

use gustnado::{Server, command, ended};
use std::fs;
use std::path::{Path, PathBuf};

fn written(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("written");
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// A configuration of a PHP application as distributions install it, with an included file.
fn nginx(folder: &Path) -> String {
    let root = folder.join("www").display().to_string();
    let text = "worker_processes auto;\nevents { worker_connections 768; }\nhttp {\n  include \
                mime.types;\n  sendfile on;\n  keepalive_timeout 65;\n  include \
                sites-enabled/*;\n}\n";
    let site = format!(
        "server {{\n  listen 127.0.0.1:8080 default_server;\n  server_name _;\n  root {root};\n  \
         index index.php index.html;\n  error_page 404 /404.html;\n  location / {{ try_files $uri \
         $uri/ /index.php?$query_string; }}\n  location ~ \\.php$ {{ include \
         snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php.sock; }}\n  location ~ /\\.ht {{ \
         deny all; }}\n  location /private {{ auth_basic \"x\"; auth_basic_user_file htpasswd; \
         }}\n  location /api/ {{ proxy_pass http://127.0.0.1:3000; }}\n  location = /old {{ \
         return 301 /new; }}\n}}\n"
    );
    written(
        folder,
        &[
            ("nginx.conf", text),
            ("sites-enabled/default", &site),
            ("www/index.html", "home"),
            ("www/index.php", "<?php secret();"),
            ("www/lib/x.php", "<?php secret();"),
            ("www/lib/x.PHP", "<?php secret();"),
            ("www/.htaccess", "secret"),
            ("www/404.html", "no such page"),
            ("www/app.css", "css"),
            ("www/private/a.txt", "secret"),
            ("www/privates.txt", "secret"),
            ("www/api/a.txt", "secret"),
        ],
    );
    path(folder, "nginx.conf")
}

#[test]
fn an_import_is_served_and_fails_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = nginx(folder.path());
    let to = path(folder.path(), "site.toml");
    let found = ended(&mut command(&["import", &from, "-o", &to]));
    assert_eq!((found.code, found.stdout.as_str()), (Some(0), ""), "{found:?}");
    let site = path(folder.path(), "sites-enabled/default");
    let htpasswd = path(folder.path(), "htpasswd");
    for part in [
        format!("{site}:8: fastcgi_pass unix:/run/php.sock: programs are not run"),
        format!("{site}:10: auth_basic_user_file {htpasswd}: no such file"),
        format!("{site}:11: proxy_pass http://127.0.0.1:3000: requests are not forwarded"),
        format!("{to}: "),
    ] {
        assert!(found.stderr.contains(&part), "{part}\n{}", found.stderr);
    }
    let checked = ended(&mut command(&["check", &to]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let server = Server::start(&["serve", &to]);
    for (path, code, part) in [
        ("/", "200", "home"),
        ("/app.css", "200", "css"),
        ("/old", "301", "Location: /new"),
        ("/none", "404", "no such page"),
        ("/index.php", "404", "no such page"),
        ("/lib/x.php", "404", ""),
        ("/lib/x.PHP", "404", ""),
        ("/lib/x%2ephp", "404", ""),
        ("/./lib//x.php", "404", ""),
        ("/lib/x.php/", "404", ""),
        ("/.htaccess", "404", ""),
        ("/private/a.txt", "403", ""),
        ("/private", "403", ""),
        ("/privates.txt", "404", ""),
        ("/api/a.txt", "403", ""),
    ] {
        let answer = server.get(path);
        assert_eq!(status(&answer), code, "{path}: {answer}");
        assert!(answer.contains(part) && !answer.contains("secret"), "{path}: {answer}");
    }
}

/// Serves what is imported of a configuration, and returns what was said of it. `ROOT` is a folder
/// of files with secrets.
fn served(text: &str) -> (tempfile::TempDir, Server, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().display().to_string();
    let files = ["index.html", "pub/index.html", "pub/a.txt", "pub/in/a.txt", "pub/plan.pdf"];
    let files = files.iter().chain(&["other/a.txt", "other/in/a.txt", "a.bak", "list/a/x.txt"]);
    let files: Vec<(&str, &str)> = files.map(|name| (*name, "secret")).collect();
    written(folder.path(), &files);
    written(
        folder.path(),
        &[("users", "ann:$2y$05$f9dxuBAu/9BMC1P9MXb4oe7r5aV0TaHJz1Il82oAiymTgRlRs.hAO\n")],
    );
    let from = path(folder.path(), "nginx.conf");
    fs::write(&from, text.replace("ROOT", &root)).expect("written");
    let to = path(folder.path(), "site.toml");
    let found = ended(&mut command(&["import", &from, "-o", &to]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let server = Server::start(&["serve", &to]);
    (folder, server, found.stderr)
}

/// Returns the status of each path that a server's directives lead to, and what was said of them.
fn statuses(directives: &str, paths: &[&str]) -> (Vec<String>, String) {
    let text = format!("server {{ listen 127.0.0.1:8080; root ROOT; {directives} }}");
    let (_folder, server, said) = served(&text);
    let status = |path: &&str| {
        let answer = server.get(path);
        let status = status(&answer).to_owned();
        assert!(status == "200" || !answer.contains("secret"), "{path}: {answer}");
        status
    };
    (paths.iter().map(status).collect(), said)
}

#[test]
fn a_location_within_others_is_served_as_by_nginx_or_not_at_all() {
    for (directives, paths, expected) in [
        (
            "auth_basic x; auth_basic_user_file users; location /pub/ { auth_basic off; } \
             location /pub/in/ { } location = /pub/plan.pdf { }",
            &["/pub/a.txt", "/pub/in/a.txt", "/pub/./in//a.txt", "/pub/plan.pdf", "/a.bak"][..],
            &["200", "401", "401", "403", "401"][..],
        ),
        (
            "location /other { alias ROOT/list/; autoindex on; } location /other/ { deny all; }",
            &["/other", "/other/a.txt", "/other/%61.txt", "/pub/a.txt"],
            &["403", "403", "403", "200"],
        ),
        (
            "location ~* ^/pub/.*\\.html$ { types { text/plain html; } } location /list/ { types { \
             text/plain html; text/html txt; } }",
            &["/pub/index.html", "/pub/", "/pub/a.txt", "/list/a/x.txt", "/index.html"],
            &["404", "404", "200", "403", "200"],
        ),
        (
            "location /docs { return 301 /docs/; } location /docs/ { alias ROOT/pub/; }",
            &["/docs", "/docs/", "/docs/a.txt"],
            &["301", "200", "200"],
        ),
        (
            "location = / { proxy_pass http://127.0.0.1:1; } location / { }",
            &["/", "/pub/", "/a.bak"],
            &["404", "200", "200"],
        ),
    ] {
        let (found, said) = statuses(directives, paths);
        assert_eq!(found, expected, "{directives}\n{paths:?}\n{said}");
    }
}

#[test]
fn expressions_and_look_ups_leave_nothing_readable_that_nginx_does_not_serve() {
    for (directives, paths, expected) in [
        (
            "location ~ /\\.(?!well-known)|\\.(sql|bak)$ { deny all; }",
            &["/a.bak", "/%61.BAK", "/pub/a.txt"][..],
            &["404", "404", "200"][..],
        ),
        (
            "autoindex on; location /pub/ { try_files $uri/index.html =404; } location /list/ { \
             try_files $uri =404; } location /other/ { try_files $uri/ =404; }",
            &["/pub/", "/pub/a.txt", "/list/", "/list/a/x.txt", "/other/a.txt"],
            &["200", "404", "404", "200", "403"],
        ),
        (
            "autoindex on; location = /pub/index.html { deny all; } error_page 404 /index.html; \
             location = /index.html { deny all; }",
            &["/pub/", "/list/", "/pub/a.txt", "/none"],
            &["404", "200", "200", "404"],
        ),
    ] {
        let (found, said) = statuses(directives, paths);
        assert_eq!(found, expected, "{directives}\n{paths:?}\n{said}");
    }
}

#[test]
fn hosts_of_other_servers_get_no_files_of_the_default_one() {
    let first = "server { listen 127.0.0.1:8080 default_server; server_name one.test; root ROOT; }";
    let redirect = "server { listen 127.0.0.1:8080; server_name shop.test; return 301 \
                    https://$host$request_uri; }";
    let https = "server { listen 8443 ssl; server_name shop.test; ssl_certificate /none.pem; }";
    let wider = "server { listen 8080; server_name shop.test; root ROOT; }";
    for (others, code) in [
        (redirect.to_owned(), "301"),
        (format!("{redirect}\n{https}"), "301"),
        (wider.to_owned(), "403"),
    ] {
        let (_folder, server, said) = served(&format!("{first}\n{others}"));
        for (host, code) in [("shop.test", code), ("one.test", "200"), ("other.test", "200")] {
            let fields = format!("Host: {host}\r\nConnection: close\r\n");
            let answer = server.get_with("/index.html", &fields);
            assert_eq!(status(&answer), code, "{others} {host}: {answer}\n{said}");
        }
    }
}

#[test]
fn no_error_is_kept_for_as_long_as_files_are() {
    let (_folder, server, said) = served(
        "server { listen 127.0.0.1:8080; root ROOT; add_header X-Frame-Options DENY; location \
         /pub/ { expires 1y; add_header Cache-Control \"public, immutable\"; add_header X-A a \
         always; } location ~ \\.pdf$ { expires 1h; } }",
    );
    let year = "\r\nCache-Control: max-age=31536000, public, immutable\r\n";
    for (path, code, parts, others) in [
        ("/pub/a.txt", "200", &[year, "X-A: a"][..], &["X-Frame-Options"][..]),
        ("/pub/plan.pdf", "200", &["Cache-Control: max-age=3600\r\n", "X-A: a"], &["immutable"]),
        ("/pub/none.js", "404", &["X-A: a"], &["Cache-Control", "X-Frame-Options"]),
        ("/index.html", "200", &["X-Frame-Options: DENY"], &["Cache-Control"]),
        ("/none", "404", &[], &["X-Frame-Options", "Cache-Control"]),
    ] {
        let answer = server.get(path);
        assert_eq!(status(&answer), code, "{path}: {answer}\n{said}");
        assert!(parts.iter().all(|part| answer.contains(part)), "{path}: {answer}");
        assert!(!others.iter().any(|part| answer.contains(part)), "{path}: {answer}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_no_import_of_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().display();
    let text = format!("server {{ root {root};\nlocation /gone/ {{ root {root}/none; }} }}");
    let (from, to) = (path(folder.path(), "nginx.conf"), path(folder.path(), "site.toml"));
    fs::write(&from, text).expect("written");
    let found = ended(&mut command(&["import", &from, "-o", &to]));
    let line = format!("{from}:2: location /gone/: there is no folder {root}/none/gone here");
    assert!(found.stderr.contains(&line), "{found:?}");
    assert!(!found.stderr.contains("everything was taken over"), "{found:?}");
    let checked = ended(&mut command(&["check", &to]));
    assert!(checked.stderr.contains(&format!("{root}/none/gone")), "{checked:?}");
    fs::create_dir_all(folder.path().join("none/gone")).expect("a folder");
    let found = ended(&mut command(&["import", &from, "-o", &to, "--force"]));
    assert!(found.stderr.contains("everything was taken over"), "{found:?}");
}

#[test]
fn an_import_goes_to_standard_output_and_replaces_nothing_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = nginx(folder.path());
    let found = ended(&mut command(&["import", &from]));
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.stdout.contains("\n[[route]]\npath = \"/\"\n"), "{}", found.stdout);
    let to = path(folder.path(), "there.toml");
    fs::write(&to, "mine").expect("written");
    let found = ended(&mut command(&["import", &from, "-o", &to]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("it is there already; --force replaces it"), "{found:?}");
    assert_eq!(fs::read_to_string(&to).expect("it is there"), "mine");
    let found = ended(&mut command(&["import", &from, "-o", &to, "--force"]));
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_ne!(fs::read_to_string(&to).expect("it is there"), "mine");
    fs::write(&from, "http {\n  server {\n").expect("written");
    let found = ended(&mut command(&["import", &from]));
    assert_eq!((found.code, found.stdout.as_str()), (Some(78), ""), "{found:?}");
    assert!(found.stderr.contains(&format!("{from}:3: expected }}, found the end")), "{found:?}");
    let found = ended(&mut command(&["import"]));
    assert_eq!(found.code, Some(2), "{found:?}");
}

#[test]
fn each_file_to_begin_with_is_well_and_serves() {
    for (kind, folder_name, page) in [
        ("static", "public", "/"),
        ("spa", "dist", "/users/7"),
        ("python", "static", "/"),
        ("behind-proxy", "public", "/"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut init = command(&["init", kind]);
        let found = ended(init.current_dir(folder.path()));
        assert_eq!((found.code, found.stdout.as_str()), (Some(0), ""), "{kind}: {found:?}");
        let line = format!("wrote site.toml and {folder_name}; `gustnado serve site.toml` serves");
        assert!(found.stderr.starts_with(&line), "{found:?}");
        let file = path(folder.path(), "site.toml");
        let text = fs::read_to_string(&file).expect("it is there");
        let comments = text.lines().filter(|line| line.contains('#')).count();
        assert!(comments >= 8, "{kind}: {comments} comments");
        let checked = ended(&mut command(&["check", &file]));
        assert_eq!(checked.code, Some(0), "{kind}: {checked:?}");
        let server = Server::start(&["serve", &file]);
        let navigation = "Host: x\r\nAccept: text/html\r\nConnection: close\r\n";
        let answer = server.get_with(page, navigation);
        assert!(status(&answer) == "200" && answer.contains("It works"), "{kind}: {answer}");
        assert!(answer.contains("X-Content-Type-Options: nosniff"), "{kind}: {answer}");
        let missing = server.get_with("/assets/main.9f2c1b7a.js", navigation);
        assert_eq!(status(&missing), "404", "{kind}: {missing}");
        if kind == "spa" {
            assert!(answer.contains("\r\nCache-Control: no-cache\r\n"), "{answer}");
        }
        // A file of one's own is not overwritten.
        fs::write(&file, "# mine\n").expect("written");
        let found = ended(command(&["init", kind]).current_dir(folder.path()));
        assert_eq!(found.code, Some(1), "{kind}: {found:?}");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "# mine\n");
        let found = ended(command(&["init", kind, "--force"]).current_dir(folder.path()));
        assert_eq!(found.code, Some(0), "{kind}: {found:?}");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
    }
}

#[test]
fn a_wrong_kind_is_told_with_its_neighbour() {
    let found = ended(&mut command(&["init", "sap"]));
    assert_eq!(found.code, Some(2), "{found:?}");
    assert!(found.stderr.contains("found \"sap\"; did you mean spa?"), "{found:?}");
    let found = ended(&mut command(&["init"]));
    assert!(
        found.stderr.contains("expected one of static, spa, python, behind-proxy"),
        "{found:?}"
    );
}

/// Every comment that looks like keys is what the file takes.
#[test]
fn what_is_commented_out_in_the_files_to_begin_with_is_well() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/init");
    for kind in ["static", "spa", "python", "behind-proxy"] {
        let place = tempfile::tempdir().expect("a folder");
        written(
            place.path(),
            &[
                ("public/x", ""),
                ("dist/assets/x", ""),
                ("static/x", ""),
                ("media/x", ""),
                ("404.html", ""),
            ],
        );
        let text = fs::read_to_string(folder.join(format!("{kind}.toml"))).expect("a template");
        let is_key = |line: &str| line.starts_with("# [") || line.contains(" = ");
        let uncommented =
            text.lines().filter(|line| !line.contains("tls-") && !line.contains("acme"));
        let uncommented = uncommented.filter(|line| {
            !["# listen", "# https", "# proxy-protocol"].iter().any(|key| line.starts_with(key))
        });
        let lines = uncommented.map(|line| match line.strip_prefix("# ") {
            Some(rest) if is_key(line) => rest,
            _ => line,
        });
        let file = path(place.path(), "site.toml");
        fs::write(&file, lines.collect::<Vec<_>>().join("\n")).expect("written");
        let found = ended(&mut command(&["check", &file]));
        assert_eq!(found.code, Some(0), "{kind}: {}", found.stderr);
    }
}
