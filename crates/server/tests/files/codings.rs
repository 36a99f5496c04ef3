//! Compressed files beside others, sent in their place. RFC 9110 §8.4, §12.5.3, §12.5.5.

use gustnado::config::Precompressed;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    a_client_gets_the_coding_it_wants_most,
    caches_are_told_that_others_exist,
    ranges_and_tags_are_those_of_the_variant,
    what_accepts_nothing_gets_406,
    fields_of_any_length_choose_or_are_refused,
    a_route_may_have_a_setting_of_its_own,
);

/// A folder with a small and a large file, each with three siblings.
fn with_siblings(setup: Setup) -> (Folder, Server) {
    let folder = Folder::new();
    for (name, bytes) in [("small.js", 1_000), ("large.js", 200_000)] {
        folder.dated(name, content("plain", bytes));
        for ending in ["br", "zst", "gz"] {
            folder.dated(&format!("{name}.{ending}"), content(ending, bytes / 2));
        }
    }
    folder.dated("alone.js", "alone");
    let mut config = setup.folder_config(&folder);
    config.routes.precompressed = Precompressed::On;
    (folder, Server::start(config))
}

/// Bytes that tell which variant they are.
fn content(what: &str, bytes: usize) -> Vec<u8> {
    [what.as_bytes(), &noise(bytes as u64, bytes)].concat()
}

fn ask(server: &Server, target: &str, accepted: &str) -> Answer {
    server.ask(request("GET", target, &format!("Accept-Encoding: {accepted}\r\n")))
}

fn a_client_gets_the_coding_it_wants_most(setup: Setup) {
    let (_folder, server) = with_siblings(setup);
    for _ in 0..2 {
        for (target, bytes) in [("/small.js", 1_000), ("/large.js", 200_000)] {
            for (accepted, coding, what) in [
                ("gzip, deflate, br, zstd", Some("br"), "br"),
                ("gzip, deflate, zstd;q=0.9", Some("gzip"), "gz"),
                ("zstd;q=0.5,*;q=0.4", Some("zstd"), "zst"),
                ("identity", None, "plain"),
            ] {
                let answer = ask(&server, target, accepted);
                assert_eq!((answer.status, answer.field("content-encoding")), (200, coding));
                let size = if what == "plain" { bytes } else { bytes / 2 };
                assert!(answer.body == content(what, size), "{target} {accepted}");
                assert!(answer.expect_field("content-type").starts_with("text/javascript"));
                let mut client = server.connect();
                client.send(request("HEAD", target, &format!("Accept-Encoding: {accepted}\r\n")));
                let head = client.read_head();
                assert_eq!(head.lasting_fields(), answer.lasting_fields());
            }
        }
    }
}

fn caches_are_told_that_others_exist(setup: Setup) {
    let (_folder, server) = with_siblings(setup);
    let plain = server.ask(get("/small.js"));
    assert_eq!((plain.field("content-encoding"), plain.count("vary")), (None, 1));
    for accepted in ["br", "gzip", "x"] {
        assert_eq!(ask(&server, "/small.js", accepted).field("vary"), Some("Accept-Encoding"));
        assert_eq!(ask(&server, "/alone.js", accepted).field("vary"), None);
    }
}

fn ranges_and_tags_are_those_of_the_variant(setup: Setup) {
    let (_folder, server) = with_siblings(setup);
    for (target, bytes) in [("/small.js", 1_000), ("/large.js", 200_000)] {
        let tag = ask(&server, target, "br").expect_field("etag").to_owned();
        let other = ask(&server, target, "gzip").expect_field("etag").to_owned();
        assert_ne!(tag, other);
        let with = |more: &str| {
            server.ask(request("GET", target, &format!("Accept-Encoding: br\r\n{more}\r\n")))
        };
        let same = with(&format!("If-None-Match: {tag}"));
        assert_eq!((same.status, same.field("vary")), (304, Some("Accept-Encoding")));
        assert_eq!(with(&format!("If-None-Match: {other}")).status, 200);
        let part = with(&format!("Range: bytes=5-14\r\nIf-Range: {tag}"));
        assert_eq!((part.status, part.field("content-encoding")), (206, Some("br")));
        assert_eq!(part.field("vary"), Some("Accept-Encoding"));
        assert!(part.body == content("br", bytes / 2)[5..15]);
        assert_eq!(with(&format!("Range: bytes=5-14\r\nIf-Range: {other}")).status, 200);
        // A thousand of them are the whole, as of any file.
        let many: Vec<String> = (0..1_000).map(|at| format!("{at}-{at}")).collect();
        let whole = with(&format!("Range: bytes={}", many.join(",")));
        assert_eq!((whole.status, whole.field("content-encoding")), (200, Some("br")));
        assert_eq!(with("Range: bytes=9999999-").status, 416);
    }
}

fn what_accepts_nothing_gets_406(setup: Setup) {
    let (_folder, server) = with_siblings(setup);
    for accepted in ["identity;q=0", "*;q=0", "identity;q=0, deflate"] {
        let answer = ask(&server, "/small.js", accepted);
        assert_eq!((answer.status, answer.field("vary")), (406, Some("Accept-Encoding")));
        // It exists in one form only: there is nothing to choose from.
        assert_eq!(ask(&server, "/alone.js", accepted).status, 200);
    }
    assert_eq!(ask(&server, "/small.js", "identity;q=0, gzip").status, 200);
}

fn fields_of_any_length_choose_or_are_refused(setup: Setup) {
    let (_folder, server) = with_siblings(setup);
    let long = |bytes: usize| format!("{}br", "x-unknown;q=0.5,".repeat(bytes / 16));
    assert_eq!(ask(&server, "/small.js", &long(14_000)).field("content-encoding"), Some("br"));
    assert_eq!(ask(&server, "/small.js", &long(16_384)).status, 431);
    for odd in [",,,,", ";;;=", "br;q=", "br;q=9", "\"br\"", "br\u{e4}", "*;q=0.0001"] {
        let answer = ask(&server, "/small.js", odd);
        assert_eq!((answer.status, answer.field("content-encoding")), (200, None), "{odd}");
    }
    let twice = request("GET", "/small.js", "Accept-Encoding: x\r\nAccept-Encoding: gzip\r\n");
    assert_eq!(server.ask(twice).field("content-encoding"), Some("gzip"));
}

fn a_route_may_have_a_setting_of_its_own(setup: Setup) {
    let (folder, server) = with_siblings(setup);
    drop(server);
    let own = gustnado::route()
        .files(folder.root())
        .tune(|settings| settings.precompressed = Precompressed::On);
    let routes = gustnado::Routes::new().route("/own", own).files("/plain", folder.root());
    let server = Server::routes(setup.config(), routes);
    assert_eq!(ask(&server, "/own/small.js", "br").field("content-encoding"), Some("br"));
    assert_eq!(ask(&server, "/plain/small.js", "br").field("content-encoding"), None);
}
