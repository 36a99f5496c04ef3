//! `gustnado check --explain`: what happens with a request is what a server then does.

mod gustnado;

use std::fs;
use std::path::Path;

use gustnado::{Ended, Server, command, ended};
use rcgen::generate_simple_self_signed;

/// What is said of the private route.
const REFUSED: &str = "allow 10.0.0.0/8; deny 10.1.1.1: refused, by the client's address";
const MET: &str = "allow 10.0.0.0/8; deny 10.1.1.1: met, or not reached";

const SITE: &str = "
listen = \"127.0.0.1:0\"

[[site]]
hosts = [\"example.org\", \"*.example.org\"]
root = \"./dist\"
spa = \"index.html\"
precompressed = \"on\"
forbidden = [\"*.map\"]

[[site.rewrite]]
from = \"/old/{*rest}\"
to = \"/assets/{rest}\"

[[site.route]]
path = \"/private\"
folder = \"./private\"
allow = [\"10.0.0.0/8\"]
deny = [\"10.1.1.1\"]

[[site.route]]
path = \"/docs\"
folder = \"./docs\"
clean-urls = true

[[site.route.cache]]
path = \"/**\"
value = \"public, max-age=60\"

[[site.route]]
path = \"/moved/{*rest}\"
redirect = \"https://example.net/{rest}\"
status = 301

[site.headers]
X-Site = \"one\"
";

fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("site.toml", SITE),
        ("dist/index.html", "<title>app</title>"),
        ("dist/assets/main.9f2c1b7a.js", "app()"),
        ("dist/assets/main.9f2c1b7a.js.br", "br"),
        ("dist/assets/main.9f2c1b7a.js.gz", "gz"),
        ("dist/app.map", "secret"),
        ("private/a.txt", "secret"),
        ("private/assets/main.9f2c1b7a.js", "secret"),
        ("docs/about.html", "about"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    folder
}

fn explained(folder: &Path, args: &[&str]) -> Ended {
    ended(command(&["check", "--explain"]).args(args).arg("site.toml").current_dir(folder))
}

/// Returns the lines of a kind; lines of the same kind follow without it.
fn lines<'e>(found: &'e Ended, kind: &str) -> Vec<&'e str> {
    let mut current = "";
    let mut lines = Vec::new();
    for line in found.stdout.lines() {
        let (name, text) = line.split_at_checked(11).unwrap_or((line, ""));
        if !name.trim().is_empty() {
            current = name.trim();
        }
        if current == kind {
            lines.push(text.trim());
        }
    }
    lines
}

#[test]
fn a_file_is_named_with_its_site_route_rule_and_coding() {
    let place = place();
    let url = "GET https://www.example.org/assets/main.9f2c1b7a.js";
    let found = explained(place.path(), &[url, "-H", "Accept-Encoding: gzip, br"]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{found:?}");
    let file = place.path().join("dist/assets/main.9f2c1b7a.js").canonicalize().expect("there");
    for (kind, expected) in [
        ("request", format!("{url}, from 127.0.0.1")),
        ("site", "*.example.org (site.toml:4)".to_owned()),
        ("route", "no route has this path: the root serves it, if there is one".to_owned()),
        ("file", file.display().to_string()),
        (
            "cache rule",
            "public, max-age=31536000, immutable (hashed names beneath assets)".to_owned(),
        ),
        ("coding", "br is sent; beside the file: gzip, br; made by the server: none".to_owned()),
    ] {
        assert_eq!(lines(&found, kind), [expected], "{kind}: {}", found.stdout);
    }
    let response = lines(&found, "response");
    assert_eq!(response[0], "200 OK", "{}", found.stdout);
    for field in ["Content-Encoding: br", "X-Site: one", "Vary: Accept-Encoding"] {
        assert!(response.contains(&field), "{field}: {response:?}");
    }
    let looked = lines(&found, "looked for");
    assert!(looked.contains(&"/assets/main.9f2c1b7a.js.zst: not there"), "{looked:?}");
}

#[test]
fn what_leads_elsewhere_is_told_step_by_step() {
    let place = place();
    let of = |args: &[&str]| explained(place.path(), args);
    let page = of(&["GET http://example.org/users/7", "-H", "Accept: text/html"]);
    assert!(page.stdout.contains(", for the page of the application (spa)\n"), "{}", page.stdout);
    assert_eq!(lines(&page, "cache rule"), ["no-cache (pages)"], "{}", page.stdout);
    assert_eq!(lines(&page, "response")[0], "200 OK", "{}", page.stdout);
    let rewritten = of(&["GET http://example.org/old/main.9f2c1b7a.js"]);
    let expected = "/old/main.9f2c1b7a.js is served as /assets/main.9f2c1b7a.js";
    assert_eq!(lines(&rewritten, "rewrite"), [expected], "{}", rewritten.stdout);
    let clean = of(&["GET http://example.org/docs/about"]);
    assert_eq!(lines(&clean, "route"), ["/docs (site.toml:22)"], "{}", clean.stdout);
    let looked = lines(&clean, "looked for");
    assert_eq!(looked[..2], ["/about: not there", "/about.html: a file"], "{}", clean.stdout);
    let rule = ["public, max-age=60 (cache, path /**)"];
    assert_eq!(lines(&clean, "cache rule"), rule, "{}", clean.stdout);
    let redirect = of(&["GET http://example.org/docs/about.html"]);
    assert_eq!(lines(&redirect, "redirect"), ["to another spelling of the path"]);
    assert!(lines(&redirect, "response").contains(&"Location: /docs/about"), "{redirect:?}");
    let moved = of(&["GET http://example.org/moved/a?b"]);
    assert_eq!(lines(&moved, "route"), ["/moved/{*rest} (site.toml:31)"], "{}", moved.stdout);
    assert!(lines(&moved, "response").contains(&"Location: https://example.net/a?b"), "{moved:?}");
    let forbidden = of(&["GET http://example.org/app.map"]);
    assert_eq!(lines(&forbidden, "looked for")[0], "/app.map: forbidden, and so not there");
    assert_eq!(lines(&forbidden, "response")[0], "404 Not Found", "{}", forbidden.stdout);
    let hidden = of(&["GET http://example.org/.env"]);
    assert!(lines(&hidden, "looked for")[0].contains("(hidden)"), "{}", hidden.stdout);
}

#[test]
fn a_page_that_another_route_guards_is_told_to_be_none() {
    let place = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("dist/private.html", "secret"),
        (
            "site.toml",
            "root = \"./dist\"\nclean-urls = true\n\
             [[route]]\npath = \"/private.html\"\nanswer = \"no\"\nstatus = 403\n",
        ),
    ] {
        fs::create_dir_all(place.path().join("dist")).expect("a folder");
        fs::write(place.path().join(name), text).expect("written");
    }
    let found = explained(place.path(), &["GET http://a.org/private"]);
    let looked = lines(&found, "looked for");
    let expected = "/private.html: another route responds to that path, and so not there";
    assert_eq!(looked, ["/private: not there", expected], "{}", found.stdout);
    assert_eq!(lines(&found, "response")[0], "404 Not Found", "{}", found.stdout);
}

#[test]
fn a_file_of_a_former_release_is_found_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for (release, script) in [("20260101", "main.1f2c3b4a.js"), ("20260102", "main.9f8c7b6a.js")] {
        let assets = folder.path().join("releases").join(release).join("assets");
        fs::create_dir_all(&assets).expect("a folder");
        fs::write(assets.join(script), release).expect("written");
    }
    let link = folder.path().join("current");
    std::os::unix::fs::symlink("releases/20260102", link).expect("a link");
    let text = "root = \"./current\"\ncache-control = \"on\"\nkeep-old-assets = \"1h\"\n";
    fs::write(folder.path().join("site.toml"), text).expect("written");
    let found = explained(folder.path(), &["GET http://a.org/assets/main.1f2c3b4a.js"]);
    let releases = folder.path().canonicalize().expect("there").join("releases");
    let former = releases.join("20260101").display().to_string();
    assert_eq!(
        lines(&found, "folder"),
        [
            releases.join("20260102").display().to_string(),
            format!("{former}, a former release (keep-old-assets)")
        ],
        "{}",
        found.stdout
    );
    let file = format!("{former}/assets/main.1f2c3b4a.js");
    assert_eq!(lines(&found, "file"), [file], "{}", found.stdout);
    assert_eq!(lines(&found, "response")[0], "200 OK", "{}", found.stdout);
}

#[test]
fn the_client_that_asks_is_named_and_refused_as_by_a_server() {
    let place = place();
    let url = "GET http://example.org/private/a.txt";
    for (from, status, verdict) in [
        ("192.0.2.7", "403 Forbidden", REFUSED),
        ("10.1.1.1", "403 Forbidden", REFUSED),
        ("10.1.1.2", "200 OK", MET),
        ("::ffff:10.1.1.2", "200 OK", MET),
    ] {
        let found = explained(place.path(), &[url, "--from", from]);
        assert_eq!(lines(&found, "access")[0], verdict, "{from}: {}", found.stdout);
        assert_eq!(lines(&found, "response")[0], status, "{from}: {}", found.stdout);
    }
    let url = "GET http://example.org/private/assets/main.9f2c1b7a.js";
    let found = explained(place.path(), &[url, "--from", "10.1.1.2"]);
    let rule = "private, max-age=31536000, immutable (hashed names beneath assets, not for all \
        clients)";
    assert_eq!(lines(&found, "cache rule"), [rule], "{}", found.stdout);
}

#[test]
fn a_password_is_asked_for_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "ann:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\n";
    fs::write(folder.path().join("users"), line).expect("written");
    fs::write(folder.path().join("a.txt"), "a").expect("written");
    let text = "root = \".\"\nbasic-auth = \"users\"\nrate-limit = \"5/s\"\n";
    fs::write(folder.path().join("site.toml"), text).expect("written");
    let found = explained(folder.path(), &["GET http://a.org/a.txt"]);
    let access = lines(&found, "access");
    assert_eq!(access[0], "rate-limit 5/s: met, or not reached", "{}", found.stdout);
    assert!(access[1].ends_with("users: asked for a user and a password"), "{}", found.stdout);
    assert_eq!(lines(&found, "response")[0], "401 Unauthorized", "{}", found.stdout);
    assert_eq!(lines(&found, "site"), ["the only one"], "{}", found.stdout);
    let sent = "Authorization: Basic YW5uOm5vdCBpdA==";
    let found = explained(folder.path(), &["GET http://a.org/a.txt", "-H", sent]);
    assert_eq!(lines(&found, "response")[0], "401 Unauthorized", "{}", found.stdout);
}

#[test]
fn an_explanation_is_what_the_server_does() {
    let place = place();
    let file = place.path().join("site.toml").display().to_string();
    let server = Server::start_by(&mut command(&["serve", &file]));
    for target in ["/assets/main.9f2c1b7a.js", "/docs/about", "/moved/x", "/none.js", "/"] {
        let found = explained(place.path(), &[&format!("GET http://example.org{target}")]);
        let answer = server.get_with(target, "Host: example.org\r\nConnection: close\r\n");
        let (head, _) = answer.split_once("\r\n\r\n").expect("a head");
        let told = lines(&found, "response");
        let mut fields = head.lines();
        let status = fields.next().expect("a status").trim_start_matches("HTTP/1.1 ");
        assert_eq!(told[0], status, "{target}: {}", found.stdout);
        let is_stable = |field: &&str| {
            !["Date:", "Connection:", "Age:"].iter().any(|name| field.starts_with(name))
        };
        let expected: Vec<&str> = fields.filter(is_stable).collect();
        let told: Vec<&str> = told[1..].iter().copied().filter(|one| is_stable(one)).collect();
        assert_eq!(told, expected, "{target}");
    }
}

#[test]
fn a_host_without_a_site_says_who_serves_it() {
    let place = place();
    let found = explained(place.path(), &["GET http://other.org/"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let line = "no site has the host other.org: what is outside of all sites serves it";
    assert_eq!(lines(&found, "site"), [line], "{}", found.stdout);
}

#[test]
fn a_request_in_clear_is_sent_to_https_before_its_route_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "a").expect("written");
    let text = "root = \".\"\nhttps-redirect = true\nhsts = \"1d\"\n";
    fs::write(folder.path().join("site.toml"), text).expect("written");
    let found = explained(folder.path(), &["GET http://a.org/a.txt"]);
    assert_eq!(lines(&found, "response")[0], "308 Permanent Redirect", "{}", found.stdout);
    assert!(lines(&found, "redirect")[0].contains("(https-redirect)"), "{}", found.stdout);
    assert!(lines(&found, "route").is_empty(), "{}", found.stdout);
    let found = explained(folder.path(), &["GET https://a.org/a.txt"]);
    let response = lines(&found, "response");
    assert_eq!(response[0], "200 OK", "{}", found.stdout);
    assert!(response.iter().any(|field| field.starts_with("Strict-Transport-Security:")));
}

#[test]
fn the_certificate_of_the_host_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let both = made.cert.pem() + &made.signing_key.serialize_pem();
    fs::write(folder.path().join("both.pem"), both).expect("written");
    let text = "root = \".\"\nlisten = [\"https://127.0.0.1:0\"]\ntls-cert = \"both.pem\"\n\
                tls-strict-names = true\n";
    fs::write(folder.path().join("site.toml"), text).expect("written");
    let found = explained(folder.path(), &["GET https://a.test/"]);
    let certificate = lines(&found, "certificate");
    assert!(certificate[0].contains("both.pem, for a.test; "), "{}", found.stdout);
    let found = explained(folder.path(), &["GET https://b.test/"]);
    let none = "none for this host: its handshakes are refused (tls-strict-names)";
    assert_eq!(lines(&found, "certificate"), [none], "{}", found.stdout);
}

#[test]
fn an_upload_is_explained_and_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("drop")).expect("a folder");
    fs::write(folder.path().join("drop/a.txt"), "it stays").expect("written");
    let text = "[[route]]\npath = \"/drop\"\nfolder = \"drop\"\nupload = true\n\
                upload-overwrite = true\n";
    fs::write(folder.path().join("site.toml"), text).expect("written");
    for (name, status) in [("a.txt", "204"), ("b.txt", "201")] {
        let found = explained(folder.path(), &[&format!("PUT http://example.org/drop/{name}")]);
        assert!(lines(&found, "response")[0].starts_with(status), "{}", found.stdout);
    }
    let names: Vec<_> = fs::read_dir(folder.path().join("drop")).expect("a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read(folder.path().join("drop/a.txt")).expect("a file"), b"it stays");
}

#[test]
fn programs_get_json() {
    let place = place();
    let found = explained(place.path(), &["GET http://example.org/", "--json"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    for part in ["{\"status\":200,\"fields\":[[\"", "\"facts\":[[\"request\",\"GET http://example"]
    {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
    assert_eq!(found.stdout.lines().count(), 1, "{}", found.stdout);
}

#[test]
fn mistakes_are_told_with_their_remedy_and_code() {
    let place = place();
    for (args, code, part) in [
        (&["GET /a"][..], 2, "--explain: expected a URL such as https://example.org/a.html"),
        (&["get http://a.org/"], 2, "in capital letters, found \"get\""),
        (&[""], 2, "expected a method and a URL"),
        (&["GET http://a.org/", "-H", "x"], 2, "--header: expected a header field"),
        (&["GET http://a.org/", "--from", "x"], 2, "--from: expected an IP address"),
    ] {
        let found = explained(place.path(), args);
        assert_eq!(found.code, Some(code), "{args:?}: {found:?}");
        assert!(found.stderr.contains(part), "{args:?}: {found:?}");
    }
    fs::write(place.path().join("site.toml"), "prot = 1\n").expect("written");
    let found = explained(place.path(), &["GET http://a.org/"]);
    assert_eq!(found.code, Some(78), "{found:?}");
    fs::write(place.path().join("site.toml"), "root = \".\"\nbasic-auth = \"none\"\n")
        .expect("written");
    let found = explained(place.path(), &["GET http://a.org/"]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(78), ""), "{found:?}");
}

#[test]
fn online_looks_at_the_network_and_a_check_without_it_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, args: &[&str]| {
        fs::write(folder.path().join("site.toml"), text).expect("written");
        ended(command(&["check"]).args(args).arg("site.toml").current_dir(folder.path()))
    };
    let lost = "root = \".\"\nlisten = [\"no-such-host.invalid:8080\"]\n";
    assert_eq!(check(lost, &[]).code, Some(0));
    let found = check(lost, &["--online"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let line = "  failed  listen no-such-host.invalid:8080: the name cannot be resolved";
    assert!(found.stdout.contains(line), "{}", found.stdout);
    assert!(found.stderr.contains("1 check in the network failed, see above"), "{found:?}");
    let free = "root = \".\"\nlisten = [\"127.0.0.1:0\"]\ncontrol = \"./x.sock\"\n\
                [[site]]\nhosts = [\"localhost\", \"no-such-host.invalid\"]\nroot = \".\"\n";
    let found = check(free, &["--online"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    for part in [
        "\nNetwork\n  ok      listen 127.0.0.1:0: 127.0.0.1:0 is free\n",
        "x.sock: free\n",
        "  ok      site localhost: ",
        "  note    site no-such-host.invalid: the name has no address here",
    ] {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
    let acme = "root = \".\"\nlisten = [\"127.0.0.1:0\"]\nacme = [\"no-such-host.invalid\"]\n\
                acme-directory = \"https://127.0.0.1:1/directory\"\nacme-dir = \"./acme\"\n";
    let found = check(acme, &["--online"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    for part in [
        "  failed  acme no-such-host.invalid: the name has no address, so that no authority",
        "  failed  acme-directory https://127.0.0.1:1/directory: ",
    ] {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
}
