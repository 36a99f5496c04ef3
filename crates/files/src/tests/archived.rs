//! Folders as one file. Python reads the archives: what its library accepts, others do.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use gustnado_compress::decompress;
use gustnado_config::{Archives, Listing};
use gustnado_http::content_coding::ContentCoding;

use super::*;

const BOTH: [&str; 2] = ["tar.zst", "zip"];

/// More than any archive here has.
const BYTES_MAX: usize = 200_000_000;

/// (Without threads, each piece is there when it is polled.)
fn options(change: impl FnOnce(&mut RouteSettings)) -> FileOptions {
    let mut options = FileOptions { threads: 0, ..tuned(change) };
    options.settings.listing = Listing::On;
    options.settings.archives = Archives::On;
    options
}

fn scene() -> Scene {
    Scene::with(options(|_| {}), WAYS[0])
}

/// A member of an archive, as Python read it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    is_folder: bool,
    mode: String,
    modified: u64,
    size: usize,
    digest: String,
}

/// Returns the members of an archive by their names.
fn read(form: &str, archive: &[u8]) -> BTreeMap<Vec<u8>, Read> {
    let tar = if form == "zip" { archive.to_vec() } else { decompressed(archive) };
    let reader = include_str!("read_archive.py");
    let mut python = Command::new("python3")
        .args(["-c", reader, form])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let mut stdin = python.stdin.take().expect("it was asked for");
    let writer = std::thread::spawn(move || stdin.write_all(&tar));
    let output = python.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("Python reads all");
    assert!(output.status.success(), "{form}: Python cannot read it");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut members = BTreeMap::new();
    for line in text.lines() {
        let [name, kind, mode, modified, size, digest] = line
            .split(' ')
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| panic!("six words: {line}"));
        let member = Read {
            is_folder: kind == "folder",
            mode: mode.to_owned(),
            modified: modified.parse().expect("a number"),
            size: size.parse().expect("a number"),
            digest: digest.to_owned(),
        };
        assert!(matches!(kind, "folder" | "file"), "{line}");
        assert_eq!(members.insert(unhex(name), member), None, "{line}: twice");
    }
    members
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

/// Returns the one frame of Zstandard that an archive is.
fn decompressed(archive: &[u8]) -> Vec<u8> {
    decompress(ContentCoding::Zstd, archive, BYTES_MAX).expect("Zstandard")
}

fn archive(scene: &Scene, path: &str, form: &str) -> BTreeMap<Vec<u8>, Read> {
    let sent = scene.get(&format!("{path}?archive={form}"));
    assert_eq!(sent.status(), 200, "{path} {form}");
    read(form, &sent.body)
}

fn names(members: &BTreeMap<Vec<u8>, Read>) -> Vec<String> {
    members.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn an_archive_has_the_bytes_the_dates_and_the_folders() {
    let scene = scene();
    let large: Vec<u8> = (0..700_000_u32).flat_map(|at| (at / 7).to_le_bytes()).collect();
    scene.write("photos/2026/a.txt", "twelve bytes");
    scene.write("photos/large.bin", &large);
    scene.write("photos/picture.png", &large[..300_000]);
    scene.write("photos/empty", "");
    scene.write("photos/run.sh", "#!/bin/sh\n");
    scene.write("other", "");
    let site = scene.place.path().join("site/photos");
    fs::create_dir(site.join("none")).expect("a folder");
    fs::set_permissions(site.join("run.sh"), fs::Permissions::from_mode(0o4711)).expect("ours");
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_778);
    File::open(site.join("2026/a.txt")).expect("there").set_modified(date).expect("ours");
    for form in BOTH {
        let sent = scene.get(&format!("/photos/?archive={form}"));
        let kind = if form == "zip" { "application/zip" } else { "application/zstd" };
        assert_eq!(sent.field("Content-Type"), Some(kind));
        let expected = format!("attachment; filename=\"photos.{form}\"");
        assert_eq!(sent.field("Content-Disposition"), Some(&*expected));
        assert_eq!(sent.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!((sent.field("ETag"), sent.field("Content-Length")), (None, None));
        let members = read(form, &sent.body);
        let all = [
            "photos",
            "photos/2026",
            "photos/2026/a.txt",
            "photos/empty",
            "photos/large.bin",
            "photos/none",
            "photos/picture.png",
            "photos/run.sh",
        ];
        assert_eq!(names(&members), all);
        let of = |name: &str| members[name.as_bytes()].clone();
        assert_eq!(
            (of("photos/2026/a.txt").size, of("photos/2026/a.txt").modified),
            (12, 784_111_778)
        );
        assert_eq!(
            (of("photos/run.sh").mode, of("photos/empty").mode),
            ("0o755".into(), "0o644".into())
        );
        assert!(of("photos/none").is_folder && !of("photos/empty").is_folder);
        let digest = format!("{:x}", <sha2::Sha256 as sha2::Digest>::digest(&large));
        assert_eq!(
            (of("photos/large.bin").size, of("photos/large.bin").digest),
            (large.len(), digest)
        );
        assert_eq!(of("photos/picture.png").size, 300_000);
        let head = scene.send("HEAD", &format!("/photos/?archive={form}"), &[]);
        assert_eq!(head.head, sent.head);
        assert!(head.body.is_empty());
    }
    let counts = &scene.files.folder.in_all;
    assert_eq!(counts.archives_begun.load(Ordering::Relaxed), 4);
    assert_eq!(counts.archives_open.load(Ordering::Relaxed), 0);
}

#[test]
fn the_root_has_a_name_of_its_own() {
    let scene = scene();
    scene.write("a/b", "b");
    for form in BOTH {
        assert_eq!(names(&archive(&scene, "/", form)), ["files", "files/a", "files/a/b"]);
    }
}

#[test]
fn every_name_comes_back() {
    let scene = scene();
    let long = "x".repeat(200);
    let deep = format!("{long}/{long}/{long}");
    let mut expected: Vec<Vec<u8>> = [
        &b"new\nline"[..],
        b"\xff\xfe not text",
        "caf\u{e9} \u{1f600}".as_bytes(),
        b"a b & \"'.txt",
        b"-rf",
        b"C:x",
        long.as_bytes(),
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    for name in &expected {
        let path = scene.place.path().join("site").join(OsStr::from_bytes(name));
        fs::write(path, name).expect("a file");
    }
    scene.write("dir/y", "");
    fs::remove_file(scene.place.path().join("site").join(&long)).expect("there");
    scene.write(&format!("{deep}/z"), "z");
    expected.extend([format!("{long}/{long}"), deep.clone(), format!("{deep}/z")].map(Vec::from));
    expected.extend([b"dir".to_vec(), b"dir/y".to_vec()]);
    expected.sort();
    for form in BOTH {
        let members = archive(&scene, "/", form);
        let below = members.keys().filter_map(|name| name.strip_prefix(b"files/"));
        let found: Vec<Vec<u8>> = below.map(<[u8]>::to_vec).collect();
        assert_eq!(found, expected, "{form}");
        assert_eq!(members[&b"files/\xff\xfe not text"[..]].size, 11);
    }
    // A path with an odd byte leads to a folder, or to nothing, like any other.
    for odd in ["/%00/", "/a%00b/", "/%ff/"] {
        assert_eq!(scene.get(&format!("{odd}?archive=zip")).status(), 404, "{odd}");
    }
}

#[test]
fn what_cannot_be_requested_is_left_out() {
    for way in WAYS {
        for (hidden, expected) in [
            (false, &["files", "files/in", "files/ok", "files/sub", "files/sub/x"][..]),
            (
                true,
                &[
                    "files",
                    "files/.h",
                    "files/.h/y",
                    "files/in",
                    "files/ok",
                    "files/sub",
                    "files/sub/x",
                ],
            ),
        ] {
            let forbidden = vec!["*.php".to_owned(), "/secret*".to_owned()];
            let scene = Scene::with(
                options(|settings| (settings.hidden, settings.forbidden) = (hidden, forbidden)),
                way,
            );
            let site = scene.place.path().join("site");
            for name in ["ok", "a.php", "sub/x", "sub/b.PHP", "secret/z", ".h/y", "back\\slash"] {
                scene.write(name, name);
            }
            fs::write(scene.place.path().join("outside"), "secret").expect("a file");
            for (target, name) in [
                ("sub/x", "in"),
                ("/etc/passwd", "out"),
                ("../outside", "beside"),
                ("nowhere", "broken"),
                ("round", "round"),
                ("sub", "to-a-folder"),
                ("..", "sub/up"),
                (".", "sub/self"),
            ] {
                symlink(target, site.join(name)).expect("a symlink");
            }
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(rustix::fs::CWD, site.join("fifo"), kind, mode, 0).expect("a fifo");
            for form in BOTH {
                let members = archive(&scene, "/", form);
                assert_eq!(names(&members), expected, "{way:?}");
                let linked = (&members[&b"files/in"[..]], &members[&b"files/sub/x"[..]]);
                assert_eq!(linked.0.digest, linked.1.digest, "a link is its file");
            }
        }
    }
}

#[test]
fn archives_are_made_only_where_they_are_offered_and_folders_are_listed() {
    let mut off = options(|_| {});
    off.settings.archives = Archives::Off;
    let scene = Scene::with(off, WAYS[0]);
    scene.write("a/b", "b");
    assert!(!scene.get("/a/").text().contains("?archive="));
    assert_eq!(
        scene.get("/a/?archive=zip").field("Content-Type"),
        Some("text/html; charset=utf-8")
    );

    let mut unlisted = options(|_| {});
    unlisted.settings.listing = Listing::Off;
    let scene = Scene::with(unlisted, WAYS[0]);
    scene.write("a/b", "b");
    assert_eq!(scene.get("/a/?archive=zip").status(), 404);

    let mut one = options(|_| {});
    one.settings.archives = Archives::Zip;
    let scene = Scene::with(one, WAYS[0]);
    scene.write("a/b", "b");
    scene.write("with/index.html", "its names are not listed");
    let page = scene.get("/a/");
    assert!(page.text().contains("<a href=\"?archive=zip\" download>Download zip</a>"));
    assert!(!page.text().contains("tar.zst"));
    for (target, kind) in [
        ("/a/?archive=zip", "application/zip"),
        ("/a/?sort=name&archive=zip", "application/zip"),
        ("/a/?archive=tar.zst", "text/html; charset=utf-8"),
        ("/a/?archive=rar", "text/html; charset=utf-8"),
        ("/a/?archive=", "text/html; charset=utf-8"),
        ("/with/?archive=zip", "text/html; charset=utf-8"),
    ] {
        assert_eq!(scene.get(target).field("Content-Type"), Some(kind), "{target}");
    }
    let moved = scene.get("/a?archive=zip");
    assert_eq!((moved.status(), moved.field("Location")), (301, Some("/a/?archive=zip")));
}

#[test]
fn what_vanishes_or_changes_meanwhile_leaves_a_good_archive() {
    for form in BOTH {
        let scene = scene();
        // Noise, so that the pieces are many.
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..600_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        for number in 0..12 {
            scene.write(&format!("{number}"), &noise);
        }
        let site = scene.place.path().join("site");
        let mut pieces = scene.pieces(&format!("/?archive={form}"));
        let mut bytes: Vec<u8> = pieces.by_ref().take(4).flatten().collect();
        // One of them is being read; the others are ahead, or were read.
        for number in 0..4 {
            fs::remove_file(site.join(number.to_string())).expect("there");
        }
        for number in 4..8 {
            let file = File::options().write(true).open(site.join(number.to_string()));
            file.expect("there").set_len(1_000).expect("it becomes shorter");
        }
        for number in 8..12 {
            let file = File::options().append(true).open(site.join(number.to_string()));
            file.expect("there").write_all(&noise).expect("it becomes longer");
        }
        bytes.extend(pieces.flatten());
        let members = read(form, &bytes);
        assert!((9..=13).contains(&members.len()), "{form}: {:?}", names(&members));
        for number in 4..8 {
            let length = members[format!("files/{number}").as_bytes()].size;
            let is_cut = length == 1_000 || form == "zip" && length < 600_000;
            assert!(is_cut || length == 600_000, "{form}: {length}");
        }
        for number in 8..12 {
            let length = members[format!("files/{number}").as_bytes()].size;
            assert!(length == 600_000 || length == 1_200_000, "{form}: {length}");
        }
    }
}

#[test]
fn the_bytes_of_an_archive_have_a_bound_that_is_checked_before_it_begins() {
    let scene = Scene::with(options(|settings| settings.archive_bytes_max = 1_000), WAYS[0]);
    scene.write("small/a", vec![b'x'; 600]);
    scene.write("small/b/c", vec![b'x'; 400]);
    scene.write("large/a", vec![b'x'; 600]);
    scene.write("large/b/c", vec![b'x'; 401]);
    for form in BOTH {
        assert_eq!(archive(&scene, "/small/", form).len(), 4);
        let refused = scene.get(&format!("/large/?archive={form}"));
        assert_eq!((refused.status(), refused.body.len()), (403, 0));
        assert!(refused.hint.is_some_and(|hint| hint.contains("larger")));
    }
    assert_eq!(scene.files.failures(), FileFailures::default(), "nothing of the system's");
}

#[test]
fn only_so_many_archives_are_made_at_once() {
    let scene = Scene::with(FileOptions { archives_max: 2, ..options(|_| {}) }, WAYS[0]);
    scene.write("a", "a");
    let (first, _second) = (scene.pieces("/?archive=zip"), scene.pieces("/?archive=tar.zst"));
    let refused = scene.get("/?archive=zip");
    assert_eq!((refused.status(), refused.field("Retry-After")), (503, Some("10")));
    assert!(refused.hint.is_some());
    drop(first);
    assert_eq!(scene.get("/?archive=zip").status(), 200);
    let counts = &scene.files.folder.in_all;
    assert_eq!(counts.archives_refused.load(Ordering::Relaxed), 1);
    assert_eq!(counts.archives_open.load(Ordering::Relaxed), 1);
}

#[test]
fn many_files_come_in_steps_and_the_directory_from_the_disk() {
    let scene = scene();
    scene.write("0", "0");
    let first = scene.place.path().join("site/0");
    for number in 1..20_000 {
        let name = format!("site/{number:05}-{}", "n".repeat(60));
        // A link costs less than a file.
        fs::hard_link(&first, scene.place.path().join(name)).expect("a link");
    }
    for form in BOTH {
        let (mut bytes, mut largest) = (Vec::new(), 0);
        for piece in scene.pieces(&format!("/?archive={form}")) {
            largest = largest.max(piece.len());
            bytes.extend(piece);
        }
        assert_eq!(read(form, &bytes).len(), 20_001);
        assert!(largest <= 400_000, "{largest}");
    }
}

#[test]
fn folders_that_lie_too_deep_break_the_archive_off() {
    let scene = scene();
    let deep = vec!["d"; 63].join("/");
    scene.write(&format!("{deep}/x"), "x");
    assert_eq!(archive(&scene, "/", "zip").len(), 65);
    scene.write(&format!("{deep}/d/x"), "x");
    // (As all of it is one step, this is known before anything is sent.)
    assert_eq!(scene.get("/?archive=zip").status(), 500);
    assert_eq!(scene.files.folder.in_all.archives_failed.load(Ordering::Relaxed), 1);
}
