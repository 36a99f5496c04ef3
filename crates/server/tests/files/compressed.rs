//! Files that are compressed when they are asked for, and kept. RFC 9110 §8.4, §12.5.3.

use std::thread;
use std::time::Duration;

use flate2::{Decompress, FlushDecompress};
use gustnado::config::Compress;

use crate::harness::client::{get, request};
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    a_file_comes_compressed_and_whole,
    ranges_and_conditions_are_those_of_what_was_sent,
    many_clients_at_once_get_the_same_text,
    what_must_not_be_changed_is_sent_as_it_is,
    a_file_that_does_not_become_smaller_is_sent_to_all,
);

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|at| format!("{at:7}\n").into_bytes()).collect()
}

fn scene(setup: Setup) -> (Folder, Server) {
    let folder = Folder::new();
    folder.dated("small.json", text(4_000));
    folder.dated("large.json", text(400_000));
    folder.dated("photo.png", text(4_000));
    let mut config = setup.folder_config(&folder);
    config.routes.compress = Compress::On;
    (folder, Server::start(config))
}

fn ask(server: &Server, target: &str, fields: &str) -> Answer {
    server.ask(request("GET", target, fields))
}

fn gunzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(500_000);
    let mut decoder = Decompress::new_gzip(15);
    decoder.decompress_vec(bytes, &mut out, FlushDecompress::Finish).expect("it is gzip");
    out
}

fn a_file_comes_compressed_and_whole(setup: Setup) {
    let (_folder, server) = scene(setup);
    // What is made of a file that was just written does not last.
    thread::sleep(Duration::from_millis(2_200));
    for (target, bytes) in [("/small.json", 4_000), ("/large.json", 400_000)] {
        for _ in 0..3 {
            let answer = ask(&server, target, "Accept-Encoding: gzip\r\n");
            assert_eq!(answer.field("content-encoding"), Some("gzip"), "{target}");
            assert!(gunzipped(&answer.body) == text(bytes), "{target}");
            let length = answer.body.len().to_string();
            assert_eq!(answer.field("content-length"), Some(&*length));
            let mut client = server.connect();
            client.send(request("HEAD", target, "Accept-Encoding: gzip\r\n"));
            assert_eq!(client.read_head().lasting_fields(), answer.lasting_fields());
        }
        let zstd = ask(&server, target, "Accept-Encoding: gzip, br, zstd\r\n");
        assert_eq!(zstd.field("content-encoding"), Some("zstd"));
        let plain = server.ask(get(target));
        assert_eq!(plain.field("vary"), Some("Accept-Encoding"));
        assert!(plain.body == text(bytes));
    }
    let photo = ask(&server, "/photo.png", "Accept-Encoding: gzip\r\n");
    assert_eq!((photo.field("content-encoding"), photo.field("vary")), (None, None));
    let stats = server.stats();
    assert_eq!((stats.responses_gzip, stats.responses_zstd, stats.responses_brotli), (12, 2, 0));
    // Two files in two codings, once each.
    assert_eq!((stats.compressions, stats.compress_bytes_in), (4, 2 * 404_000));
    assert!(stats.compress_bytes_out < 404_000, "{stats:?}");
    assert_eq!((stats.compress_refused, stats.variants_cached), (0, 4));
    assert!(stats.variant_bytes > stats.compress_bytes_out, "{stats:?}");
}

fn ranges_and_conditions_are_those_of_what_was_sent(setup: Setup) {
    let (_folder, server) = scene(setup);
    for target in ["/small.json", "/large.json"] {
        let whole = ask(&server, target, "Accept-Encoding: gzip\r\n");
        let tag = whole.expect_field("etag").to_owned();
        let with =
            |more: &str| ask(&server, target, &format!("Accept-Encoding: gzip\r\n{more}\r\n"));
        let same = with(&format!("If-None-Match: {tag}"));
        assert_eq!((same.status, same.field("vary")), (304, Some("Accept-Encoding")));
        let part = with(&format!("Range: bytes=7-\r\nIf-Range: {tag}"));
        assert_eq!((part.status, part.field("content-encoding")), (206, Some("gzip")));
        assert!(part.body == whole.body[7..]);
        let plain = ask(&server, target, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(plain.status, 200, "another representation has another tag");
    }
}

fn many_clients_at_once_get_the_same_text(setup: Setup) {
    let (_folder, server) = scene(setup);
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("GET", "/large.json", "Accept-Encoding: gzip\r\n"));
    }
    for mut client in clients {
        // Whoever comes while it is being compressed gets it as it is.
        let answer = client.read_answer();
        assert_eq!((answer.status, answer.field("vary")), (200, Some("Accept-Encoding")));
        match answer.field("content-encoding") {
            Some("gzip") => assert!(gunzipped(&answer.body) == text(400_000)),
            _ => assert!(answer.body == text(400_000)),
        }
    }
    let last = ask(&server, "/large.json", "Accept-Encoding: gzip\r\n");
    assert_eq!(last.field("content-encoding"), Some("gzip"));
}

fn what_must_not_be_changed_is_sent_as_it_is(setup: Setup) {
    let folder = Folder::new();
    folder.dated("a.json", text(4_000));
    folder.dated("raw/a.json", text(4_000));
    let is_coded = |server: &Server, target: &str| {
        let answer = ask(server, target, "Accept-Encoding: gzip\r\n");
        assert_eq!(answer.status, 200, "{target}");
        answer.field("content-encoding") == Some("gzip")
    };
    let settings = "root = \"root\"\ncompress = \"on\"\ncompress-bytes-min = 1\n";
    let answer = "[[route]]\npath = \"/answer\"\nanswer = \"an answer, an answer, an answer\"\n";
    let described =
        |more: &str| Server::built(setup.described(&folder, &format!("{settings}{answer}{more}")));
    let forbidden = "Cache-Control = \"max-age=60, no-transform\"\n";
    for (more, coded) in [
        ("", [true, true, true]),
        // The server's fields, written with the date; the same of a site that adds to them.
        (&*format!("[headers]\n{forbidden}"), [false, false, false]),
        (
            &format!("[headers]\n{forbidden}[[cache]]\npath = \"/raw/**\"\nvalue = \"no-cache\"\n"),
            [false, true, false],
        ),
        (
            &format!("[[header]]\npath = \"/raw/{{*rest}}\"\n[header.set]\n{forbidden}"),
            [true, false, true],
        ),
        (
            &format!("[[header]]\npath = \"//raw/./{{*rest}}\"\n[header.set]\n{forbidden}"),
            [true, false, true],
        ),
        (&format!("[[header]]\nstatus = 404\n[header.set]\n{forbidden}"), [true, true, true]),
        (
            &format!("[[header]]\nmethods = [\"GET\"]\n[header.set]\n{forbidden}"),
            [false, false, false],
        ),
    ] {
        let server = described(more);
        let found = ["/a.json", "/raw/a.json", "/answer"].map(|target| is_coded(&server, target));
        assert_eq!(found, coded, "{more}");
    }
}

fn a_file_that_does_not_become_smaller_is_sent_to_all(setup: Setup) {
    let folder = Folder::new();
    let noise: Vec<u8> = (1..4_000_u64)
        .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_mul(at).to_be_bytes()[0])
        .collect();
    folder.dated("noise.txt", noise.clone());
    let mut config = setup.folder_config(&folder);
    config.routes.compress = Compress::On;
    let server = Server::start(config);
    for accepted in ["gzip", "gzip, identity;q=0", "zstd, gzip, identity;q=0"] {
        let answer = ask(&server, "/noise.txt", &format!("Accept-Encoding: {accepted}\r\n"));
        assert_eq!((answer.status, answer.field("content-encoding")), (200, None), "{accepted}");
        assert!(answer.body == noise);
    }
    let refused = ask(&server, "/noise.txt", "Accept-Encoding: br, identity;q=0\r\n");
    assert_eq!(refused.status, 406);
}
