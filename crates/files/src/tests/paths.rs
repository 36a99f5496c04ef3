//! The file that a path means, and that no path means one outside.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode};

use super::*;

const HOSTILE: [&str; 43] = [
    "/../secret",
    "/..",
    "/../",
    "/a/../../secret",
    "/a/../page",
    "/a/..",
    "/%2e%2e/secret",
    "/%2E%2E/secret",
    "/.%2e/secret",
    "/%2e./secret",
    "/%2e%2e%2fsecret",
    "/..%2fsecret",
    "/..%2Fsecret",
    "/a%2f..%2f..%2fsecret",
    "/%2fetc/passwd",
    "//etc/passwd",
    "///etc/passwd",
    "/a%2fpage",
    "/..%5csecret",
    "/%5c..%5csecret",
    "/a%5cpage",
    "/page%00",
    "/%00",
    "/page%00.html",
    "/secret%00.html",
    "/%252e%252e/secret",
    "/%252e%252e%252fsecret",
    "/..%252fsecret",
    "/%c0%ae%c0%ae/secret",
    "/%uff0e/../secret",
    "/%e0%80%ae%e0%80%ae/secret",
    "/out",
    "/parent/secret",
    "/absolute",
    "/root/etc/passwd",
    "/deep/out",
    "/a/../out",
    "/page/",
    "/page/../page",
    "/....//secret",
    "/..;/secret",
    "/%2e%2e;/secret",
    "/.../secret",
];

fn hostile_scene(hidden: bool, way: (Resolver, Reopen)) -> Scene {
    let scene = Scene::with(tuned(|settings| settings.hidden = hidden), way);
    let place = scene.place.path();
    fs::write(place.join("secret"), "SECRET").expect("a file");
    scene.write("page", "page");
    scene.write("a/page", "page");
    let links = [
        ("../secret", "out"),
        ("..", "parent"),
        ("/", "root"),
        ("../../secret", "a/out"),
        ("a", "deep"),
        (place.join("secret").to_str().expect("UTF-8"), "absolute"),
    ]
    .map(|(target, at)| (target.to_owned(), at));
    for (target, at) in links {
        symlink(target, place.join("site").join(at)).expect("a symlink");
    }
    scene
}

#[test]
fn no_path_leads_outside() {
    for way in WAYS {
        for hidden in [false, true] {
            let scene = hostile_scene(hidden, way);
            for path in HOSTILE {
                let sent = scene.get(path);
                let leads_upwards = CanonicalPath::of(path.as_bytes()).is_err();
                let is_bad = leads_upwards || path.contains("%u");
                assert_eq!(sent.status(), if is_bad { 400 } else { 404 }, "{path}: {}", sent.head);
                assert!(!sent.text().contains("SECRET") && !sent.text().contains("root:"));
            }
            assert_eq!(scene.get("/deep/page").text(), "page", "a link inside is followed");
        }
    }
}

#[test]
fn nothing_tells_what_exists_outside() {
    let scene = hostile_scene(false, WAYS[0]);
    let (there, missing) = (scene.get("/parent/secret"), scene.get("/parent/none"));
    assert_eq!((there.status(), there.head, there.body), (404, missing.head, missing.body));
}

#[test]
fn a_bad_escape_is_a_bad_request() {
    let scene = Scene::new();
    for path in ["/%", "/%4", "/%zz", "/a%2", "/%2/a", "/%+1", "/%%41"] {
        assert_eq!(scene.get(path).status(), 400, "{path}");
    }
}

#[test]
fn escapes_are_decoded_once() {
    let scene = Scene::new();
    scene.write("a b", "space");
    scene.write("é", "accent");
    scene.write("%2e%2e", "literal");
    assert_eq!(scene.get("/a%20b").text(), "space");
    assert_eq!(scene.get("/%C3%A9").text(), "accent");
    assert_eq!(scene.get("/%252e%252e").text(), "literal");
}

#[test]
fn dotfiles_are_hidden_unless_asked_for() {
    for way in WAYS {
        for hidden in [false, true] {
            let scene = Scene::with(tuned(|settings| settings.hidden = hidden), way);
            scene.write(".env", "x");
            scene.write(".git/config", "x");
            scene.write("a/.htaccess", "x");
            scene.write(".well-known/security.txt", "x");
            let expected = if hidden { 200 } else { 404 };
            for path in ["/.env", "/.git/config", "/a/.htaccess", "/%2eenv", "/.gi%74/config"] {
                assert_eq!(scene.get(path).status(), expected, "{path}");
            }
            assert_eq!(scene.get("/.git").status(), if hidden { 301 } else { 404 });
            assert_eq!(scene.get("/.well-known/security.txt").status(), 200);
        }
    }
}

#[test]
fn special_files_are_not_there() {
    for way in WAYS {
        let scene = Scene::with(options(), way);
        let site = scene.place.path().join("site");
        rustix::fs::mknodat(CWD, site.join("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a fifo");
        let _listener = UnixListener::bind(site.join("socket")).expect("a socket");
        fs::create_dir(site.join("folder")).expect("a folder");
        symlink("../fifo", site.join("folder/index.html")).expect("a symlink");
        // A fifo opened the ordinary way would hang this test for good.
        for path in ["/fifo", "/socket", "/folder/", "/fifo/"] {
            assert_eq!(scene.get(path).status(), 404, "{path}");
        }
    }
}

#[test]
fn a_folder_is_answered_by_its_index_and_named_with_a_slash() {
    for way in WAYS {
        let scene = Scene::with(options(), way);
        scene.write("index.html", "top");
        scene.write("docs/index.html", "docs");
        scene.write("empty/file", "x");
        scene.write("odd/index.html/file", "a folder called index.html");
        for _ in 0..2 {
            assert_eq!(scene.get("/").text(), "top");
            let sent = scene.get("/docs/?q");
            assert_eq!(
                (sent.text(), sent.field("Content-Type")),
                ("docs", Some("text/html; charset=utf-8"))
            );
        }
        for (path, location) in [
            ("/docs", "/docs/"),
            ("/docs?a=b&c=/%2F", "/docs/?a=b&c=/%2F"),
            ("/d%6fcs", "/docs/"),
            ("/.//docs", "/docs/"),
            ("//docs", "/docs/"),
            ("http://example.org/docs?x", "/docs/?x"),
        ] {
            let sent = scene.get(path);
            assert_eq!((sent.status(), sent.field("Location")), (301, Some(location)), "{path}");
        }
        for path in ["/empty/", "/odd/", "/none/", "/index.html/"] {
            assert_eq!(scene.get(path).status(), 404, "{path}");
        }
    }
}

#[test]
fn a_swapped_root_is_picked_up() {
    for way in WAYS {
        let place = TempDir::new().expect("a temporary folder");
        let link = place.path().join("current");
        for release in ["one", "two"] {
            fs::create_dir(place.path().join(release)).expect("a folder");
            fs::write(place.path().join(release).join("page"), release).expect("a file");
        }
        symlink("one", &link).expect("a symlink");
        let files = Files::open_with(&link, options(), |path| Root::open_with(path, way.0, way.1));
        let now = Now { unix_secs: LATER, mono_ms: 0 };
        let mut scene = Scene { place, files: files.expect("the folder opens"), now };
        assert_eq!(scene.get("/page").text(), "one");

        symlink("two", scene.place.path().join("next")).expect("a symlink");
        fs::rename(scene.place.path().join("next"), &link).expect("a swap");
        assert_eq!(scene.get("/page").text(), "one", "not looked at again within the second");
        scene.wait(1_000);
        assert_eq!(scene.get("/page").text(), "two", "{way:?}");

        // While the path leads nowhere, the old root is served.
        fs::remove_file(&link).expect("the link goes");
        scene.wait(5_000);
        assert_eq!(scene.get("/page").text(), "two");
    }
}
