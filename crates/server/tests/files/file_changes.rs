//! Files that change while they are served. Each answer is wholly the old file or wholly the new
//! one; what cannot be finished is cut, never filled up.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_file_replaced_under_load_is_wholly_old_or_wholly_new,
    a_download_keeps_the_file_it_began_with,
    a_file_that_shrinks_while_it_is_sent_cuts_the_connection,
    a_file_that_grows_while_it_is_sent_ends_where_it_was_promised,
    changes_of_every_kind_are_soon_seen,
    a_root_swapped_by_its_link_is_soon_seen,
    a_root_replaced_by_another_folder_is_soon_seen,
    a_root_that_goes_away_and_comes_back_is_served_again,
);

/// How long a server may take to look at the disk again, many times over.
const SOON: Duration = Duration::from_secs(2);

fn a_file_replaced_under_load_is_wholly_old_or_wholly_new(setup: Setup) {
    let folder = Folder::new();
    // One file for each way of sending: from the cache, in pieces, by the kernel.
    let names = ["small.bin", "middle.bin", "large.bin"];
    let content = |name: &str, version: u64| {
        let size = [("small.bin", 900), ("middle.bin", 12_000), ("large.bin", 400_000)];
        let (_, size) = size.into_iter().find(|(known, _)| *known == name).expect("one of three");
        noise(version, size + 10 * usize::try_from(version).expect("a small number"))
    };
    let versions: Vec<HashMap<&str, Vec<u8>>> = (0..4)
        .map(|version| names.into_iter().map(|name| (name, content(name, version))).collect())
        .collect();
    for name in names {
        folder.file(name, &versions[0][name]);
    }
    let server = setup.files(&folder);
    let address = server.address();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                let mut tags: HashMap<String, Vec<u8>> = HashMap::new();
                while !done.load(Ordering::Relaxed) {
                    for name in names {
                        let answer = client.get(&format!("/{name}"));
                        assert_eq!(answer.status, 200, "{name}");
                        let known = versions.iter().any(|version| version[name] == answer.body);
                        assert!(known, "{name} is a mixture: {:?}", answer.fields);
                        let tag = answer.expect_field("etag").to_owned();
                        let body =
                            tags.entry(format!("{name}{tag}")).or_insert(answer.body.clone());
                        assert!(*body == answer.body, "one tag for two contents of {name}");
                    }
                }
            });
        }
        let start = Instant::now();
        for version in versions.iter().cycle().skip(1) {
            for name in names {
                folder.replace(name, &version[name]);
            }
            thread::sleep(Duration::from_millis(3));
            if start.elapsed() > Duration::from_millis(800) {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.stats().answers_5xx, 0);
}

fn a_download_keeps_the_file_it_began_with(setup: Setup) {
    let folder = Folder::new();
    let old = noise(1, 20 << 20);
    folder.file("big.bin", &old);
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/big.bin"));
    client.read_ahead(100_000);
    folder.replace("big.bin", &noise(2, 1_000));
    fs::remove_file(folder.path("big.bin")).expect("even the new one");
    assert!(client.read_answer().body == old, "another body came");
}

fn a_file_that_shrinks_while_it_is_sent_cuts_the_connection(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("big.bin", 64 << 20);
    folder.file("a.txt", "here");
    let server = setup.files(&folder);
    for left in [0, 1_000_000] {
        folder.hollow("big.bin", 64 << 20);
        let mut client = Client::connect_narrow(server.address());
        client.send(get("/big.bin"));
        client.read_ahead(100_000);
        let file = File::options().write(true).open(folder.path("big.bin")).expect("the file");
        file.set_len(left).expect("a shorter file");
        let (bytes, _) = client.read_until_ended();
        assert!(bytes.len() < 64 << 20, "something filled the gap");
        assert_eq!(server.get("/a.txt").text(), "here", "the server lives");
    }
    server.wait_until_empty();
    wait_until("the new length is told", || {
        let mut client = server.connect();
        client.send(request("HEAD", "/big.bin", ""));
        client.read_head().field("content-length") == Some("1000000")
    });
}

fn a_file_that_grows_while_it_is_sent_ends_where_it_was_promised(setup: Setup) {
    let folder = Folder::new();
    let path = folder.hollow("log.txt", 20 << 20);
    let server = setup.files(&folder);
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/log.txt"));
    client.read_ahead(100_000);
    let file = File::options().write(true).open(path).expect("the file");
    file.set_len(40 << 20).expect("a longer file");
    assert_eq!(client.read_answer().body.len(), 20 << 20);
    assert_eq!(client.get("/missing").status, 404, "the next answer is in its place");
}

/// Waits until the targets have these statuses and bodies, asked often enough to reach each worker.
fn expect_soon(server: &Server, expected: &[(&str, u16, &str)]) {
    let start = Instant::now();
    let mut client = server.connect();
    let mut other = server.connect();
    for (target, status, body) in expected {
        let is_new = |client: &mut Client| {
            let answer = client.get(target);
            answer.status == *status && answer.text() == *body
                || *status == 404 && answer.status == 404
        };
        wait_until(&format!("{target} is {status} {body:?}"), || {
            (0..5).all(|_| is_new(&mut client) && is_new(&mut other))
        });
    }
    assert!(start.elapsed() < SOON * 2, "{expected:?} after {:?}", start.elapsed());
}

fn changes_of_every_kind_are_soon_seen(setup: Setup) {
    let folder = Folder::new();
    fs::write(folder.outside().join("secret"), "the secret").expect("a secret");
    for name in ["replaced", "rewritten", "removed", "linked", "sub/secret"] {
        folder.file(name, "one");
    }
    let server = setup.files(&folder);
    expect_soon(
        &server,
        &[
            ("/replaced", 200, "one"),
            ("/rewritten", 200, "one"),
            ("/removed", 200, "one"),
            ("/linked", 200, "one"),
            ("/sub/secret", 200, "one"),
            ("/added", 404, ""),
        ],
    );
    folder.replace("replaced", b"two");
    folder.file("rewritten", "two");
    folder.file("added", "two");
    fs::remove_file(folder.path("removed")).expect("the file goes");
    fs::remove_file(folder.path("linked")).expect("the file goes");
    symlink("../secret", folder.path("linked")).expect("a link out in its place");
    fs::remove_dir_all(folder.path("sub")).expect("the folder goes");
    symlink("..", folder.path("sub")).expect("a link out in its place");
    expect_soon(
        &server,
        &[
            ("/replaced", 200, "two"),
            ("/rewritten", 200, "two"),
            ("/added", 200, "two"),
            ("/removed", 404, ""),
            ("/linked", 404, ""),
            ("/sub/secret", 404, ""),
        ],
    );
    fs::create_dir(folder.path("removed")).expect("a folder in its place");
    folder.file("removed/index.html", "within");
    fs::remove_file(folder.path("added")).expect("the file goes again");
    expect_soon(&server, &[("/removed/", 200, "within"), ("/added", 404, "")]);
}

/// A root that is a link to one of two folders. Returns its configuration.
fn linked_root(setup: Setup, folder: &Folder) -> Config {
    for version in ["one", "two"] {
        folder.file(&format!("{version}/a.txt"), version);
        folder.file(&format!("{version}/big.bin"), version.repeat(10_000));
    }
    symlink("one", folder.path("current")).expect("a link to the first");
    Config { root: Some(folder.path("current")), ..setup.config() }
}

fn a_root_swapped_by_its_link_is_soon_seen(setup: Setup) {
    let folder = Folder::new();
    let server = Server::start(linked_root(setup, &folder));
    for version in ["one", "two"] {
        symlink(version, folder.path("next")).expect("a link to the next");
        fs::rename(folder.path("next"), folder.path("current")).expect("in the old one's place");
        let big = version.repeat(10_000);
        expect_soon(&server, &[("/a.txt", 200, version), ("/big.bin", 200, &big)]);
    }
    assert_eq!(server.get("/current/a.txt").status, 404);
}

fn a_root_replaced_by_another_folder_is_soon_seen(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "one");
    let server = setup.files(&folder);
    expect_soon(&server, &[("/a.txt", 200, "one")]);
    fs::rename(folder.root(), folder.outside().join("gone")).expect("the root moves away");
    folder.file("a.txt", "two");
    expect_soon(&server, &[("/a.txt", 200, "two")]);
}

fn a_root_that_goes_away_and_comes_back_is_served_again(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "one");
    let server = setup.files(&folder);
    expect_soon(&server, &[("/a.txt", 200, "one")]);
    fs::remove_dir_all(folder.root()).expect("the root goes");
    thread::sleep(SOON / 8);
    let meanwhile = server.get("/a.txt").status;
    assert!([200, 404, 500, 503].contains(&meanwhile), "{meanwhile}");
    folder.file("a.txt", "two");
    expect_soon(&server, &[("/a.txt", 200, "two")]);
}
