//! Paths that try to leave the root, and things in it that are no files. All of them fail closed:
//! not one byte from outside, and nothing special is opened.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::harness::client::{get, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    no_path_leaves_the_root,
    no_link_leaves_the_root,
    links_within_the_root_are_followed,
    malformed_escapes_find_nothing,
    a_file_is_no_folder,
    names_too_long_for_the_disk_find_nothing,
    a_redirect_never_leads_to_another_host,
    dotfiles_are_hidden_unless_asked_for,
    special_files_are_never_opened,
    a_path_in_an_error_page_is_not_markup,
);

const SECRET: &str = "the secret";

/// A root with files, beside a secret.
fn tempting_folder() -> Folder {
    let folder = Folder::new();
    folder.file("index.html", "front");
    folder.file("a.txt", "inside");
    folder.file("sub/b.txt", "inside too");
    fs::write(folder.outside().join("secret.txt"), SECRET).expect("a secret beside the root");
    fs::create_dir(folder.outside().join("rooted")).expect("a folder whose name begins alike");
    fs::write(folder.outside().join("rooted/secret.txt"), SECRET).expect("a secret in it");
    folder
}

/// Asks for the target as it is; the answer says nothing but that there is nothing.
fn finds_nothing(server: &Server, target: &str) {
    for method in ["GET", "HEAD"] {
        let mut client = server.connect();
        client.send(request(method, target, "Connection: close\r\n"));
        let bytes = client.read_to_end();
        let text = String::from_utf8_lossy(&bytes);
        let status = text.get(9..12).unwrap_or_else(|| panic!("no answer for {target}"));
        assert!(["404", "400"].contains(&status), "{method} {target}: {text}");
        assert!(!text.contains(SECRET) && !text.contains("root:"), "{target}: {text}");
    }
}

fn no_path_leaves_the_root(setup: Setup) {
    let folder = tempting_folder();
    let server = setup.files(&folder);
    let absolute = folder.outside().join("secret.txt");
    let absolute = absolute.to_str().expect("a temporary folder has a plain name");
    for target in [
        "/../secret.txt",
        "/sub/../../secret.txt",
        "/./../secret.txt",
        "/sub/./../../secret.txt",
        "//../secret.txt",
        "/..//secret.txt",
        "/.../secret.txt",
        "/....//secret.txt",
        "/%2e%2e/secret.txt",
        "/%2E%2E/secret.txt",
        "/.%2e/secret.txt",
        "/%2e./secret.txt",
        "/..%2fsecret.txt",
        "/..%2Fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/sub%2f..%2f..%2fsecret.txt",
        "/sub/%2e%2e/%2e%2e/secret.txt",
        "/..%5csecret.txt",
        "/..\\secret.txt",
        "/sub\\..\\..\\secret.txt",
        "/%5c../secret.txt",
        "/%252e%252e/secret.txt",
        "/%252e%252e%252fsecret.txt",
        "/..%252fsecret.txt",
        "/%c0%ae%c0%ae/secret.txt",
        "/%e0%80%ae%e0%80%ae/secret.txt",
        "/..%c0%afsecret.txt",
        "/%uff0e%uff0e/secret.txt",
        "/..%00/secret.txt",
        "/%00/../secret.txt",
        "/..;/secret.txt",
        "/../root/../secret.txt",
        "/../rooted/secret.txt",
        "/..",
        "/../",
        "/sub/../..",
        "/%2e%2e",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/%2Fetc/passwd",
        "/etc/passwd",
        "/../../../../../../../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/proc/self/environ",
        "http://gust.example/../secret.txt",
        "http://gust.example/%2e%2e/secret.txt",
        absolute,
        &format!("/{absolute}"),
        &format!("/%2f{}", &absolute[1..]),
    ] {
        finds_nothing(&server, target);
    }
    assert_eq!(server.get("/a.txt").text(), "inside");
}

fn no_link_leaves_the_root(setup: Setup) {
    let folder = tempting_folder();
    let secret = folder.outside().join("secret.txt");
    let links = [
        ("absolute", secret.clone()),
        ("relative", "../secret.txt".into()),
        ("folder", folder.outside().to_path_buf()),
        ("up", "..".into()),
        ("passwd", "/etc/passwd".into()),
        ("top", "/".into()),
        ("chain", "absolute".into()),
        ("dangling", "nowhere".into()),
        ("circle", "circle".into()),
        ("process", "/proc/self".into()),
        ("index-less", "../rooted".into()),
    ];
    for (name, place) in &links {
        symlink(place, folder.path(name)).expect("a link in the root");
    }
    symlink("../../secret.txt", folder.path("sub/index.html")).expect("an index that leads out");
    let server = setup.files(&folder);
    for target in [
        "/absolute",
        "/relative",
        "/folder/secret.txt",
        "/folder/",
        "/folder",
        "/up/secret.txt",
        "/passwd",
        "/top/etc/passwd",
        "/chain",
        "/dangling",
        "/circle",
        "/circle/a.txt",
        "/process/environ",
        "/process/root/etc/passwd",
        "/process/cwd",
        "/index-less/secret.txt",
        "/sub/",
        "/sub/index.html",
    ] {
        finds_nothing(&server, target);
    }
    assert_eq!(server.get("/a.txt").text(), "inside");
}

fn links_within_the_root_are_followed(setup: Setup) {
    let folder = tempting_folder();
    symlink("a.txt", folder.path("link.txt")).expect("a link to a file");
    symlink("sub", folder.path("shortcut")).expect("a link to a folder");
    symlink("../a.txt", folder.path("sub/up.txt")).expect("a link upwards, yet inside");
    let server = setup.files(&folder);
    for (target, body) in
        [("/link.txt", "inside"), ("/shortcut/b.txt", "inside too"), ("/sub/up.txt", "inside")]
    {
        assert_eq!(server.get(target).text(), body, "{target}");
    }
}

fn malformed_escapes_find_nothing(setup: Setup) {
    let folder = tempting_folder();
    let server = setup.files(&folder);
    for target in [
        "/a.txt%",
        "/a.txt%0",
        "/%zz",
        "/a%g0.txt",
        "/a.txt%00",
        "/a.txt%00.html",
        "/%00",
        "/%61.txt%",
        "/a.txt%0a",
        "/a.txt%0d%0aX: y",
        "/%ff%fe",
    ] {
        let target = target.replace(' ', "%20");
        finds_nothing(&server, &target);
    }
    assert_eq!(server.get("/%61.txt").text(), "inside");
}

fn a_file_is_no_folder(setup: Setup) {
    let folder = tempting_folder();
    let server = setup.files(&folder);
    for target in ["/a.txt/", "/a.txt/b", "/a.txt/.", "/a.txt//", "/a.txt/../a.txt/"] {
        finds_nothing(&server, target);
    }
}

fn names_too_long_for_the_disk_find_nothing(setup: Setup) {
    let folder = tempting_folder();
    let server = setup.files(&folder);
    finds_nothing(&server, &format!("/{}", "x".repeat(300)));
    finds_nothing(&server, &format!("/{}", "x".repeat(8_000)));
    finds_nothing(&server, &"/x".repeat(4_000));
    let answer = server.get(&"/sub/..".repeat(1_000));
    assert!([200, 400, 404].contains(&answer.status), "in and out and in again: {answer:?}");
    finds_nothing(&server, &"/sub/./".repeat(1_000));
}

fn a_redirect_never_leads_to_another_host(setup: Setup) {
    let folder = tempting_folder();
    folder.file("evil.example/index.html", "a folder with the name of a host");
    let server = setup.files(&folder);
    for target in [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "/%5cevil.example",
        "/%2fevil.example",
        "/./evil.example",
        "//sub",
        "http://gust.example//sub",
        "http://gust.example//evil.example",
        "/sub/..//evil.example",
        "/evil.example%0d%0aX:y",
    ] {
        let answer = server.get(target);
        if let Some(place) = answer.field("location") {
            assert_eq!(answer.status, 301, "{target}: {answer:?}");
            let mut letters = place.chars();
            assert_eq!(letters.next(), Some('/'), "{target} leads to {place}");
            assert!(!matches!(letters.next(), Some('/' | '\\')), "{target} leads to {place}");
        } else {
            assert!([200, 400, 404].contains(&answer.status), "{target}: {answer:?}");
        }
    }
}

fn dotfiles_are_hidden_unless_asked_for(setup: Setup) {
    let folder = tempting_folder();
    for name in [".env", ".git/config", "sub/.htaccess", ".dir/index.html", "..name"] {
        folder.file(name, SECRET);
    }
    let server = setup.files(&folder);
    for target in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.git/",
        "/.git",
        "/%2Egit/config",
        "/sub/.htaccess",
        "/.dir/",
        "/.dir",
        "/sub/%2ehtaccess",
        "/..name",
        "//.env",
    ] {
        finds_nothing(&server, target);
    }
    let mut config = setup.folder_config(&folder);
    config.routes.hidden = true;
    let open = Server::start(config);
    for target in ["/.env", "/.git/config", "/sub/.htaccess", "/.dir/", "/%2eenv"] {
        assert_eq!(open.get(target).text(), SECRET, "{target}");
    }
    finds_nothing(&open, "/../secret.txt");
}

fn special_files_are_never_opened(setup: Setup) {
    let folder = tempting_folder();
    let pipe = folder.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    let _socket = UnixListener::bind(folder.path("socket")).expect("a socket");
    symlink("pipe", folder.path("to-pipe")).expect("a link to the pipe");
    fs::create_dir(folder.path("box")).expect("a folder");
    symlink("../pipe", folder.path("box/index.html")).expect("an index that is the pipe");
    let events = inotify::init(inotify::CreateFlags::NONBLOCK).expect("a watch");
    inotify::add_watch(&events, &pipe, inotify::WatchFlags::OPEN).expect("a watch of the pipe");
    let server = setup.files(&folder);
    let start = Instant::now();
    for target in ["/pipe", "/socket", "/to-pipe", "/box/", "/pipe/", "/pipe/x", "/pipe"] {
        finds_nothing(&server, target);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "something waited for the pipe");
    let mut space = [MaybeUninit::uninit(); 512];
    let opened = inotify::Reader::new(&events, &mut space).next().map(|event| event.events());
    assert_eq!(opened.ok(), None, "the pipe was opened");
    assert_eq!(server.get("/a.txt").text(), "inside");
}

fn a_path_in_an_error_page_is_not_markup(setup: Setup) {
    let folder = tempting_folder();
    for server in [setup.default_site(), setup.files(&folder)] {
        for target in ["/<script>alert(1)</script>", "/%3Cscript%3Ealert(1)%3C/script%3E"] {
            let answer = server.ask(get(target));
            assert!([400, 404].contains(&answer.status), "{target}");
            assert!(!answer.text().contains("<script>alert"), "{target}: {}", answer.text());
        }
    }
}
