//! Files: what is found, what is said about it, and preconditions. RFC 9110 §8, §13.

use std::thread;
use std::time::Duration;

use gustnado::config::Config;

use crate::harness::client::{get, request};
use crate::harness::folder::{DATE, noise};
use crate::harness::{Answer, Client, Folder, Server, Setup};

on_every_server!(
    a_file_comes_with_its_length_type_and_validators,
    head_says_what_get_says,
    a_folder_is_answered_with_its_index,
    a_folder_without_a_slash_is_redirected,
    a_query_does_not_matter,
    escaped_names_are_found,
    types_are_told_by_the_extension,
    an_empty_file_is_an_empty_body,
    files_of_every_size_come_whole,
    a_big_file_comes_whole_to_a_slow_and_to_a_quick_reader,
    a_validator_that_matches_needs_no_body,
    preconditions_that_fail_stop_the_answer,
    preconditions_are_weighed_in_their_order,
    dates_are_read_in_all_three_forms,
    without_a_cache_everything_is_the_same,
    files_are_the_same_from_memory_and_from_the_disk,
    the_default_site_is_a_page,
);

fn a_file_comes_with_its_length_type_and_validators(setup: Setup) {
    let folder = Folder::new();
    folder.dated("a.txt", "ten bytes.");
    let server = setup.files(&folder);
    for _ in 0..2 {
        let answer = server.get("/a.txt");
        assert_eq!((answer.status, &*answer.text()), (200, "ten bytes."));
        assert_eq!(answer.field("content-length"), Some("10"));
        assert_eq!(answer.field("last-modified"), Some(DATE));
        assert_eq!(answer.field("accept-ranges"), Some("bytes"));
        assert!(answer.expect_field("content-type").starts_with("text/plain"), "{answer:?}");
        let tag = answer.expect_field("etag");
        assert!(
            tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'),
            "no strong tag: {tag}"
        );
        assert_eq!(answer.field("content-encoding"), None);
    }
}

fn head_says_what_get_says(setup: Setup) {
    let folder = Folder::new();
    folder.dated("small.txt", "ten bytes.");
    folder.dated("large.bin", noise(1, 300_000));
    folder.file("sub/index.html", "front");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for target in ["/small.txt", "/large.bin", "/sub/", "/sub", "/missing", "/small.txt?query"] {
        let whole = client.get(target);
        client.send(request("HEAD", target, ""));
        let head = client.read_head();
        assert_eq!(head.status, whole.status, "{target}");
        assert_eq!(head.lasting_fields(), whole.lasting_fields(), "{target}");
        assert_eq!(client.get("/small.txt").text(), "ten bytes.", "no body came after {target}");
    }
}

fn a_folder_is_answered_with_its_index(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "front page");
    folder.file("sub/index.html", "sub page");
    folder.file("bare/other.html", "not the index");
    let server = setup.files(&folder);
    for (target, body) in
        [("/", "front page"), ("/sub/", "sub page"), ("/index.html", "front page")]
    {
        let answer = server.get(target);
        assert_eq!((answer.status, &*answer.text()), (200, body), "{target}");
        assert!(answer.expect_field("content-type").starts_with("text/html"), "{target}");
    }
    assert_eq!(server.get("/bare/").status, 404, "no index, no listing");
}

fn a_folder_without_a_slash_is_redirected(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/index.html", "sub page");
    folder.file("sub/deep er/index.html", "deeper page");
    let server = setup.files(&folder);
    for (target, place) in [
        ("/sub", "/sub/"),
        ("/sub?a=b&c", "/sub/?a=b&c"),
        ("/sub/deep%20er", "/sub/deep%20er/"),
        ("http://gust.example/sub", "/sub/"),
    ] {
        let answer = server.get(target);
        assert_eq!(answer.status, 301, "{target}: {answer:?}");
        assert_eq!(answer.field("location"), Some(place), "{target}");
    }
}

fn a_query_does_not_matter(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "here");
    let server = setup.files(&folder);
    for target in ["/a.txt?", "/a.txt?b=c", "/a.txt?/../x", "/a.txt?a?b", "/a.txt?%00"] {
        assert_eq!(server.get(target).text(), "here", "{target}");
    }
    assert_eq!(server.get("/a.txt%3Fb").status, 404, "an escaped question mark is a name's");
}

fn escaped_names_are_found(setup: Setup) {
    let folder = Folder::new();
    for name in ["a b.txt", "ü.txt", "100%.txt", "what?.txt", "a+b.txt", "x&y=z;.txt", "#1.txt"] {
        folder.file(name, name);
    }
    let server = setup.files(&folder);
    for (target, name) in [
        ("/a%20b.txt", "a b.txt"),
        ("/%C3%BC.txt", "ü.txt"),
        ("/%c3%bc.txt", "ü.txt"),
        ("/100%25.txt", "100%.txt"),
        ("/what%3F.txt", "what?.txt"),
        ("/a+b.txt", "a+b.txt"),
        ("/x&y=z;.txt", "x&y=z;.txt"),
        ("/%23%31.%74xt", "#1.txt"),
    ] {
        assert_eq!(server.get(target).text(), name, "{target}");
    }
}

fn types_are_told_by_the_extension(setup: Setup) {
    let folder = Folder::new();
    let types = [
        ("a.html", "text/html"),
        ("a.css", "text/css"),
        ("a.js", "text/javascript"),
        ("a.mjs", "text/javascript"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.JPG", "image/jpeg"),
        ("a.wasm", "application/wasm"),
        ("a.mp4", "video/mp4"),
        ("a.pdf", "application/pdf"),
        ("a.min.js", "text/javascript"),
        ("plain", "application/octet-stream"),
        ("a.unknown-to-all", "application/octet-stream"),
        ("html", "application/octet-stream"),
    ];
    for (name, _) in types {
        folder.file(name, "x");
    }
    folder.file("a.tar.gz", "x");
    let server = setup.files(&folder);
    for (name, expected) in types {
        let answer = server.get(&format!("/{name}"));
        let said = answer.expect_field("content-type");
        assert_eq!(said.split(';').next(), Some(expected), "{name}");
    }
    assert!(server.get("/a.html").expect_field("content-type").contains("utf-8"));
    assert_eq!(server.get("/a.tar.gz").field("content-encoding"), None, "it is as it is stored");
}

fn an_empty_file_is_an_empty_body(setup: Setup) {
    let folder = Folder::new();
    folder.file("empty.txt", "");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for _ in 0..3 {
        let answer = client.get("/empty.txt");
        assert_eq!((answer.status, answer.field("content-length")), (200, Some("0")));
    }
}

fn files_of_every_size_come_whole(setup: Setup) {
    // Around every size at which a server may change its ways: a page, a buffer, the cache's limit.
    let sizes = [
        1,
        1_000,
        3_500,
        4_095,
        4_096,
        4_097,
        8_191,
        8_192,
        8_193,
        16_384,
        16_385,
        65_536,
        65_537,
        131_073,
        1 << 20,
    ];
    let folder = Folder::new();
    for size in sizes {
        folder.file(&format!("{size}.bin"), noise(size as u64, size));
    }
    let server = setup.files(&folder);
    let mut client = server.connect();
    for _ in 0..2 {
        for size in sizes {
            let answer = client.get(&format!("/{size}.bin"));
            assert!(answer.body == noise(size as u64, size), "{size} bytes are others");
        }
    }
}

fn a_big_file_comes_whole_to_a_slow_and_to_a_quick_reader(setup: Setup) {
    let folder = Folder::new();
    let content = noise(9, 5_000_001);
    folder.file("big.bin", &content);
    let server = setup.files(&folder);
    let mut slow = Client::connect_narrow(server.address());
    slow.send(get("/big.bin"));
    for _ in 0..10 {
        let mut quick = server.connect();
        assert!(quick.get("/big.bin").body == content, "another body came");
        slow.read_ahead(50_000);
    }
    thread::sleep(Duration::from_millis(100));
    assert!(slow.read_answer().body == content, "another body came");
    assert_eq!(slow.get("/missing").status, 404, "the connection goes on");
}

/// The answer to a GET of `/a.txt` with these lines.
fn ask(server: &Server, lines: &str) -> Answer {
    server.ask(request("GET", "/a.txt", &format!("{lines}\r\n")))
}

fn dated_folder() -> Folder {
    let folder = Folder::new();
    folder.dated("a.txt", "ten bytes.");
    folder
}

const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn a_validator_that_matches_needs_no_body(setup: Setup) {
    let folder = dated_folder();
    let server = setup.files(&folder);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    let mut client = server.connect();
    for line in [
        format!("If-None-Match: {tag}"),
        format!("If-None-Match: W/{tag}"),
        format!("If-None-Match: \"other\", {tag}"),
        format!("If-None-Match: \"a,b\",W/\"x\" , {tag}, \"y\""),
        "If-None-Match: *".to_owned(),
        format!("If-Modified-Since: {DATE}"),
        format!("If-Modified-Since: {LATER}"),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = client.ask(request(method, "/a.txt", &format!("{line}\r\n")));
            assert_eq!(answer.status, 304, "{method}, {line}");
            assert_eq!(answer.field("etag"), Some(&*tag), "{line}");
            let length = answer.field("content-length");
            assert!(length.is_none() || length == Some("10"), "the file's length: {answer:?}");
        }
    }
    for line in [
        "If-None-Match: \"other\"".to_owned(),
        format!("If-None-Match: {}", &tag[1..tag.len() - 1]),
        format!("If-Modified-Since: {EARLIER}"),
        "If-Modified-Since: yesterday".to_owned(),
        format!("If-Modified-Since: {LATER}\r\nIf-Modified-Since: {EARLIER}"),
        "If-Modified-Since:".to_owned(),
    ] {
        let answer = ask(&server, &line);
        assert_eq!((answer.status, &*answer.text()), (200, "ten bytes."), "{line}");
    }
}

fn preconditions_that_fail_stop_the_answer(setup: Setup) {
    let folder = dated_folder();
    let server = setup.files(&folder);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    for line in [
        "If-Match: \"other\"".to_owned(),
        format!("If-Match: W/{tag}"),
        format!("If-Unmodified-Since: {EARLIER}"),
    ] {
        let answer = ask(&server, &line);
        assert_eq!(answer.status, 412, "{line}");
        assert!(!answer.text().contains("ten bytes."), "{line}");
    }
    for line in [
        format!("If-Match: {tag}"),
        format!("If-Match: \"other\", {tag}"),
        "If-Match: *".to_owned(),
        format!("If-Unmodified-Since: {DATE}"),
        format!("If-Unmodified-Since: {LATER}"),
        "If-Unmodified-Since: never".to_owned(),
        format!("If-Unmodified-Since: {EARLIER}\r\nIf-Unmodified-Since: {LATER}"),
    ] {
        assert_eq!(ask(&server, &line).status, 200, "{line}");
    }
}

fn preconditions_are_weighed_in_their_order(setup: Setup) {
    // RFC 9110 §13.2.2: If-Match before If-Unmodified-Since, which it silences; then If-None-Match
    // before If-Modified-Since, which it silences.
    let folder = dated_folder();
    let server = setup.files(&folder);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    for (lines, status) in [
        (format!("If-Match: {tag}\r\nIf-Unmodified-Since: {EARLIER}"), 200),
        (format!("If-Match: \"other\"\r\nIf-Unmodified-Since: {LATER}"), 412),
        (format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {LATER}"), 200),
        (format!("If-None-Match: {tag}\r\nIf-Modified-Since: {EARLIER}"), 304),
        (format!("If-None-Match: {tag}\r\nIf-Match: \"other\""), 412),
        (format!("If-None-Match: {tag}\r\nIf-Match: {tag}"), 304),
        (format!("If-Modified-Since: {LATER}\r\nIf-Unmodified-Since: {EARLIER}"), 412),
        (format!("If-None-Match: {tag}\r\nIf-Unmodified-Since: {EARLIER}"), 412),
        (format!("If-None-Match: {tag}\r\nRange: bytes=0-1"), 304),
        (format!("If-Match: {tag}\r\nRange: bytes=0-1"), 206),
    ] {
        assert_eq!(ask(&server, &lines).status, status, "{lines}");
    }
}

fn dates_are_read_in_all_three_forms(setup: Setup) {
    let folder = dated_folder();
    let server = setup.files(&folder);
    for date in [DATE, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(ask(&server, &format!("If-Modified-Since: {date}")).status, 304, "{date}");
    }
}

fn without_a_cache_everything_is_the_same(setup: Setup) {
    let folder = dated_folder();
    let with_cache = setup.files(&folder);
    let without = Server::start(Config { cache_bytes: 0, ..setup.folder_config(&folder) });
    for target in ["/a.txt", "/missing"] {
        let expected = with_cache.get(target);
        for _ in 0..3 {
            let answer = without.get(target);
            assert_eq!(answer.lasting_fields(), expected.lasting_fields(), "{target}");
            assert_eq!(answer.body, expected.body, "{target}");
        }
    }
}

fn files_are_the_same_from_memory_and_from_the_disk(setup: Setup) {
    let folder = Folder::new();
    let sizes = [0, 1, 5_000, 8_192, 40_000, 65_536, 70_000];
    for bytes in sizes {
        folder.file(&format!("{bytes}.bin"), noise(7, bytes));
    }
    for limit in [0, 8_191, 65_536] {
        let mut config = setup.folder_config(&folder);
        config.routes.small_file_bytes_max = limit;
        let server = Server::start(config);
        for bytes in sizes {
            let path = format!("/{bytes}.bin");
            let expected = noise(7, bytes);
            for _ in 0..2 {
                assert!(server.get(&path).body == expected, "{limit} {bytes}");
            }
            if bytes > 1 {
                let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nRange: bytes=-2\r\n\r\n");
                let answer = server.ask(request);
                assert_eq!(answer.status, 206, "{limit} {bytes}");
                assert!(answer.body == expected[expected.len() - 2..], "{limit} {bytes}");
            }
        }
    }
}

fn the_default_site_is_a_page(setup: Setup) {
    let server = setup.default_site();
    let answer = server.get("/");
    assert_eq!(answer.status, 200);
    assert!(answer.expect_field("content-type").starts_with("text/html"), "{answer:?}");
    assert!(answer.text().to_lowercase().contains("gustnado"), "{}", answer.text());
    assert_eq!(server.get("/missing").status, 404);
}
