//! The page of an application with paths of its own, and who may keep its files for how long.
//! RFC 9110 §12.5.1 and §12.5.5, RFC 9111 §5.2.

use gustnado::config::{CacheControl, CacheRule, Config, RouteSettings};
use gustnado::{Routes, route};

use crate::harness::client::request;
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    a_navigation_gets_the_page_and_a_missing_chunk_is_missing,
    the_page_is_one_resource_with_all_that_files_have,
    a_page_that_is_missing_itself_says_so,
    another_page_can_be_named_and_routes_have_their_own,
    disks_that_are_waited_for_make_no_difference,
    each_kind_of_file_says_how_long_it_may_be_kept,
    what_not_all_clients_may_have_is_for_no_shared_cache,
    nothing_is_said_about_caches_unless_asked_for,
    a_field_for_all_responses_is_sent_once,
    rules_of_the_file_come_first,
);

const HTML: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
const NAVIGATE: &str = "Sec-Fetch-Mode: navigate\r\n";
const VARY: &str = "Sec-Fetch-Mode, Accept";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// A folder as a build tool makes it.
fn application() -> Folder {
    let folder = Folder::new();
    folder.dated("index.html", "<p>page");
    folder.dated("about/index.html", "<p>about");
    folder.dated("empty/logo.svg", "<svg/>");
    folder.dated("assets/index-9f2c1b7a.js", "chunk");
    folder.dated("assets/large-3b1a2c4d.js", "x".repeat(30_000));
    folder.dated("assets/logo-vertical.svg", "<svg/>");
    folder.dated("assets/report.20240131.pdf", "report");
    folder.dated("assets/hero-1920x1080.jpg", "picture");
    folder.dated("index-9f2c1b7a.js", "not beneath such a folder");
    folder
}

fn served(setup: Setup, folder: &Folder, tune: impl FnOnce(&mut RouteSettings)) -> Server {
    let mut config = setup.folder_config(folder);
    tune(&mut config.routes);
    Server::start(config)
}

fn with_page(setup: Setup, folder: &Folder) -> Server {
    served(setup, folder, |settings| settings.spa = "index.html".into())
}

fn ask(server: &Server, path: &str, fields: &str) -> Answer {
    server.ask(request("GET", path, fields))
}

fn a_navigation_gets_the_page_and_a_missing_chunk_is_missing(setup: Setup) {
    let folder = application();
    let server = with_page(setup, &folder);
    for _ in 0..2 {
        for (path, fields, status, body) in [
            ("/", "", 200, "<p>page"),
            ("/about/", "", 200, "<p>about"),
            ("/users/42", HTML, 200, "<p>page"),
            ("/users/42", NAVIGATE, 200, "<p>page"),
            ("/users/42?tab=1", HTML, 200, "<p>page"),
            ("/users/john.doe", NAVIGATE, 200, "<p>page"),
            ("/empty/", NAVIGATE, 200, "<p>page"),
            ("/index.html/more", NAVIGATE, 200, "<p>page"),
            ("/users/42", "", 404, ""),
            ("/users/42", "Accept: */*\r\n", 404, ""),
            ("/users/42", "Accept: application/json\r\n", 404, ""),
            ("/users/42", "Sec-Fetch-Mode: cors\r\nAccept: text/html\r\n", 404, ""),
            ("/users/john.doe", HTML, 404, ""),
            ("/logo.png", HTML, 404, ""),
            ("/assets/main.9f2c.js", HTML, 404, ""),
            ("/assets/main.9f2c.js", NAVIGATE, 404, ""),
            ("/assets/index-9f2c1b7a.js", "", 200, "chunk"),
        ] {
            let answer = ask(&server, path, fields);
            assert_eq!(answer.status, status, "{path} {fields}");
            assert!(status != 200 || answer.text() == body, "{path} {fields}: {}", answer.text());
            let is_negotiated = !["/", "/about/", "/assets/index-9f2c1b7a.js"].contains(&path);
            assert_eq!(answer.field("vary") == Some(VARY), is_negotiated, "{path} {fields}");
        }
    }
    let other =
        server.ask(request("POST", "/users/42", &format!("{NAVIGATE}Content-Length: 0\r\n")));
    assert_eq!(other.status, 405);
    assert_eq!(ask(&server, "/%zz", NAVIGATE).status, 400);
    assert_eq!(ask(&server, "/about", NAVIGATE).status, 301);
}

fn the_page_is_one_resource_with_all_that_files_have(setup: Setup) {
    let folder = application();
    let server = with_page(setup, &folder);
    let page = ask(&server, "/users/42", NAVIGATE);
    let tag = page.expect_field("etag").to_owned();
    assert_eq!(server.get("/").expect_field("etag"), tag);
    assert_eq!(page.expect_field("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.field("cache-control"), Some("no-cache"));
    let head = {
        let mut client = server.connect();
        client.send(request("HEAD", "/users/7", NAVIGATE));
        client.read_head()
    };
    assert_eq!(head.lasting_fields(), page.lasting_fields());
    let same = ask(&server, "/users/9", &format!("{NAVIGATE}If-None-Match: {tag}\r\n"));
    assert_eq!((same.status, same.field("vary")), (304, Some(VARY)));
    assert_eq!(same.field("cache-control"), Some("no-cache"));
    let part = ask(&server, "/users/9", &format!("{NAVIGATE}Range: bytes=0-1\r\n"));
    assert_eq!((part.status, part.field("vary"), &*part.text()), (206, Some(VARY), "<p"));
    // A new version of the page is seen as soon as that of any file.
    folder.replace("index.html", b"<p>next");
    crate::harness::wait_until("the next page is there", || {
        ask(&server, "/users/42", NAVIGATE).text() == "<p>next"
    });
}

fn a_page_that_is_missing_itself_says_so(setup: Setup) {
    let folder = Folder::new();
    folder.file("200.html/file", "a folder where the page should be");
    for page in ["index.html", "200.html", "none/at/all"] {
        let server = served(setup, &folder, |settings| settings.spa = page.into());
        let answer = ask(&server, "/users", NAVIGATE);
        assert_eq!(answer.status, 404, "{page}");
        assert!(answer.text().contains("--spa"), "{}", answer.text());
        assert!(!ask(&server, "/users", "").text().contains("--spa"));
    }
}

fn another_page_can_be_named_and_routes_have_their_own(setup: Setup) {
    let folder = application();
    folder.file("shell/app.html", "<p>shell");
    let shell = |settings: &mut RouteSettings| settings.spa = "app.html".into();
    let routes = Routes::new()
        .route("/shop", route().files(folder.path("shell")).tune(shell))
        .route("/plain", route().files(folder.path("about")))
        .tune(|settings| settings.spa = String::new());
    let mut config: Config = setup.config();
    config.routes.spa = "index.html".into();
    let server = Server::routes(config, routes);
    let page = ask(&server, "/shop/cart/3", NAVIGATE);
    assert_eq!((page.status, &*page.text()), (200, "<p>shell"));
    assert_eq!(ask(&server, "/plain/cart/3", NAVIGATE).status, 404);
}

fn disks_that_are_waited_for_make_no_difference(setup: Setup) {
    let folder = application();
    for threads in [0, 2] {
        let mut config =
            Config { file_threads: threads, cache_bytes: 0, ..setup.folder_config(&folder) };
        config.routes.spa = "index.html".into();
        let server = Server::start(config);
        for _ in 0..3 {
            assert_eq!(ask(&server, "/users/1", NAVIGATE).text(), "<p>page");
            assert_eq!(ask(&server, "/users/1", "").status, 404);
        }
    }
}

fn each_kind_of_file_says_how_long_it_may_be_kept(setup: Setup) {
    let folder = application();
    let on = served(setup, &folder, |settings| settings.cache_control = CacheControl::On);
    for server in [with_page(setup, &folder), on] {
        for (path, value) in [
            ("/", "no-cache"),
            ("/about/", "no-cache"),
            ("/assets/index-9f2c1b7a.js", IMMUTABLE),
            ("/assets/large-3b1a2c4d.js", IMMUTABLE),
            ("/assets/logo-vertical.svg", "no-cache"),
            ("/assets/report.20240131.pdf", "no-cache"),
            ("/assets/hero-1920x1080.jpg", "no-cache"),
            ("/index-9f2c1b7a.js", "no-cache"),
            ("/assets/gone-9f2c1b7a.js", "no-cache"),
        ] {
            let answer = server.get(path);
            assert_eq!(answer.field("cache-control"), Some(value), "{path}");
            let Some(tag) = answer.field("etag") else { continue };
            let same = ask(&server, path, &format!("If-None-Match: {tag}\r\n"));
            assert_eq!((same.status, same.field("cache-control")), (304, Some(value)), "{path}");
            let part = ask(&server, path, "Range: bytes=0-0\r\n");
            assert_eq!((part.status, part.field("cache-control")), (206, Some(value)), "{path}");
        }
    }
    let others = served(setup, &folder, |settings| {
        settings.cache_control = CacheControl::On;
        settings.immutable_folders = vec!["about".into(), "/empty/".into()];
    });
    assert_eq!(others.get("/assets/index-9f2c1b7a.js").field("cache-control"), Some("no-cache"));
}

fn what_not_all_clients_may_have_is_for_no_shared_cache(setup: Setup) {
    let folder = application();
    let server = served(setup, &folder, |settings| {
        settings.cache_control = CacheControl::On;
        settings.access.deny = vec!["203.0.113.9".into()];
    });
    let value = Some("private, max-age=31536000, immutable");
    for path in ["/assets/index-9f2c1b7a.js", "/assets/large-3b1a2c4d.js"] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.field("cache-control")), (200, value));
        let tag = answer.expect_field("etag");
        let same = ask(&server, path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!((same.status, same.field("cache-control")), (304, value));
    }
    let by_hand = served(setup, &folder, |settings| {
        settings.access.deny = vec!["203.0.113.9".into()];
        settings.cache = vec![CacheRule::new("/assets/**", "public, max-age=60")];
    });
    let answer = by_hand.get("/assets/index-9f2c1b7a.js");
    assert_eq!(answer.field("cache-control"), Some("public, max-age=60"));
}

fn nothing_is_said_about_caches_unless_asked_for(setup: Setup) {
    let folder = application();
    let plain = setup.files(&folder);
    let off = served(setup, &folder, |settings| {
        settings.spa = "index.html".into();
        settings.cache_control = CacheControl::Off;
    });
    for server in [plain, off] {
        for path in ["/", "/assets/index-9f2c1b7a.js", "/none"] {
            assert_eq!(server.get(path).field("cache-control"), None, "{path}");
        }
    }
}

fn a_field_for_all_responses_is_sent_once(setup: Setup) {
    let folder = application();
    let server = Server::built(setup.described(
        &folder,
        "root = \"root\"\nspa = true\n[headers]\nCache-Control = \"private\"\n",
    ));
    for path in ["/", "/assets/index-9f2c1b7a.js", "/none"] {
        let answer = server.get(path);
        assert_eq!(answer.field("cache-control"), Some("private"), "{path}");
        assert_eq!(answer.count("cache-control"), 1, "{path}");
    }
}

fn rules_of_the_file_come_first(setup: Setup) {
    let folder = application();
    let server = Server::built(setup.described(
        &folder,
        "root = \"root\"\ncache-control = \"on\"\n\
         [headers]\nCache-Control = \"private\"\n\
         [[cache]]\npath = \"/assets/*.pdf\"\nvalue = \"no-store\"\n\
         [[cache]]\npath = \"/assets/**\"\nvalue = \"public, max-age=60\"\n\
         [[route]]\npath = \"/shop\"\nfolder = \"root\"\n\
         [[route.cache]]\npath = \"/**.svg\"\nvalue = \"max-age=7\"\n\
         [[site]]\nhosts = \"a.org\"\nroot = \"root\"\n\
         [[site.cache]]\npath = \"/\"\nvalue = \"max-age=8\"\n\
         [[site.cache]]\npath = \"/about/*\"\nvalue = \"max-age=9\"\n",
    ));
    for (path, value) in [
        ("/assets/report.20240131.pdf", "no-store"),
        ("/assets/index-9f2c1b7a.js", "public, max-age=60"),
        ("/", "private"),
        ("/none", "private"),
        ("/shop/assets/logo-vertical.svg", "max-age=7"),
        ("/shop/assets/report.20240131.pdf", "no-store"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.field("cache-control"), Some(value), "{path}");
        assert_eq!(answer.count("cache-control"), 1, "{path}");
    }
    for (path, value) in
        [("/about/", "max-age=9"), ("/assets/report.20240131.pdf", "no-store"), ("/", "private")]
    {
        let answer =
            server.ask(format!("GET {path} HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\n\r\n"));
        assert_eq!(answer.field("cache-control"), Some(value), "{path} of a.org");
    }
    let by_program = served(setup, &folder, |settings| {
        settings.cache.push(CacheRule::new("/index.html", "max-age=5"));
    });
    assert_eq!(by_program.get("/").field("cache-control"), Some("max-age=5"));
    assert_eq!(by_program.get("/about/").field("cache-control"), None);
}
