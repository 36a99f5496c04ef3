//! What is wrong with files, in the words that a person reads; and any text at all.

use std::ffi::OsString;

use super::*;
use proptest::prelude::*;

/// A folder with what the files below name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("public")).expect("a folder in it");
    std::fs::write(folder.path().join("404.html"), "gone").expect("a page");
    folder
}

/// The problems of a file in that folder, each as it is printed, without the folder's name.
fn problems(text: &str) -> Vec<String> {
    let folder = folder();
    let error = SiteFile::parse(&folder.path().join("site.toml"), text).expect_err("wrong");
    let shown = format!("{}/", folder.path().display());
    error.to_string().lines().map(|line| line.replace(&shown, "")).collect()
}

fn read(text: &str) -> SiteFile {
    let folder = folder();
    SiteFile::parse(&folder.path().join("site.toml"), text).expect("nothing is wrong with it")
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_its_neighbour() {
    assert_eq!(
        problems("workers = 2\nheader-timeuot = \"5s\"\nwibble-wobble-bobble = 1\n"),
        [
            "site.toml:2: no key is called \"header-timeuot\"; did you mean \"header-timeout\"?",
            "site.toml:3: no key is called \"wibble-wobble-bobble\"; settings have the names of \
             flags (`gustnado serve --help`), and there are settings, headers, header, \
             rewrite, listen, route, site, error-page, cache",
        ]
    );
    assert_eq!(
        problems("[[route]]\npath = \"/\"\nfoldr = \"public\"\n[[site]]\nhost = [\"a\"]\n"),
        [
            "site.toml:1: route: expected one of folder, redirect and answer, found none; name \
             one",
            "site.toml:3: route: no key is called \"foldr\"; did you mean \"folder\"?",
            "site.toml:4: site: expected the key hosts; add it, for instance hosts = \
             [\"example.org\"]",
            "site.toml:5: site: no key is called \"host\"; did you mean \"hosts\"?",
        ]
    );
}

#[test]
fn a_wrong_value_says_what_was_expected_and_found() {
    assert_eq!(
        problems(
            "port = 70000\nhidden = \"yes\"\nscheduler = \"qeue\"\nheader-timeout = 1.5\n\
             workers = -1\nlimit-head-bytes = \"1t\"\nlisten = [\"127.0.0.1\", 5]\n"
        ),
        [
            "site.toml:1: port: expected a whole number from 0 to 65535, found 70000; leave it out \
             for 8080",
            "site.toml:2: hidden: expected true or false, without quotes, found \"yes\"; leave it \
             out for false",
            "site.toml:3: scheduler: expected one of pool, pool-shared, queue, queue-shared, found \
             \"qeue\"; did you mean queue?",
            "site.toml:4: header-timeout: expected a duration such as 30s, 5m or 500ms from 10ms \
             to 1h, found 1.5; leave it out for 10s",
            "site.toml:5: workers: expected a whole number from 1 to 1024, or auto, found -1; \
             leave it out for auto",
            "site.toml:6: limit-head-bytes: expected a size such as 4096, 64k or 10m from 256 to \
             65535, found \"1t\"; leave it out for 16k",
            "site.toml:7: listen: expected text in quotes, found 5",
            "site.toml:7: listen: expected an address such as 127.0.0.1:80, [::1]:80, \
             unix:/run/site.sock, \
             unix:@name or fd:3, found \"127.0.0.1\"",
        ]
    );
}

#[test]
fn what_says_the_same_twice_names_both_lines() {
    assert_eq!(
        problems("listen = [\"a:1\", \"a:1\"]\nport = 80\n[settings]\nport = 81\n"),
        [
            "site.toml:1: listen: \"a:1\" is set twice; leave one out",
            "site.toml:2: port: listen in line 1 replaces it; leave one out",
            "site.toml:4: port: line 2 sets it already; leave one of them out",
        ]
    );
    assert_eq!(
        problems(
            "[[site]]\nhosts = [\"a.org\", \"b.org\"]\n[[site]]\nhosts = \"A.org\"\n\
             [[site]]\nhosts = [\"b.org:80\"]\n"
        ),
        [
            "site.toml:4: site.hosts: \"A.org\" has a site already (line 2); merge their routes",
            "site.toml:6: site.hosts: expected a host without a port, found \"b.org:80\"",
        ]
    );
}

#[test]
fn what_files_of_settings_have_wrong_is_reported_with_the_rest() {
    let text = "basic-auth = \"none\"\nmime-types = \"404.html\"\nsigned-urls = \"404.html\"\n\
                cors = [\"any\"]\ncors-credentials = true\n[[route]]\npath = \"/a\"\n\
                answer = \"x\"\nbasic-auth = \"404.html\"\nstatus = 99\n";
    let found = problems(text);
    for (found, expected) in found.iter().zip([
        "site.toml:1: basic-auth \"none\" cannot be read: ",
        "site.toml:2: mime-types: 404.html: line 1: expected a type",
        "site.toml:3: signed-urls \"404.html\", line 1: expected a key of at least 32 characters",
        "site.toml:5: cors-credentials: expected origins by name, found any",
        "site.toml:9: basic-auth \"404.html\", line 1: expected ",
        "site.toml:10: route.status: expected ",
    ]) {
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(found.len(), 6, "{found:?}");
}

#[test]
fn routes_that_conflict_name_both_lines() {
    let answer = |path: &str| format!("[[route]]\npath = \"{path}\"\nanswer = \"x\"\n");
    assert_eq!(
        problems(&[answer("/a/{b}"), answer("/a/{c}"), answer("/x"), answer("/x")].concat()),
        [
            "site.toml:5: route: /a/{c} and /a/{b} in line 2 match the same requests; change one \
             of them",
            "site.toml:11: route: line 8 has /x with the same methods; change or leave out one of \
             them",
        ]
    );
    assert_eq!(
        problems(
            "[[route]]\npath = \"/a\"\nfolder = \"public\"\n[[route]]\npath = \"/a/\"\n\
             answer = \"x\"\n"
        ),
        ["site.toml:5: route: /a/ and /a/ in line 2 match the same requests; change one \
             of them"]
    );
    assert_eq!(
        problems(&[answer("a"), answer("/{"), answer("/{*x}/y")].concat()),
        [
            "site.toml:2: route.path: expected a path such as /static, found \"a\"; begin it with \
             /",
            "site.toml:5: route.path: /{ is not well formed (Parameters must be \
             registered with a valid name); expected /exact, /{name} or /{*rest}",
            "site.toml:8: route.path: /{*x}/y is not well formed (Catch-all parameters are only \
             allowed at the end of a route); expected /exact, /{name} or /{*rest}",
        ]
    );
    // Other methods of the same path are other requests.
    read(&format!("{}methods = \"POST\"\n{}", answer("/x"), answer("/x")));
}

#[test]
fn folders_and_pages_have_to_be_there() {
    assert_eq!(
        problems(
            "root = \"none\"\n[[route]]\npath = \"/a\"\nfolder = \"404.html\"\n\
             [[error-page]]\nstatus = 404\nfile = \"gone.html\"\n[[error-page]]\nstatus = 200\n\
             file = \"404.html\"\n"
        ),
        [
            "site.toml:1: root: no folder at none: create it or name another one",
            "site.toml:4: route.folder: 404.html is not a folder: name the folder around it",
            "site.toml:7: error-page.file: gone.html: No such file or directory (os error 2); name \
             a file that can be read",
            "site.toml:9: error-page.status: expected a status of 4xx or 5xx, found 200; leave it \
             out for all of them",
        ]
    );
}

#[test]
fn header_fields_have_to_be_fit_to_send() {
    assert_eq!(
        problems(
            "[headers]\n\"A B\" = \"x\"\nX = \"a\\nb\"\nContent-Length = \"1\"\nServer = \"me\"\n\
             ETag = \"x\"\nY = 1\nx-z = \"1\"\nX-Z = \"2\"\n"
        ),
        [
            "site.toml:2: headers: \"A B\" cannot be sent: the field name is not a token; leave it \
             out",
            "site.toml:3: headers: \"X\" cannot be sent: the field value holds a control byte; \
             leave it out",
            "site.toml:4: headers: \"Content-Length\" cannot be sent: the field is written by its \
             own function only; leave it out",
            "site.toml:5: headers: Server is set by the server; leave it out (`server-name` \
             sets the name)",
            "site.toml:6: headers: ETag depends on the content; leave it out (a text response \
             has the key `type`)",
            "site.toml:7: headers.Y: expected text in quotes, found 1",
            "site.toml:8: headers: x-z is set twice; leave one out",
        ]
    );
}

#[test]
fn rules_for_caches_say_what_is_wrong_with_them() {
    let expected = "expected the path of files below the folder, such as /downloads/** or \
                    /*.pdf, found";
    let remedy = "begin it with /, where * is anything within a segment and ** is anything";
    assert_eq!(
        problems(
            "spa = \"../page.html\"\nimmutable-folders = [\"assets\", \"a//b\"]\n\
             cache-control = \"auot\"\nkeep-old-assets = \"5ms\"\nhash-bytes-max = \"2t\"\n\
             [[cache]]\npath = \"downloads/**\"\nvalue = \"no-store\"\n\
             [[cache]]\npath = \"/***\"\nvalue = \"a\\nb\"\n\
             [[cache]]\npath = \"/a\"\nvalues = \"no-store\"\n\
             [[route]]\npath = \"/b\"\nanswer = \"b\"\n[[route.cache]]\npath = \"/a\"\n\
             value = \"no-store\"\n"
        ),
        [
            "site.toml:1: spa: expected the name of a page in the folder, or true for index.html, \
             found \"../page.html\"; leave it out for none"
                .to_owned(),
            "site.toml:2: immutable-folders: expected a folder below the served one, such as \
             assets or _next/static, found \"a//b\""
                .to_owned(),
            "site.toml:3: cache-control: expected one of auto, on, off, found \"auot\"; did you \
             mean auto?"
                .to_owned(),
            "site.toml:4: keep-old-assets: expected a duration such as 30s, 5m or 500ms from 1s to \
             30d, or off, found \
             \"5ms\"; leave it out for off"
                .to_owned(),
            "site.toml:5: hash-bytes-max: expected a size such as 4096, 64k or 10m from 1 to 1t, \
             or off, found \"2t\"; \
             leave it out for 8m"
                .to_owned(),
            format!("site.toml:7: cache.path: {expected} \"downloads/**\"; {remedy}"),
            format!("site.toml:10: cache.path: {expected} \"/***\"; {remedy}"),
            "site.toml:11: cache.value: expected a value of Cache-Control such as \"public, \
             max-age=3600\", found \"a\\nb\"; write one"
                .to_owned(),
            "site.toml:12: cache: expected the key value; add it".to_owned(),
            "site.toml:14: cache: no key is called \"values\"; did you mean \"value\"?".to_owned(),
            "site.toml:15: route: cache does not go with answer; leave it out".to_owned(),
        ]
    );
}

#[test]
fn redirects_and_answers_say_what_is_wrong_with_them() {
    assert_eq!(
        problems(
            "[[route]]\npath = \"/a/{b}\"\nredirect = \"/{c}\"\nstatus = 200\n\
             [[route]]\npath = \"/b\"\nanswer = \"x\"\nstatus = 204\nmethods = [\"GTE\"]\n\
             [[route]]\npath = \"/c\"\nanswer = \"x\"\nredirect = \"/\"\n\
             [[route]]\npath = \"/d\"\nanswer = \"x\"\ntype = \"json\"\n\
             [[route]]\npath = \"/e\"\nfolder = \"public\"\nstatus = 404\n"
        ),
        [
            "site.toml:3: route.redirect: found {c}, but the path has {b}; name one of its parts, \
             or write %7B for {",
            "site.toml:4: route.status: expected 301, 302, 303, 307 or 308 for a redirect, found \
             200; leave it out for 308",
            "site.toml:5: route.answer: a response of 204 has no content; write \"\"",
            "site.toml:9: route.methods: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, \
             OPTIONS, found \"GTE\"; did you mean GET?",
            "site.toml:10: route: expected one of folder, redirect and answer, found redirect and \
             answer; name one",
            "site.toml:17: route.type: expected a content type such as application/json, found \
             \"json\"; leave it out for text/plain; charset=utf-8",
            "site.toml:18: route: status does not go with folder; leave it out",
        ]
    );
}

#[test]
fn a_slip_in_the_form_has_its_line() {
    let found = problems("port = 80\nhost = localhost\n[headers\n");
    assert!(found[0].starts_with("site.toml:2: host: expected text in quotes"), "{found:?}");
    assert!(found[1].starts_with("site.toml:3: ") && found[1].ends_with("; see https://toml.io"));
    let found = problems("port = 80\nport = 81\n");
    assert!(found[0].starts_with("site.toml:2: port: line 1 sets it already"), "{found:?}");
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let error = SiteFile::read(Path::new("/no/such/site.toml")).expect_err("there is none");
    assert_eq!(error.to_string(), "/no/such/site.toml: no such file; name one that is there");
    let error = SiteFile::read(Path::new("/")).expect_err("that is a folder");
    assert_eq!(error.to_string(), "/: it is a folder; name the file in it");
}

#[test]
fn settings_stand_at_the_top_or_in_their_table_and_paths_are_relative_to_the_file() {
    let folder = folder();
    let path = folder.path().join("site.toml");
    let text = "root = \"public\"\nworkers = 3\n[settings]\nheader-timeout = 5\nlisten = \
                [\"127.0.0.1:0\", \"unix:x.sock\"]\n";
    let file = SiteFile::parse(&path, text).expect("nothing is wrong with it");
    let settings = file.settings();
    assert_eq!(settings.config.root, Some(folder.path().join("public")));
    assert_eq!(settings.config.workers, 3);
    assert_eq!(settings.config.header_timeout, std::time::Duration::from_secs(5));
    let socket = format!("unix:{}", folder.path().join("x.sock").display());
    assert_eq!(settings.config.listen, ["127.0.0.1:0", &socket]);
    assert_eq!(settings.origin("workers").to_string(), format!("file {}:2", path.display()));
    assert_eq!(settings.origin("hidden").to_string(), "default");
    assert_eq!(file.summary(), "4 settings, 0 routes, 0 sites");
}

#[test]
fn flags_and_variables_count_more_than_the_file() {
    let file = read("port = 81\nworkers = 3\nhidden = true\n");
    let flags = [("port", OsString::from("82"))];
    let variables = [("GUSTNADO_WORKERS".into(), "4".into()), ("PORT".into(), "83".into())];
    let settings =
        Settings::layered(&flags, variables, Some(file.file_settings())).expect("all valid");
    let config = &settings.config;
    assert_eq!((config.port, config.workers, config.routes.hidden), (82, 4, true));
}

#[test]
fn an_address_in_a_higher_layer_takes_the_place_of_listen() {
    let file = read("listen = \"127.0.0.1:81\"\n");
    let flags = [("port", OsString::from("82"))];
    let settings = Settings::layered(&flags, [], Some(file.file_settings())).expect("all valid");
    assert_eq!(settings.config.listen, Vec::<String>::new());
    assert_eq!(settings.config.port, 82);
    assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
    let flags = [("listen", OsString::from("127.0.0.1:83, [::1]:83"))];
    let settings = Settings::layered(&flags, [], Some(read("port = 81\n").file_settings()))
        .expect("all valid");
    assert_eq!(settings.config.listen, ["127.0.0.1:83", "[::1]:83"]);
}

#[test]
fn a_field_that_is_said_otherwise_somewhere_leaves_the_common_lines() {
    let file = read(
        "[headers]\nA = \"1\"\nB = \"2\"\n[[site]]\nhosts = \"x\"\n[site.headers]\nb = \"3\"\n",
    );
    let server = file.server();
    assert_eq!(server.fields.lines(), b"A: 1\r\n");
    assert_eq!(server.routes.fields.lines(), b"B: 2\r\n");
    assert_eq!(server.overridden, server.routes.fields);
}

/// Pieces of files, to be put together in any order: much more of that is read than of noise.
#[rustfmt::skip]
const PIECES: [&str; 28] = [
    "[[route]]\n",
    "[[site]]\n",
    "[headers]\n",
    "[route.headers]\n",
    "[settings]\n",
    "[[site.route]]\n",
    "[[error-page]]\n",
    "path = ",
    "folder = ",
    "redirect = ",
    "answer = ",
    "status = ",
    "hosts = ",
    "listen = ",
    "methods = ",
    "root = ",
    "port = ",
    "\"/a/{b}\"\n",
    "\"/{*rest}\"\n",
    "\"{\"\n",
    "404\n",
    "-1\n",
    "[\"x\", 1]\n",
    "{ a = 1 }\n",
    "true\n",
    "1979-05-27\n",
    "\"\\u00e9\\n\"\n",
    "\"GET\"\n",
];

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".{0,200}") {
        let _ = SiteFile::parse(Path::new("/nowhere/site.toml"), &text);
    }

    #[test]
    fn no_file_is_too_odd(at in proptest::collection::vec(0..PIECES.len(), 0..24)) {
        let text: String = at.iter().map(|at| PIECES[*at]).collect();
        let read = SiteFile::parse(Path::new("/nowhere/site.toml"), &text);
        let lines = text.lines().count();
        match read {
            Ok(file) => {
                let shown = SiteFile::effective(Some(&file), &file.settings());
                let again = SiteFile::parse(Path::new("/nowhere/site.toml"), &shown);
                prop_assert!(again.is_ok(), "{text}\n{shown}\n{again:?}");
                let _ = file.server().check();
            }
            Err(error) => {
                prop_assert!(!error.problems().is_empty());
                let is_inside = |problem: &Problem| problem.line <= lines + 1;
                prop_assert!(error.problems().iter().all(is_inside), "{text}\n{error}");
            }
        }
    }
}

#[test]
fn a_table_for_each_listener_becomes_its_text() {
    let folder = folder();
    let path = folder.path().join("site.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:a b.sock\"\n\
                mode = \"660\"\nproxy-protocol = true\n\
                proxy-allow-from = [\"10.0.0.0/8\", \"unix\"]\n\
                backlog = 12\n";
    let file = SiteFile::parse(&path, text).expect("nothing is wrong with it");
    let socket = folder.path().join("a\\ b.sock");
    let own = "proxy-protocol proxy-allow-from=10.0.0.0/8 proxy-allow-from=unix backlog=12 \
               mode=660";
    let own = format!("unix:{} {own}", socket.display());
    assert_eq!(file.settings().config.listen, ["127.0.0.1:0", &own]);
    let again = SiteFile::effective(Some(&file), &file.settings());
    let again = SiteFile::parse(&path, &again).expect("it can be read again");
    assert_eq!(again.settings().config.listen, file.settings().config.listen);
    let problem = |text: &str| SiteFile::parse(&path, text).expect_err(text).to_string();
    for (text, part) in [
        ("[[listen]]\nmode = \"660\"\n", "expected the key address"),
        ("[[listen]]\naddress = \"127.0.0.1:0\"\nv6onyl = true\n", "did you mean \"v6only\"?"),
        (
            "[[listen]]\naddress = \"unix:x\"\nmode = 660\n",
            "listen.mode: expected a value in quotes",
        ),
        ("[[listen]]\naddress = \"127.0.0.1:0\"\nv6only = true\n", "v6only is of an IPv6 address"),
        ("listen = [\"[::1]:81\", \"[::1]:81 v6only\"]\n", "is set twice"),
    ] {
        let found = problem(text);
        assert!(found.contains(part), "{text}: {found}");
    }
}
