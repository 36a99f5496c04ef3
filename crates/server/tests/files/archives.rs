//! Folders as one file, made while it is sent. Python reads what arrives.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use gustnado::config::{Archives, Config, Listing};
use gustnado::{Request, Routes, Status, route};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::{Folder, Server, Setup, wait_until};

on_every_server!(
    an_archive_is_sent_by_every_protocol,
    a_client_that_does_not_read_stops_its_archive,
    a_client_that_leaves_ends_its_archive,
    files_that_vanish_while_they_are_sent_leave_a_good_archive,
    a_folder_that_is_too_large_is_refused_before_the_head,
    no_archive_has_a_file_that_another_route_guards,
    a_route_has_them_by_their_name,
);

const FORMS: [&str; 2] = ["tar.zst", "zip"];

fn start(setup: Setup, folder: &Folder, change: impl FnOnce(&mut Config)) -> Server {
    let mut config = setup.folder_config(folder);
    (config.routes.listing, config.routes.archives) = (Listing::On, Archives::On);
    change(&mut config);
    Server::start(config)
}

/// Returns the names and the sizes of the files in an archive.
fn files(form: &str, archive: Vec<u8>) -> Vec<(String, usize)> {
    let bytes = if form == "zip" { archive } else { decompressed(&archive) };
    let reader = include_str!("../../../files/src/tests/read_archive.py");
    let mut python = Command::new("python3")
        .args(["-c", reader, form])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let mut stdin = python.stdin.take().expect("it was asked for");
    let writer = thread::spawn(move || stdin.write_all(&bytes));
    let output = python.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("Python reads all");
    assert!(output.status.success(), "{form}: Python cannot read it");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut files: Vec<(String, usize)> = text
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|words| words[1] == "file")
        .map(|words| {
            let digit = |at: usize| u8::from_str_radix(&words[0][at..at + 2], 16);
            let name: Result<Vec<u8>, _> = (0..words[0].len()).step_by(2).map(digit).collect();
            let name = String::from_utf8_lossy(&name.expect("digits")).into_owned();
            (name, words[4].parse().expect("a size"))
        })
        .collect();
    files.sort();
    files
}

fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let (mut context, mut out) = (DCtx::create(), Vec::new());
    let mut input = InBuffer::around(bytes);
    loop {
        out.reserve(256 << 10);
        let at = out.len();
        let mut output = OutBuffer::around_pos(&mut out, at);
        let left = context.decompress_stream(&mut output, &mut input).expect("Zstandard");
        if input.pos() == bytes.len() && left == 0 {
            return out;
        }
        assert!(input.pos() < bytes.len() || left > 0, "it is cut");
    }
}

fn an_archive_is_sent_by_every_protocol(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/a.txt", "twelve bytes");
    folder.file("sub/deep/large.bin", noise(3, 1_000_000));
    folder.file("sub/new\nline", "");
    folder.file("sub/.hidden", "");
    let server = start(setup, &folder, |_| {});
    let expected = [("sub/a.txt", 12), ("sub/deep/large.bin", 1_000_000), ("sub/new\nline", 0)];
    let expected = expected.map(|(name, size)| (name.to_owned(), size));
    let mut client = server.connect();
    for form in FORMS {
        let target = format!("/sub/?archive={form}");
        client.send(request("HEAD", &target, ""));
        let head = client.read_head();
        let answer = client.get(&target);
        for answer in [&head, &answer] {
            assert_eq!(answer.status, 200);
            let expected = format!("attachment; filename=\"sub.{form}\"");
            assert_eq!(answer.field("content-disposition"), Some(&*expected));
            assert_eq!(answer.field("cache-control"), Some("no-cache"));
        }
        assert_eq!(files(form, answer.body), expected);
    }
    // The next request on the same connection is a request like any other.
    assert!(client.get("/sub/").text().contains("href=\"?archive=zip\""));
    let stats = server.stats();
    assert_eq!((stats.archives_begun, stats.archives_open, stats.archives_failed), (4, 0, 0));
}

fn a_client_that_does_not_read_stops_its_archive(setup: Setup) {
    let folder = Folder::new();
    let first = folder.file("0", noise(5, 1_000_000));
    for number in 1..30 {
        fs::hard_link(&first, folder.path(&number.to_string())).expect("a link");
    }
    let server = start(setup, &folder, |config| config.archives_max = 1);
    let mut idle = server.connect();
    idle.send(request("GET", "/?archive=zip", ""));
    assert_eq!(idle.read_head().status, 200);
    // It waits for the client: 30 MB are not made in advance.
    let mut sent = 0;
    wait_until("nothing more is sent", || {
        thread::sleep(Duration::from_millis(150));
        let before = std::mem::replace(&mut sent, server.stats().bytes_sent);
        before == sent
    });
    assert_eq!(server.stats().archives_open, 1);
    let refused = server.get("/?archive=zip");
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("10")));
    assert_eq!(server.get("/0").status, 200, "only archives are limited");
    drop(idle);
    wait_until("the archive ends", || server.stats().archives_open == 0);
    let whole = server.get("/?archive=zip");
    assert_eq!(files("zip", whole.body).len(), 30);
    assert_eq!(server.stats().archives_refused, 1);
}

fn a_client_that_leaves_ends_its_archive(setup: Setup) {
    let folder = Folder::new();
    folder.file("large", noise(5, 30_000_000));
    let server = start(setup, &folder, |_| {});
    for form in FORMS {
        let mut client = server.connect();
        client.send(request("GET", &format!("/?archive={form}"), ""));
        assert_eq!(client.read_head().status, 200);
        drop(client);
    }
    server.wait_until_empty();
    wait_until("the archives end", || server.stats().archives_open == 0);
}

fn files_that_vanish_while_they_are_sent_leave_a_good_archive(setup: Setup) {
    let folder = Folder::new();
    for number in 0..60 {
        folder.file(&format!("{number}"), noise(number, 300_000));
    }
    let server = start(setup, &folder, |_| {});
    for (form, kept) in [("tar.zst", 40_usize), ("zip", 20)] {
        let mut client = server.connect();
        client.send(request("GET", &format!("/?archive={form}"), ""));
        for number in kept..kept + 20 {
            fs::remove_file(folder.path(&number.to_string())).expect("it is there");
        }
        let answer = client.read_answer();
        let found = files(form, answer.body);
        let is_whole = |(_, size): &(String, usize)| *size == 300_000;
        assert!(found.len() >= kept && found.iter().all(is_whole), "{form}");
    }
}

fn a_folder_that_is_too_large_is_refused_before_the_head(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("large", 3_000_000);
    folder.file("sub/small", "small");
    let server = start(setup, &folder, |config| config.routes.archive_bytes_max = 1_000_000);
    for form in FORMS {
        let refused = server.get(&format!("/?archive={form}"));
        assert_eq!(refused.status, 403);
        assert!(refused.text().contains("larger than an archive may be"));
        assert_eq!(server.get(&format!("/sub/?archive={form}")).status, 200);
    }
    assert_eq!(server.stats().archives_open, 0);
}

fn no_archive_has_a_file_that_another_route_guards(setup: Setup) {
    let folder = Folder::new();
    for name in ["open.txt", "private/secret.txt", "exact.txt", "inner/x.txt", "sub/open.txt"] {
        folder.file(name, name);
    }
    let mut config = setup.config();
    (config.routes.listing, config.routes.archives) = (Listing::On, Archives::On);
    let routes = Routes::new()
        .root(folder.root())
        .get("/private/{*rest}", |_: &Request| (Status::FORBIDDEN, "not for you"))
        .get("/exact.txt", |_: &Request| "another text")
        .route("/inner", route().files(folder.path("inner")))
        .route("/mounted", route().files(folder.root()))
        .get("/mounted/sub/open.txt", |_: &Request| "another text");
    let server = Server::routes(config, routes);
    for form in FORMS {
        let names = |target: &str| {
            let answer = server.get(&format!("{target}?archive={form}"));
            let all = files(form, answer.body).into_iter().map(|(name, _)| name);
            all.collect::<Vec<String>>()
        };
        assert_eq!(names("/"), ["files/open.txt", "files/sub/open.txt"]);
        assert_eq!(names("/inner/"), ["inner/x.txt"]);
        let mounted = ["exact.txt", "inner/x.txt", "open.txt", "private/secret.txt"];
        assert_eq!(names("/mounted/"), mounted.map(|name| format!("mounted/{name}")));
    }
}

fn a_route_has_them_by_their_name(setup: Setup) {
    let folder = Folder::new();
    folder.file("one.txt", "one");
    let of_folder = || route().files(folder.root());
    let own = of_folder().set("listing", "on").and_then(|route| route.set("archives", "zip"));
    let routes = Routes::new()
        .route("/pub", own.expect("they are settings of routes"))
        .route("/plain", of_folder());
    let server = Server::routes(setup.config(), routes);
    let archive = server.get("/pub/?archive=zip");
    assert_eq!(files("zip", archive.body), [("pub/one.txt".to_owned(), 3)]);
    assert_eq!(server.get("/pub/?archive=tar.zst").field("content-disposition"), None);
    assert_eq!(server.get("/plain/?archive=zip").status, 404);
    let refused = of_folder().set("workers", "2").expect_err("it is the server's");
    assert!(refused.to_string().contains("is the server's alone"), "{refused}");
}
