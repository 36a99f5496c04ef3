//! Files that clients send to a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;
use std::time::Duration;

use gustnado::config::{Config, Precompressed, RouteSettings};
use gustnado::{Request, Routes, Status, route};

use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    a_file_is_put_and_served,
    no_file_is_replaced_unless_that_is_allowed,
    no_file_is_put_before_one_that_is_served,
    conditions_decide_which_file_is_replaced,
    the_tag_of_a_sent_file_stays_its_tag,
    a_sent_file_is_there_whatever_worker_is_asked,
    a_form_sends_files,
    what_leads_elsewhere_is_refused,
    what_is_forbidden_is_neither_replaced_nor_told,
    no_form_replaces_what_another_route_guards,
    a_file_that_does_not_come_whole_leaves_nothing,
    files_are_taken_within_their_bounds,
    a_quota_is_the_folders_and_has_what_is_under_way,
    a_full_disk_leaves_nothing,
    pages_of_other_sites_send_nothing,
    without_the_setting_nothing_is_taken,
);

fn start(setup: Setup, folder: &Folder, change: impl FnOnce(&mut RouteSettings)) -> Server {
    let mut config: Config = setup.folder_config(folder);
    config.routes.upload = true;
    change(&mut config.routes);
    Server::start(config)
}

fn put(server: &Server, path: &str, fields: &str, body: &[u8]) -> Answer {
    let fields = format!("{fields}Content-Length: {}\r\n", body.len());
    server.ask([request("PUT", path, &fields).as_ref(), body].concat())
}

fn the_tag_of_a_sent_file_stays_its_tag(setup: Setup) {
    let folder = Folder::new();
    let server = start(setup, &folder, |settings| {
        settings.upload_overwrite = true;
        settings.hash_bytes_max = 100_000;
    });
    let sizes = [10, 10_000, 100_000];
    let path = |size: usize| format!("/{size}");
    let tags = sizes.map(|size| {
        let answer = put(&server, &path(size), "", &noise(1, size));
        assert_eq!(answer.status, 201);
        let tag = answer.expect_field("etag").to_owned();
        assert_eq!(server.get(&path(size)).expect_field("etag"), tag, "{size}: at once");
        tag
    });
    let untold = put(&server, "/large", "", &noise(1, 100_001));
    assert_eq!((untold.status, untold.field("etag")), (201, None), "it will have another one");
    // Equal times prove equal bytes two seconds later.
    thread::sleep(Duration::from_millis(2_500));
    for (size, tag) in sizes.into_iter().zip(tags) {
        assert_eq!(server.get(&path(size)).expect_field("etag"), tag, "{size}: later");
        let check = format!("If-Match: {tag}\r\n");
        assert_eq!(put(&server, &path(size), &check, &noise(2, size)).status, 204, "{size}");
        assert_eq!(put(&server, &path(size), &check, &noise(3, size)).status, 412, "{size}");
    }
}

/// A form with files, by their names and contents.
fn a_sent_file_is_there_whatever_worker_is_asked(setup: Setup) {
    let folder = Folder::new();
    let mut config = setup.folder_config(&folder);
    config.workers = 2;
    config.routes.upload = true;
    config.routes.upload_overwrite = true;
    let server = Server::start(config);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for (round, size) in (0..9).zip([10, 10_000, 100_001].into_iter().cycle()) {
        let body = noise(round, size);
        let path = format!("/{size}/index.html");
        if round < 3 {
            folder.file(&path[1..], "before");
        }
        // Each worker has it, under both of its paths.
        let kept: Vec<Vec<u8>> = clients
            .iter_mut()
            .flat_map(|client| [client.get(&path).body, client.get(&format!("/{size}/")).body])
            .collect();
        assert!(kept.iter().all(|found| *found != body));
        let answer = put(&server, &path, "", &body);
        assert_eq!(answer.status, 204);
        for client in &mut clients {
            for path in [&*path, &format!("/{size}/")] {
                let found = client.get(path);
                assert!(found.body == body, "{path}, round {round}");
                if let Some(tag) = answer.field("etag") {
                    assert_eq!(found.expect_field("etag"), tag, "{path}");
                }
            }
        }
    }
}

fn form(files: &[(&str, &str)]) -> String {
    let part = |(name, content): &(&str, &str)| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             \r\n{content}\r\n"
        )
    };
    files.iter().map(part).collect::<String>() + "--b--\r\n"
}

fn post(server: &Server, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let fields = format!(
        "{fields}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n"
    );
    server.ask([request("POST", path, &fields).as_ref(), body.as_bytes()].concat())
}

/// The names in a folder, hidden ones as well.
fn names(folder: &Folder, at: &str) -> Vec<String> {
    let found = fs::read_dir(folder.path(at)).expect("it is there");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("text")
    };
    let mut names: Vec<String> = found.map(name).collect();
    names.sort();
    names
}

fn a_file_is_put_and_served(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/old", "old");
    let server = start(setup, &folder, |_| {});
    let large = noise(7, 1_500_000);
    for (path, content) in
        [("/a%20b.txt", &b"ten bytes."[..]), ("/sub/large.bin", &large), ("/e", b"")]
    {
        let answer = put(&server, path, "", content);
        assert_eq!(answer.status, 201, "{path}: {answer:?}");
        let found = server.get(path);
        assert!(found.status == 200 && found.body == content, "{path}");
        let tag = answer.expect_field("etag");
        let check = server.ask(request("GET", path, &format!("If-None-Match: {tag}\r\n")));
        assert_eq!(check.status, 304, "the tag is that of the file");
    }
    assert_eq!(names(&folder, ""), ["a b.txt", "e", "sub"]);
    assert_eq!(names(&folder, "sub"), ["large.bin", "old"], "nothing else is left");
    let options = server.ask(request("OPTIONS", "/a%20b.txt", ""));
    assert_eq!(options.field("allow"), Some("GET, HEAD, OPTIONS, PUT, POST"));
    assert_eq!(server.ask(request("DELETE", "/e", "")).status, 405);
}

fn no_file_is_replaced_unless_that_is_allowed(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "old");
    let server = start(setup, &folder, |_| {});
    assert_eq!(put(&server, "/a.txt", "", b"new").status, 409);
    assert_eq!(put(&server, "/a.txt", "If-None-Match: *\r\n", b"new").status, 412);
    assert_eq!(fs::read(folder.path("a.txt")).expect("there"), b"old");
    let server = start(setup, &folder, |settings| settings.upload_overwrite = true);
    assert_eq!(server.get("/a.txt").text(), "old");
    assert_eq!(put(&server, "/a.txt", "", b"new").status, 204);
    assert_eq!(fs::read(folder.path("a.txt")).expect("there"), b"new");
    assert_eq!(put(&server, "/b.txt", "If-None-Match: *\r\n", b"b").status, 201);
    assert_eq!(put(&server, "/b.txt", "If-None-Match: *\r\n", b"c").status, 412);
    assert_eq!(names(&folder, ""), ["a.txt", "b.txt"]);
}

fn no_file_is_put_before_one_that_is_served(setup: Setup) {
    let folder = Folder::new();
    folder.file("index.html", "index");
    folder.file("about.html", "about");
    folder.file("docs/index.html", "docs");
    folder.file("bare/x", "");
    let change = |settings: &mut RouteSettings| {
        settings.precompressed = Precompressed::On;
        settings.clean_urls = true;
    };
    let server = start(setup, &folder, change);
    for path in ["/index.html.br", "/about.html.zst", "/bare/x.gz", "/about", "/docs.html"] {
        assert_eq!(put(&server, path, "", b"other").status, 409, "{path}");
    }
    for path in ["/none.br", "/bare/index.html", "/about.htm"] {
        assert_eq!(put(&server, path, "", b"new").status, 201, "{path}");
    }
    for (path, text) in [("/", "index"), ("/about", "about"), ("/docs/", "docs")] {
        let answer = server.ask(request("GET", path, "Accept-Encoding: br, zstd, gzip\r\n"));
        assert_eq!(answer.text(), text, "{path}");
    }
    let server = start(setup, &folder, |settings| {
        change(settings);
        settings.upload_overwrite = true;
    });
    assert_eq!(put(&server, "/about", "", b"other").status, 201);
    assert_eq!(server.get("/about").text(), "other");
}

fn conditions_decide_which_file_is_replaced(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "one");
    let server = start(setup, &folder, |settings| settings.upload_overwrite = true);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    let answer = put(&server, "/a.txt", "If-Match: \"other\"\r\n", b"no");
    assert_eq!((answer.status, server.get("/a.txt").text()), (412, "one".to_owned()));
    let answer = put(&server, "/a.txt", &format!("If-Match: {tag}\r\n"), b"two!");
    assert_eq!(answer.status, 204);
    assert_ne!(answer.expect_field("etag"), tag);
    assert_eq!(put(&server, "/a.txt", &format!("If-Match: {tag}\r\n"), b"three").status, 412);
    assert_eq!(put(&server, "/none.txt", "If-Match: *\r\n", b"no").status, 412);
    assert_eq!(fs::read(folder.path("a.txt")).expect("there"), b"two!");
    assert_eq!(names(&folder, ""), ["a.txt"]);
}

fn a_form_sends_files(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/x", "");
    let server = start(setup, &folder, |_| {});
    let post = |path: &str, fields: &str, body: &str| post(&server, path, fields, body);
    let two = form(&[("one.txt", "1"), ("C:\\photos\\two.txt", "2")]);
    let answer = post("/sub/", "Accept: text/html\r\n", &two);
    assert_eq!((answer.status, answer.field("location")), (303, Some("./")));
    assert_eq!(names(&folder, "sub"), ["one.txt", "two.txt", "x"]);
    let answer = post("/sub/", "", &form(&[("three.txt", "3")]));
    assert_eq!((answer.status, answer.field("etag")), (201, None), "the path is no file's");
    assert_eq!(post("/sub/", "", &form(&[("one.txt", "again")])).status, 409);
    assert_eq!(post("/sub/", "", &form(&[("", "")])).status, 400, "no file was chosen");
    assert_eq!(post("/sub/", "", &form(&[(".hidden", "x")])).status, 404);
    assert_eq!(post("/sub/", "", &form(&[("..", "x")])).status, 404);
    assert_eq!(post("/sub", "", &form(&[("x.txt", "x")])).status, 409, "no folder's path");
    let cut = &two[..two.len() - 12];
    assert_eq!(post("/", "", cut).status, 400);
    assert_eq!(fs::read(folder.path("sub/one.txt")).expect("there"), b"1");
    assert_eq!(names(&folder, ""), ["one.txt", "sub"], "the one that came whole, and no part");
}

fn what_leads_elsewhere_is_refused(setup: Setup) {
    let folder = Folder::new();
    folder.file("sub/x", "");
    let outside = folder.outside().join("outside");
    fs::create_dir(&outside).expect("a folder");
    symlink(&outside, folder.path("out")).expect("a symlink");
    symlink(outside.join("file"), folder.path("link")).expect("a symlink");
    symlink("sub", folder.path("in")).expect("a symlink");
    let server = start(setup, &folder, |settings| settings.upload_overwrite = true);
    for (path, status) in [
        ("/out/x", 409),
        ("/link", 409),
        ("/sub", 409),
        ("/sub/", 409),
        ("/none/x", 409),
        ("/sub/x/y", 409),
        ("/.hidden", 404),
        ("/.git/config", 404),
        ("/a%00b", 404),
        ("/a%2fb", 404),
        ("/a%5Cb", 404),
        ("/sub/../../x", 400),
        ("/%2e%2e/x", 400),
    ] {
        assert_eq!(put(&server, path, "", b"x").status, status, "{path}");
    }
    assert_eq!(put(&server, "/in/y", "", b"y").status, 201, "a link to a folder within the root");
    let long = format!("/{}", "n".repeat(300));
    assert_eq!(put(&server, &long, "", b"x").status, 400);
    assert_eq!(put(&server, "/x", "Content-Range: bytes 0-0/2\r\n", b"x").status, 400);
    assert_eq!(put(&server, "/x", "Content-Encoding: gzip\r\n", b"x").status, 415);
    assert_eq!(fs::read_dir(&outside).expect("there").count(), 0);
    assert_eq!(names(&folder, ""), ["in", "link", "out", "sub"]);
}

fn what_is_forbidden_is_neither_replaced_nor_told(setup: Setup) {
    let folder = Folder::new();
    folder.file("x.php", "operator's");
    folder.file("internal/a", "operator's");
    let server = start(setup, &folder, |settings| {
        settings.upload_overwrite = true;
        settings.forbidden = ["*.php", "/internal/*"].map(str::to_owned).to_vec();
    });
    for path in ["/x.php", "/X.PHP", "/none.php", "/x.php/", "/internal/a", "/internal/none"] {
        assert_eq!(put(&server, path, "", b"x").status, 404, "{path}");
        let answer = put(&server, path, "If-None-Match: *\r\n", b"x");
        assert_eq!(answer.status, 404, "{path}, whether it is there or not");
    }
    for name in ["x.php", "none.php"] {
        assert_eq!(post(&server, "/", "", &form(&[(name, "x")])).status, 404, "{name}");
    }
    assert_eq!(names(&folder, ""), ["internal", "x.php"]);
    assert_eq!(names(&folder, "internal"), ["a"]);
    assert_eq!(fs::read(folder.path("x.php")).expect("there"), b"operator's");
}

fn no_form_replaces_what_another_route_guards(setup: Setup) {
    let folder = Folder::new();
    for name in ["guarded.txt", "ann/secret.txt", "open.txt"] {
        folder.file(name, "operator's");
    }
    let refuse = |_: &Request| (Status::FORBIDDEN, "not for you");
    let routes = Routes::new()
        .root(folder.root())
        .get("/guarded.txt", refuse)
        .get("/none.txt", refuse)
        .get("/{user}/secret.txt", refuse)
        .tune(|settings| (settings.upload, settings.upload_overwrite) = (true, true));
    let server = Server::routes(setup.config(), routes);
    for (place, name) in [("/", "guarded.txt"), ("/", "none.txt"), ("/ann/", "secret.txt")] {
        let sent = put(&server, &format!("{place}{name}"), "", b"x");
        assert_eq!(sent.status, 405, "{name}");
        assert_eq!(post(&server, place, "", &form(&[(name, "x")])).status, 404, "{name}");
    }
    // What comes before it in the form is taken.
    let both = form(&[("open.txt", "new"), ("guarded.txt", "x")]);
    assert_eq!(post(&server, "/", "", &both).status, 404);
    assert_eq!(fs::read(folder.path("open.txt")).expect("there"), b"new");
    for name in ["guarded.txt", "ann/secret.txt"] {
        assert_eq!(fs::read(folder.path(name)).expect("there"), b"operator's", "{name}");
    }
    assert_eq!(names(&folder, ""), ["ann", "guarded.txt", "open.txt"]);
}

/// Returns the bytes of a file below the root that is not in its place, if this process writes one:
/// most file systems have files without a name, and the kernel shows them as deleted ones.
fn part_bytes(folder: &Folder) -> Option<u64> {
    let mut open = fs::read_dir("/proc/self/fd").expect("the kernel lists descriptors");
    let root = folder.root();
    open.find_map(|entry| {
        let entry = entry.ok()?.path();
        let link = fs::read_link(&entry).ok()?;
        let name = link.to_string_lossy();
        let is_part = name.ends_with(" (deleted)") || name.contains("/.gustnado-upload-");
        (is_part && link.starts_with(&root)).then(|| fs::metadata(entry).ok())?
    })
    .map(|found| found.len())
}

fn has_part(folder: &Folder) -> bool {
    part_bytes(folder).is_some()
}

fn a_file_that_does_not_come_whole_leaves_nothing(setup: Setup) {
    let folder = Folder::new();
    folder.file("x", "");
    let server = start(setup, &folder, |_| {});
    let mut client = server.connect();
    client.send(request("PUT", "/cut.bin", "Content-Length: 1000000\r\n"));
    client.send(noise(3, 600_000));
    crate::harness::wait_until("a part of it is there", || has_part(&folder));
    drop(client);
    crate::harness::wait_until("the part is removed", || !has_part(&folder));
    assert_eq!(names(&folder, ""), ["x"]);
    assert_eq!(server.get("/cut.bin").status, 404);
}

fn files_are_taken_within_their_bounds(setup: Setup) {
    let folder = Folder::new();
    folder.file("old.bin", vec![0; 4_000]);
    let server = start(setup, &folder, |settings| {
        settings.upload_overwrite = true;
        settings.upload_bytes_max = 5_000;
        settings.upload_quota = 10_000;
    });
    assert_eq!(put(&server, "/large", "", &[0; 5_001]).status, 413);
    assert_eq!(put(&server, "/a", "", &[0; 5_000]).status, 201);
    assert_eq!(put(&server, "/b", "", &[0; 1_001]).status, 507);
    assert_eq!(put(&server, "/b", "", &[0; 1_000]).status, 201);
    // (A replaced file gives its room back, once the new one is in its place.)
    assert_eq!(put(&server, "/c", "", b"x").status, 507);
    assert_eq!(names(&folder, ""), ["a", "b", "old.bin"]);
    if Setup::is_http2() {
        return;
    }
    let chunks = "1389\r\n".to_owned() + &"x".repeat(0x1389) + "\r\n0\r\n\r\n";
    let head = request("PUT", "/large", "Transfer-Encoding: chunked\r\n");
    assert_eq!(server.ask([head.as_ref(), chunks.as_bytes()].concat()).status, 413);
    let is_gone = || names(&folder, "") == ["a", "b", "old.bin"];
    crate::harness::wait_until("the part is removed", is_gone);
}

/// Two routes to one folder, with different settings.
fn a_quota_is_the_folders_and_has_what_is_under_way(setup: Setup) {
    let folder = Folder::new();
    folder.file("old", vec![0; 100_000]);
    let taking = |bytes_max| {
        route().files(folder.root()).tune(move |settings| {
            settings.upload = true;
            settings.upload_quota = 1_000_000;
            settings.upload_bytes_max = bytes_max;
        })
    };
    let routes = Routes::new().route("/one", taking(1_000_000)).route("/two", taking(900_000));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    client.send(request("PUT", "/one/cut", "Content-Length: 900000\r\n"));
    client.send(noise(3, 600_000));
    let is_written = || part_bytes(&folder).is_some_and(|bytes| bytes >= 256 << 10);
    crate::harness::wait_until("a part of it is there", is_written);
    assert_eq!(put(&server, "/two/b", "", &noise(1, 700_000)).status, 507);
    drop(client);
    let is_put = || put(&server, "/two/b", "", &noise(1, 700_000)).status == 201;
    crate::harness::wait_until("what was cut gives its room back", is_put);
    assert_eq!(put(&server, "/one/c", "", &noise(1, 200_001)).status, 507);
    assert_eq!(put(&server, "/one/c", "", &noise(1, 200_000)).status, 201);
    assert_eq!(names(&folder, ""), ["b", "c", "old"]);
}

fn a_full_disk_leaves_nothing(setup: Setup) {
    let folder = Folder::new();
    let mount = |args: &[&str]| {
        let place = folder.root();
        let ran = Command::new(args[0]).args(&args[1..]).arg(place).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs"]) {
        println!("skipped: only root may mount a small disk");
        return;
    }
    let server = start(setup, &folder, |_| {});
    let fits = put(&server, "/fits", "", &noise(1, 100_000));
    let full = put(&server, "/full", "", &noise(2, 1_000_000));
    crate::harness::wait_until("no part is left", || names(&folder, "") == ["fits"]);
    let again = put(&server, "/again", "", &noise(3, 100_000));
    server.stop();
    // (The root is open as long as the server is.)
    crate::harness::wait_until("it is unmounted", || mount(&["umount"]));
    assert_eq!((fits.status, full.status, again.status), (201, 507, 201));
}

fn pages_of_other_sites_send_nothing(setup: Setup) {
    let folder = Folder::new();
    let server = start(setup, &folder, |_| {});
    for fields in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: https://other.example\r\n",
        "Origin: null\r\n",
    ] {
        assert_eq!(put(&server, "/x", fields, b"x").status, 403, "{fields}");
    }
    assert_eq!(put(&server, "/x", "Sec-Fetch-Site: same-origin\r\n", b"x").status, 201);
    assert_eq!(names(&folder, ""), ["x"]);
}

fn without_the_setting_nothing_is_taken(setup: Setup) {
    let folder = Folder::new();
    let server = setup.files(&folder);
    let answer = put(&server, "/x", "", b"x");
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(names(&folder, "").len(), 0);
}
