//! Listings of folders: pages and JSON, made while they are sent.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use gustnado::config::Listing;
use gustnado::{Request, Routes, Status};

use crate::harness::client::request;
use crate::harness::{Folder, Server, Setup, wait_until};

on_every_server!(
    a_listing_is_sent_by_every_protocol,
    a_listing_tells_nothing_of_what_other_routes_guard,
    a_listing_of_ten_thousand_names_comes_whole,
    a_client_that_leaves_in_the_middle_of_a_listing_stops_it,
    a_listing_that_is_not_read_is_charged_and_holds_one_descriptor,
);

fn start(setup: Setup, folder: &Folder) -> Server {
    let mut config = setup.folder_config(folder);
    config.routes.listing = Listing::On;
    Server::start(config)
}

fn a_listing_is_sent_by_every_protocol(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/b.txt", "twelve bytes");
    folder.file("sub/deep/x", "");
    let odd = folder.path("sub").join(OsStr::from_bytes(b"new\nline \xff"));
    fs::write(odd, "found").expect("a file");
    let server = start(setup, &folder);
    let mut client = server.connect();
    for _ in 0..2 {
        let answer = client.get("/sub/?sort=size");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("cache-control"), Some("no-cache"));
        assert!(answer.expect_field("content-security-policy").starts_with("default-src 'none';"));
        let text = answer.text();
        let places = ["href=\"deep/\"", "href=\"new%0Aline%20%FF\"", "href=\"b.txt\""];
        let places = places.map(|link| text.find(link).expect("each entry has a link"));
        assert!(places.is_sorted(), "{text}");
        assert_eq!(client.get("/sub/new%0Aline%20%FF").text(), "found");
        client.send(request("HEAD", "/sub/", ""));
        assert_eq!(client.read_head().status, 200);
    }
    let json = client.ask(request("GET", "/sub/", "Accept: application/json\r\n"));
    assert_eq!(json.field("content-type"), Some("application/json"));
    assert!(
        json.text().contains("\"name\":\"b.txt\",\"href\":\"b.txt\",\"type\":\"file\",\"size\":12")
    );
    assert_eq!(json.field("content-security-policy"), None);
    assert_eq!(client.get("/sub/%00/").status, 404);
    // That of the site would forbid the page its own style.
    let mut config = setup.folder_config(&folder);
    config.routes.listing = Listing::On;
    "default-src 'self'".clone_into(&mut config.routes.access.csp);
    let answer = Server::start(config).get("/sub/");
    assert!(answer.expect_field("content-security-policy").contains("style-src 'unsafe-inline'"));
}

fn a_listing_tells_nothing_of_what_other_routes_guard(setup: Setup) {
    let folder = Folder::new();
    for name in ["README.md", "open.txt", "private/secret.txt", "sub/README", "sub/x"] {
        folder.file(name, format!("text of {name}"));
    }
    let mut config = setup.config();
    (config.routes.listing, config.routes.listing_readme) = (Listing::On, true);
    let guarded = |_: &Request| (Status::UNAUTHORIZED, "who are you?");
    let routes = Routes::new()
        .root(folder.root())
        .get("/README.md", guarded)
        .get("/private/{*rest}", guarded);
    let server = Server::routes(config, routes);
    let page = server.get("/").text();
    assert!(page.contains("href=\"open.txt\"") && page.contains("href=\"sub/\""), "{page}");
    assert!(!page.contains("README") && !page.contains("private"), "{page}");
    let json = server.get("/?format=json").text();
    assert!(json.contains("\"total\":2") && !json.contains("README"), "{json}");
    assert!(server.get("/sub/").text().contains("text of sub/README"));
}

fn a_listing_of_ten_thousand_names_comes_whole(setup: Setup) {
    let folder = Folder::new();
    let first = folder.file("many/0", "");
    for number in 1..10_000 {
        fs::hard_link(&first, folder.path(&format!("many/{number}"))).expect("a link");
    }
    let server = start(setup, &folder);
    for target in ["/many/", "/many/?sort=date&order=desc"] {
        let answer = server.get(target);
        let text = answer.text();
        assert_eq!(text.matches("<tr><td><a ").count(), 10_001, "with the folder above");
        assert!(text.ends_with("</table>\n"), "{target}");
    }
}

fn a_client_that_leaves_in_the_middle_of_a_listing_stops_it(setup: Setup) {
    let folder = Folder::new();
    let first = folder.file("many/0", "");
    for number in 1..10_000 {
        let name = format!("many/{number}-{}", "x".repeat(150));
        fs::hard_link(&first, folder.path(&name)).expect("a link");
    }
    let server = start(setup, &folder);
    let mut client = server.connect();
    client.send(request("GET", "/many/", ""));
    assert_eq!(client.read_head().status, 200);
    drop(client);
    server.wait_until_empty();
    assert_eq!(server.get("/many/0").status, 200);
}

fn a_listing_that_is_not_read_is_charged_and_holds_one_descriptor(setup: Setup) {
    let folder = Folder::new();
    let first = folder.file("many/0", "");
    for number in 1..10_000 {
        // Bytes that are three times as many in a link, and in the text.
        let name = [format!("{number}-").as_bytes(), &[0xff; 200]].concat();
        fs::hard_link(&first, folder.path("many").join(OsStr::from_bytes(&name))).expect("a link");
    }
    let server = start(setup, &folder);
    let open = || {
        let all = fs::read_dir("/proc/self/fd").expect("the kernel lists descriptors");
        let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| link.starts_with(folder.root())).count()
    };
    let before = open();
    let mut client = server.connect();
    client.send(request("GET", "/many/", ""));
    assert_eq!(client.read_head().status, 200);
    let is_charged = || server.stats().memory_sends >= 2_000_000;
    wait_until("the names are charged", is_charged);
    assert_eq!(open(), before + 1);
    drop(client);
    server.wait_until_empty();
    wait_until("they are released", || open() == before && server.stats().memory_sends == 0);
}
