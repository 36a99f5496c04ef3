//! Entity tags made of bytes: what a deployment changes gets another one, and what it does not
//! change keeps it. RFC 9110 §8.8.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

use gustnado::config::Config;

use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::{Answer, Folder, Server, Setup, wait_until};

on_every_server!(
    an_image_with_the_same_times_and_sizes_but_other_bytes_is_sent,
    replicas_give_the_same_bytes_the_same_tag,
    the_first_response_waits_for_no_digest,
    the_tag_of_before_the_digest_still_spares_a_download,
    a_pinned_time_is_not_told,
    without_digests_tags_are_made_of_attributes,
    a_long_list_of_tags_is_read_to_its_end_and_a_longer_one_is_refused,
);

/// Names and sizes of files: read at once, sent by the kernel.
const SIZES: [(&str, usize); 2] = [("small.js", 700), ("large.js", 300_000)];
/// Times that build tools give to files, and one that nothing is known of.
const TIMES: [u64; 4] = [0, 1, 315_532_800, 1_700_000_000];
/// Equal attributes prove equal bytes only once a file is this old.
const SETTLED: Duration = Duration::from_millis(3_100);

fn ask(server: &Server, path: &str, fields: &str) -> Answer {
    server.ask(request("GET", path, fields))
}

/// Waits until a file of two servers has one tag, and returns it.
fn shared_tag(servers: [&Server; 2], path: &str) -> String {
    let tags = || servers.map(|server| server.get(path).field("etag").map(str::to_owned));
    wait_until("both have the same tag", || tags()[0].is_some() && tags()[0] == tags()[1]);
    let [tag, _] = tags();
    tag.expect("a tag")
}

fn an_image_with_the_same_times_and_sizes_but_other_bytes_is_sent(setup: Setup) {
    let folder = Folder::new();
    for (seed, release) in [(1, "one"), (2, "two")] {
        for time in TIMES {
            for (name, size) in SIZES {
                folder.timed(&format!("{release}/{time}/{name}"), noise(seed, size), time);
            }
        }
    }
    symlink("one", folder.path("current")).expect("a link");
    let config = Config { root: Some(folder.path("current")), ..setup.config() };
    let server = Server::start(config);
    let all = || TIMES.into_iter().flat_map(|time| SIZES.map(|(name, size)| (time, name, size)));
    let mut known = Vec::new();
    // Tags of before the digest, and tags of the bytes.
    for round in 0..2 {
        for (time, name, size) in all() {
            let answer = server.get(&format!("/{time}/{name}"));
            assert!(answer.status == 200 && answer.body == noise(1, size), "{time} {name}");
            let tag = answer.field("etag").map(str::to_owned);
            assert!(tag.is_some() || (round == 0 && size > 8_192), "{time} {name}");
            known.extend(tag.map(|tag| (time, name, size, tag)));
        }
        if round == 0 {
            thread::sleep(SETTLED);
            for (time, name, _) in all() {
                server.get(&format!("/{time}/{name}"));
            }
            thread::sleep(SETTLED);
        }
    }
    symlink("two", folder.path("next")).expect("a link to the next");
    fs::rename(folder.path("next"), folder.path("current")).expect("in the old one's place");
    for (time, name, size, tag) in known {
        let fields = format!("If-None-Match: {tag}\r\n");
        wait_until("the new bytes are sent", || {
            let answer = ask(&server, &format!("/{time}/{name}"), &fields);
            answer.status == 200 && answer.body == noise(2, size)
        });
    }
}

fn replicas_give_the_same_bytes_the_same_tag(setup: Setup) {
    let folders = [Folder::new(), Folder::new()];
    for ((name, size), time) in SIZES.into_iter().zip([5, 1_700_000_000]) {
        folders[0].file(name, noise(3, size));
        folders[1].timed(name, noise(3, size), time);
    }
    let servers = folders.each_ref().map(|folder| setup.files(folder));
    for (name, _) in SIZES {
        shared_tag(servers.each_ref(), &format!("/{name}"));
    }
}

fn the_first_response_waits_for_no_digest(setup: Setup) {
    let folder = Folder::new();
    folder.timed("film.bin", noise(4, 8 << 20), 1_700_000_000);
    thread::sleep(SETTLED);
    // In the time of 8 MiB at 128 MiB per second, these responses come whole.
    let server = setup.files(&folder);
    let mut client = server.connect();
    let tag = |client: &mut crate::harness::Client| {
        let answer = client.ask(request("GET", "/film.bin", "Range: bytes=0-0\r\n"));
        assert_eq!(answer.status, 206);
        answer.expect_field("etag").to_owned()
    };
    let first = tag(&mut client);
    // Without the digest the tag is that of the attributes; with it, it is another one.
    wait_until("the digest is there", || tag(&mut client) != first);
    let answer = ask(&server, "/film.bin", &format!("If-None-Match: {first}\r\n"));
    assert_eq!(answer.status, 304);
}

fn the_tag_of_before_the_digest_still_spares_a_download(setup: Setup) {
    let folder = Folder::new();
    let content = noise(5, 300_000);
    folder.timed("app.wasm", &content, 1_700_000_000);
    thread::sleep(SETTLED);
    let server = setup.files(&folder);
    let old = server.get("/app.wasm").expect_field("etag").to_owned();
    let tag = || server.get("/app.wasm").expect_field("etag").to_owned();
    wait_until("the digest is there", || tag() != old);
    // The other worker looks at the disk within the next second.
    thread::sleep(Duration::from_millis(1_200));
    let new = tag();
    for (named, sent) in [(&old, &old), (&new, &new), (&format!("{new}, {old}"), &new)] {
        let answer = ask(&server, "/app.wasm", &format!("If-None-Match: {named}\r\n"));
        assert_eq!((answer.status, answer.expect_field("etag")), (304, sent.as_str()));
    }
    for tag in [&old, &new] {
        // A client puts the part to what it has of a response with this tag.
        let fields = format!("Range: bytes=1000-\r\nIf-Range: {tag}\r\n");
        let answer = ask(&server, "/app.wasm", &fields);
        assert_eq!((answer.status, answer.expect_field("etag")), (206, tag.as_str()));
        assert!(answer.body == content[1_000..]);
    }
}

fn a_pinned_time_is_not_told(setup: Setup) {
    let folder = Folder::new();
    for time in TIMES {
        for (name, size) in SIZES {
            folder.timed(&format!("{time}/{name}"), noise(6, size), time);
        }
    }
    let server = setup.files(&folder);
    for time in TIMES {
        for (name, size) in SIZES {
            let path = format!("/{time}/{name}");
            let is_pinned = time != 1_700_000_000;
            let whole = server.get(&path);
            assert_eq!(whole.field("last-modified").is_none(), is_pinned, "{path}");
            let has_tag = size < 8_192 || !is_pinned;
            assert_eq!(whole.field("etag").is_some(), has_tag, "{path}");
            let fields = "If-Modified-Since: Sun, 06 Nov 2095 08:49:37 GMT\r\n";
            let status = if is_pinned { 200 } else { 304 };
            assert_eq!(ask(&server, &path, fields).status, status, "{path}");
            assert_eq!(ask(&server, &path, "If-None-Match: \"x\"\r\n").status, 200, "{path}");
            let part = ask(&server, &path, "Range: bytes=0-0\r\n");
            assert_eq!(part.field("last-modified").is_none(), is_pinned, "{path}");
        }
    }
}

fn without_digests_tags_are_made_of_attributes(setup: Setup) {
    let folders = [Folder::new(), Folder::new()];
    for folder in &folders {
        for (name, size) in SIZES {
            folder.timed(name, noise(3, size), 1_700_000_000);
        }
    }
    let servers = folders.each_ref().map(|folder| {
        let mut config = setup.folder_config(folder);
        config.routes.hash_bytes_max = 0;
        Server::start(config)
    });
    thread::sleep(SETTLED);
    for (name, _) in SIZES {
        let path = format!("/{name}");
        let tags =
            servers.each_ref().map(|server| server.get(&path).expect_field("etag").to_owned());
        assert_ne!(tags[0], tags[1]);
        thread::sleep(Duration::from_millis(1_200));
        assert_eq!(servers[0].get(&path).expect_field("etag"), tags[0]);
    }
}

fn a_long_list_of_tags_is_read_to_its_end_and_a_longer_one_is_refused(setup: Setup) {
    let folder = Folder::new();
    folder.dated("a.txt", "ten bytes.");
    let server = setup.files(&folder);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    let others = |bytes: usize| "\"0123456789abcdef\", ".repeat(bytes / 20);
    for (list, status) in [
        (format!("{}{tag}", others(15_000)), 304),
        (others(15_000) + "\"x\"", 200),
        (",".repeat(15_000) + &tag, 304),
        ("\"".repeat(15_000), 200),
        (format!("{}{tag}", others(17_000)), 431),
    ] {
        let answer = ask(&server, "/a.txt", &format!("If-None-Match: {list}\r\n"));
        assert_eq!(answer.status, status, "{} bytes: {}", list.len(), &list[..20]);
    }
    assert_eq!(server.get("/a.txt").status, 200);
}
