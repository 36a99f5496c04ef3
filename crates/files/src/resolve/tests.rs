use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::fs::FileType;
use tempfile::TempDir;

use super::*;

const WAYS: [(Resolver, Reopen); 4] = [
    (Resolver::Openat2, Reopen::Proc),
    (Resolver::Openat2, Reopen::Again),
    (Resolver::Walk, Reopen::Proc),
    (Resolver::Walk, Reopen::Again),
];

/// A root with entries, and a secret file outside it.
struct Scene {
    place: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let place = TempDir::new().expect("a temporary folder");
        let root = place.path().join("root");
        fs::create_dir_all(root.join("a/b")).expect("folders");
        fs::write(root.join("top"), "top").expect("a file");
        fs::write(root.join("a/b/deep"), "deep").expect("a file");
        fs::write(place.path().join("secret"), "secret").expect("a file");
        Scene { place }
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn link(&self, target: &str, at: &str) {
        symlink(target, self.root().join(at)).expect("a symlink");
    }

    fn open(&self, way: (Resolver, Reopen)) -> Root {
        Root::open_with(&self.root(), way.0, way.1).expect("the root opens")
    }
}

fn read(root: &Root, relative: &str) -> Result<String, Errno> {
    let located = root.locate(relative.as_bytes())?;
    let (file, _) = root.open_to_read(&located, relative.as_bytes())?;
    Ok(std::io::read_to_string(file).expect("a readable file"))
}

#[test]
fn what_lies_beneath_is_found() {
    let scene = Scene::new();
    for way in WAYS {
        let root = scene.open(way);
        assert_eq!(read(&root, "top"), Ok("top".into()), "{way:?}");
        assert_eq!(read(&root, "a/b/deep"), Ok("deep".into()), "{way:?}");
        for folder in ["", "a", "a/b"] {
            let located = root.locate(folder.as_bytes()).expect("a folder");
            assert_eq!(located.kind(), FileType::Directory, "{way:?} {folder}");
        }
        assert_eq!(read(&root, "none"), Err(Errno::NOENT), "{way:?}");
        assert_eq!(read(&root, "none/deep"), Err(Errno::NOENT), "{way:?}");
        assert_eq!(read(&root, "top/deep"), Err(Errno::NOTDIR), "{way:?}");
    }
}

#[test]
fn symlinks_that_stay_inside_are_followed() {
    let scene = Scene::new();
    scene.link("top", "plain");
    scene.link("a/b", "folder");
    scene.link("../../top", "a/b/up");
    scene.link("plain", "twice");
    scene.link("./a/.././a/b/deep", "winding");
    for way in WAYS {
        let root = scene.open(way);
        for (at, expected) in [
            ("plain", "top"),
            ("folder/deep", "deep"),
            ("a/b/up", "top"),
            ("folder/up", "top"),
            ("twice", "top"),
            ("winding", "deep"),
        ] {
            assert_eq!(read(&root, at), Ok(expected.into()), "{way:?} {at}");
        }
    }
}

#[test]
fn symlinks_that_lead_out_are_not() {
    let scene = Scene::new();
    let absolute = scene.place.path().join("secret");
    scene.link("../secret", "out");
    scene.link("..", "parent");
    scene.link(absolute.to_str().expect("UTF-8"), "absolute");
    scene.link(scene.root().join("top").to_str().expect("UTF-8"), "absolute-inside");
    scene.link("/", "slash");
    scene.link("a/../../root/top", "out-and-in");
    scene.link("../../../secret", "a/b/deep-out");
    scene.link("out", "chain");
    for way in WAYS {
        let root = scene.open(way);
        for at in [
            "out",
            "parent",
            "parent/secret",
            "absolute",
            "absolute-inside",
            "slash/etc/passwd",
            "out-and-in",
            "a/b/deep-out",
            "chain",
            "../secret",
            "a/../../secret",
            "..",
        ] {
            assert_eq!(read(&root, at), Err(Errno::XDEV), "{way:?} {at}");
        }
        assert!(read(&root, "/etc/passwd").is_err(), "{way:?}");
    }
}

#[test]
fn links_in_a_circle_end() {
    let scene = Scene::new();
    scene.link("loop", "loop");
    scene.link("pong", "ping");
    scene.link("ping", "pong");
    scene.link("nowhere", "dangling");
    for way in WAYS {
        let root = scene.open(way);
        assert_eq!(read(&root, "loop"), Err(Errno::LOOP), "{way:?}");
        assert_eq!(read(&root, "ping"), Err(Errno::LOOP), "{way:?}");
        assert_eq!(read(&root, "dangling"), Err(Errno::NOENT), "{way:?}");
    }
}

#[test]
fn magic_links_are_not_followed() {
    for (backend, reopen) in WAYS {
        let root = Root::open_with(Path::new("/proc/self"), backend, reopen).expect("/proc");
        for at in ["cwd", "root", "exe", "fd/0", "ns/net"] {
            assert!(read(&root, at).is_err(), "{backend:?} {at}");
        }
    }
}

#[test]
fn special_files_are_seen_and_not_opened() {
    let scene = Scene::new();
    let fifo = scene.root().join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("a fifo");
    let _listener = UnixListener::bind(scene.root().join("socket")).expect("a socket");
    scene.link("fifo", "to-fifo");
    for way in WAYS {
        let root = scene.open(way);
        for (at, kind) in
            [("fifo", FileType::Fifo), ("socket", FileType::Socket), ("to-fifo", FileType::Fifo)]
        {
            let located = root.locate(at.as_bytes()).expect("it can be looked at");
            assert_eq!(located.kind(), kind, "{way:?} {at}");
            let opened = root.open_to_read(&located, at.as_bytes());
            assert_eq!(opened.expect_err("it is not opened"), Errno::NOENT, "{way:?} {at}");
            // A non-blocking writer finds no reader: the root never opened one.
            let writing = OFlags::WRONLY | OFlags::NONBLOCK;
            let writer = rustix::fs::open(&fifo, writing, Mode::empty());
            assert_eq!(writer.expect_err("no reader"), Errno::NXIO, "{way:?} {at}");
        }
    }
}

#[test]
fn devices_are_not_opened() {
    for (backend, reopen) in WAYS {
        let root = Root::open_with(Path::new("/dev"), backend, reopen).expect("/dev");
        let located = root.locate(b"zero").expect("it can be looked at");
        assert_eq!(located.kind(), FileType::CharacterDevice);
        assert!(root.open_to_read(&located, b"zero").is_err(), "{backend:?}");
    }
}

#[test]
fn a_file_replaced_after_the_look_is_the_old_one_or_asked_for_again() {
    let scene = Scene::new();
    for (backend, reopen) in WAYS {
        fs::write(scene.root().join("top"), "top").expect("a file");
        let root = scene.open((backend, reopen));
        let located = root.locate(b"top").expect("a file");
        fs::write(scene.root().join("next"), "new").expect("a file");
        fs::rename(scene.root().join("next"), scene.root().join("top")).expect("a swap");
        let opened = root.open_to_read(&located, b"top");
        match reopen {
            Reopen::Proc => {
                let (file, _) = opened.expect("the old file");
                let text = std::io::read_to_string(file);
                assert_eq!(text.expect("a readable file"), "top");
            }
            Reopen::Again => assert_eq!(opened.expect_err("another file"), Errno::AGAIN),
        }
    }
}

#[test]
fn a_file_in_memory_is_opened_by_its_path() {
    let scene = Scene::new();
    let root = Root::open(&scene.root()).expect("the root opens");
    let Some(located) = root.locate_cached(b"a/b/deep") else {
        println!("skipped: this file system may wait, or the kernel does not know");
        return;
    };
    let located = located.expect("a file");
    let (file, stat) = root.open_to_read_cached(&located, b"a/b/deep").expect("it opens");
    assert_eq!(Identity::of(&stat), Identity::of(&located.stat));
    assert_eq!(std::io::read_to_string(file).expect("a readable file"), "deep");
    // Another file of that name is none.
    fs::write(scene.root().join("next"), "new").expect("a file");
    fs::rename(scene.root().join("next"), scene.root().join("a/b/deep")).expect("a swap");
    let opened = root.open_to_read_cached(&located, b"a/b/deep");
    assert_eq!(opened.expect_err("another file"), Errno::AGAIN);
    // Without a name it is still the one that was located.
    fs::remove_file(scene.root().join("a/b/deep")).expect("it was there");
    let (file, _) = root.open_to_read_cached(&located, b"a/b/deep").expect("it opens");
    assert_eq!(std::io::read_to_string(file).expect("a readable file"), "deep");
    let folder = root.locate_cached(b"a/b").expect("in memory").expect("a folder");
    let opened = root.open_to_read_cached(&folder, b"a/b");
    assert_eq!(opened.expect_err("no file"), Errno::NOENT);
}

#[test]
fn the_walk_is_bounded_in_depth() {
    let scene = Scene::new();
    let deep = "d/".repeat(walk::DEPTH_MAX + 1);
    fs::create_dir_all(scene.root().join(&deep)).expect("folders");
    let root = scene.open((Resolver::Walk, Reopen::Proc));
    assert!(root.locate(&deep.as_bytes()[..2 * walk::DEPTH_MAX]).is_ok());
    let outcome = root.locate(deep.as_bytes());
    assert_eq!(outcome.expect_err("too deep"), Errno::NAMETOOLONG);
}

#[test]
fn this_system_offers_what_the_tests_above_assume() {
    let scene = Scene::new();
    let root = Root::open(&scene.root()).expect("the root opens");
    assert_eq!(read(&root, "a/b/deep"), Ok("deep".into()));
    assert!(Root::open(&scene.root().join("top")).is_err(), "a file is no root");
    assert!(Root::open(&scene.root().join("none")).is_err());
}
