//! Compressed files beside others: which one a request gets, and when.

use std::fs::FileTimes;
use std::time::SystemTime;

use super::*;
use gustnado_config::Precompressed;

/// Returns a folder that sends compressed siblings.
fn scene(precompressed: Precompressed) -> Scene {
    let settings = RouteSettings { precompressed, ..RouteSettings::default() };
    Scene::with(FileOptions { settings, ..options() }, WAYS[0])
}

/// Writes a file and siblings that tell by their bytes what they are.
fn write_all(scene: &Scene, name: &str, bytes: usize, endings: &[&str]) {
    scene.write(name, content("plain", bytes));
    for ending in endings {
        scene.write(&format!("{name}.{ending}"), content(ending, bytes / 2));
    }
}

fn content(what: &str, bytes: usize) -> Vec<u8> {
    what.bytes().cycle().take(bytes).collect()
}

/// Sets when a file was modified, in seconds since 1970.
fn set_modified(scene: &Scene, name: &str, secs: u64) {
    let path = scene.place.path().join("site").join(name);
    let file = fs::File::options().write(true).open(path).expect("a file");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
    file.set_times(FileTimes::new().set_modified(time)).expect("a time");
}

fn get(scene: &Scene, path: &str, accepted: &str) -> Sent {
    scene.get_with(path, &[&format!("Accept-Encoding: {accepted}")])
}

#[test]
fn the_client_gets_what_it_wants_most() {
    for bytes in [1_000, 100_000] {
        let scene = scene(Precompressed::On);
        write_all(&scene, "app.js", bytes, &["br", "zst", "gz"]);
        for _ in 0..2 {
            for (accepted, coding, what) in [
                ("gzip, deflate, br, zstd", Some("br"), "br"),
                ("gzip, zstd", Some("zstd"), "zst"),
                ("gzip", Some("gzip"), "gz"),
                ("gzip, br;q=0.5", Some("gzip"), "gz"),
                ("deflate", None, "plain"),
                ("", None, "plain"),
                ("identity;q=0, *", Some("br"), "br"),
            ] {
                let sent = get(&scene, "/app.js", accepted);
                let size = if what == "plain" { bytes } else { bytes / 2 };
                assert_eq!((sent.status(), sent.field("Content-Encoding")), (200, coding));
                assert!(sent.body == content(what, size), "{accepted}");
                assert_eq!(sent.field("Content-Length"), Some(size.to_string().as_str()));
                assert_eq!(sent.field("Content-Type"), Some("text/javascript; charset=utf-8"));
                assert_eq!(sent.field("Vary"), Some("Accept-Encoding"));
                let head =
                    scene.send("HEAD", "/app.js", &[&format!("Accept-Encoding: {accepted}")]);
                assert_eq!(head.head, sent.head);
            }
            let plain = scene.get("/app.js");
            assert_eq!((plain.field("Content-Encoding"), plain.body.len()), (None, bytes));
            assert_eq!(plain.field("Vary"), Some("Accept-Encoding"));
        }
    }
}

#[test]
fn each_variant_has_its_own_tag_and_vary_is_on_every_answer() {
    let scene = scene(Precompressed::On);
    write_all(&scene, "app.js", 1_000, &["br", "gz"]);
    let tags: Vec<String> =
        ["br", "gzip", "x"].map(|coding| get(&scene, "/app.js", coding).etag().to_owned()).into();
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    for (coding, own) in ["br", "gzip", "x"].iter().zip(&tags) {
        let accepted = format!("Accept-Encoding: {coding}");
        for tag in &tags {
            let sent = scene.get_with("/app.js", &[&accepted, &format!("If-None-Match: {tag}")]);
            assert_eq!(sent.status(), if tag == own { 304 } else { 200 });
            assert_eq!(sent.field("Vary"), Some("Accept-Encoding"));
            let fields = [&accepted, &format!("If-Range: {tag}"), &"Range: bytes=1-5".to_owned()];
            let sent = scene.get_with("/app.js", &fields.map(String::as_str));
            assert_eq!(sent.status(), if tag == own { 206 } else { 200 });
            assert_eq!(sent.field("Vary"), Some("Accept-Encoding"));
        }
        let sent = scene.get_with("/app.js", &[&accepted, "If-Match: \"other\""]);
        assert_eq!((sent.status(), sent.field("Vary")), (412, Some("Accept-Encoding")));
        let sent = scene.get_with("/app.js", &[&accepted, "Range: bytes=99999-"]);
        assert_eq!((sent.status(), sent.field("Vary")), (416, Some("Accept-Encoding")));
    }
}

#[test]
fn a_range_is_one_of_the_variant() {
    for bytes in [1_000, 100_000] {
        let scene = scene(Precompressed::On);
        write_all(&scene, "app.js", bytes, &["br"]);
        let (accepted, range) = ("Accept-Encoding: br", "Range: bytes=10-19");
        let sent = scene.get_with("/app.js", &[accepted, range]);
        assert_eq!((sent.status(), sent.field("Content-Encoding")), (206, Some("br")));
        assert!(sent.body == content("br", bytes)[10..20]);
        let expected = format!("bytes 10-19/{}", bytes / 2);
        assert_eq!(sent.field("Content-Range"), Some(expected.as_str()));
        let parts = scene.get_with("/app.js", &[accepted, "Range: bytes=0-1,5-6"]);
        assert_eq!((parts.status(), parts.field("Content-Encoding")), (206, Some("br")));
        let plain = scene.get_with("/app.js", &[range]);
        assert_eq!((plain.status(), plain.field("Content-Encoding")), (206, None));
        assert_eq!(plain.field("Vary"), Some("Accept-Encoding"));
        assert!(plain.body == content("plain", bytes)[10..20]);
    }
}

#[test]
fn nothing_acceptable_is_406_and_only_where_there_is_a_choice() {
    let scene = scene(Precompressed::On);
    write_all(&scene, "app.js", 1_000, &["gz"]);
    scene.write("alone.js", "alone");
    for accepted in ["br, identity;q=0", "*;q=0"] {
        for _ in 0..2 {
            let sent = get(&scene, "/app.js", accepted);
            assert_eq!((sent.status(), sent.body.len()), (406, 0));
            assert_eq!(sent.field("Vary"), Some("Accept-Encoding"));
        }
        let sent = get(&scene, "/alone.js", accepted);
        assert_eq!((sent.status(), sent.text(), sent.field("Vary")), (200, "alone", None));
    }
}

#[test]
fn an_older_sibling_is_none_unless_it_always_counts() {
    for (precompressed, coding) in [(Precompressed::On, None), (Precompressed::Always, Some("br"))]
    {
        let mut scene = scene(precompressed);
        write_all(&scene, "app.js", 1_000, &["br"]);
        set_modified(&scene, "app.js", 1_000_000);
        set_modified(&scene, "app.js.br", 999_999);
        assert_eq!(get(&scene, "/app.js", "br").field("Content-Encoding"), coding);
        // The same second, as tools that compress carry it over.
        set_modified(&scene, "app.js.br", 1_000_000);
        scene.wait(1_000);
        assert_eq!(get(&scene, "/app.js", "br").field("Content-Encoding"), Some("br"));
    }
}

#[test]
fn without_the_setting_a_sibling_is_a_file_of_its_own() {
    let scene = scene(Precompressed::Off);
    write_all(&scene, "app.js", 1_000, &["br", "gz"]);
    let sent = get(&scene, "/app.js", "br, gzip");
    assert_eq!((sent.field("Content-Encoding"), sent.field("Vary")), (None, None));
    let sent = get(&scene, "/app.js.gz", "br, gzip");
    assert_eq!(sent.field("Content-Encoding"), None);
    assert!(sent.body == content("gz", 500));
}

#[test]
fn siblings_that_come_change_and_go_are_seen_within_a_second() {
    let mut scene = scene(Precompressed::On);
    scene.write("app.js", "plain");
    assert_eq!(get(&scene, "/app.js", "br").field("Vary"), None);
    scene.write("app.js.br", "first");
    assert_eq!(get(&scene, "/app.js", "br").text(), "plain");
    scene.wait(1_000);
    assert_eq!(get(&scene, "/app.js", "br").text(), "first");
    scene.replace("app.js.br", "second");
    scene.wait(1_000);
    assert_eq!(get(&scene, "/app.js", "br").text(), "second");
    scene.write("app.js.gz", "gzip");
    scene.wait(1_000);
    assert_eq!(get(&scene, "/app.js", "gzip").text(), "gzip");
    // A new file, whose siblings are made later: no old bytes in the meantime.
    scene.replace("app.js", "new");
    set_modified(&scene, "app.js.br", 1_000_000);
    set_modified(&scene, "app.js.gz", 1_000_000);
    scene.wait(1_000);
    let sent = get(&scene, "/app.js", "br, gzip");
    assert_eq!((sent.text(), sent.field("Vary")), ("new", None));
    for ending in ["br", "gz"] {
        fs::remove_file(scene.place.path().join(format!("site/app.js.{ending}"))).expect("it goes");
    }
    scene.wait(1_000);
    assert_eq!(get(&scene, "/app.js", "br, gzip").text(), "new");
}

#[test]
fn a_fresh_variant_is_found_without_the_disk() {
    let scene = scene(Precompressed::On);
    write_all(&scene, "app.js", 1_000, &["br"]);
    write_all(&scene, "big.js", 100_000, &["br"]);
    for path in ["/app.js", "/big.js", "/./app.js"] {
        assert!(!get(&scene, path, "br").body.is_empty());
    }
    // Nothing that is gone from the disk is missed before it is looked at again.
    fs::remove_dir_all(scene.place.path().join("site")).expect("it goes");
    for path in ["/app.js", "/big.js", "/%61pp.js", "//big.js"] {
        for (accepted, coding) in [("br", Some("br")), ("", None)] {
            assert_eq!(get(&scene, path, accepted).field("Content-Encoding"), coding, "{path}");
        }
    }
}

#[test]
fn indexes_have_siblings_and_links_and_folders_are_none() {
    let scene = scene(Precompressed::On);
    write_all(&scene, "docs/index.html", 1_000, &["br"]);
    assert_eq!(get(&scene, "/docs/", "br").field("Content-Encoding"), Some("br"));
    scene.write("page.html", "page");
    fs::create_dir(scene.place.path().join("site/page.html.br")).expect("a folder");
    assert_eq!(get(&scene, "/page.html", "br").text(), "page");
    // Beneath the root it is a file as any other; outside, it is not there.
    scene.write("a.css", "plain");
    let outside = scene.place.path().join("outside");
    fs::write(&outside, "secret").expect("a file");
    std::os::unix::fs::symlink(outside, scene.place.path().join("site/a.css.br")).expect("a link");
    assert_eq!(get(&scene, "/a.css", "br").text(), "plain");
}

#[test]
fn what_is_compressed_already_is_not_looked_for() {
    let scene = scene(Precompressed::On);
    write_all(&scene, "photo.png", 1_000, &["br"]);
    write_all(&scene, "logo.svg", 1_000, &["br"]);
    write_all(&scene, "unknown", 1_000, &["br"]);
    assert_eq!(get(&scene, "/photo.png", "br").field("Vary"), None);
    assert_eq!(get(&scene, "/logo.svg", "br").field("Content-Encoding"), Some("br"));
    assert_eq!(get(&scene, "/unknown", "br").field("Content-Encoding"), Some("br"));
}

#[test]
fn variants_are_bounded_by_bytes_and_by_descriptors() {
    let mut scene = scene(Precompressed::On);
    let folder = Arc::get_mut(&mut scene.files.folder).expect("not shared yet");
    (folder.cache_bytes, folder.descriptors_max) = (256 * 1_024, 16);
    let held = |scene: &Scene, name: &str| {
        let is_held = |at: &usize| {
            let key = format!("/{name}{at}.js");
            worker::with(&scene.files.folder, |worker| worker.cache.seen(key.as_bytes()).is_some())
        };
        (0..100).filter(is_held).count()
    };
    for at in 0..100 {
        write_all(&scene, &format!("big{at}.js"), 20_000, &["br"]);
        assert_eq!(get(&scene, &format!("/big{at}.js"), "br").body.len(), 10_000);
    }
    // Half of the descriptors are theirs, and each takes two.
    assert!((1..=4).contains(&held(&scene, "big")), "{}", held(&scene, "big"));
    for at in 0..100 {
        write_all(&scene, &format!("small{at}.js"), 4_000, &["br"]);
        assert_eq!(get(&scene, &format!("/small{at}.js"), "br").body.len(), 2_000);
    }
    assert!((6..=20).contains(&held(&scene, "small")), "{}", held(&scene, "small"));
    assert!(held(&scene, "big") <= 4);
}

#[test]
fn a_sibling_that_must_not_be_read_is_none() {
    unprivileged(|| {
        for bytes in [1_000, 100_000] {
            let mut scene = scene(Precompressed::On);
            write_all(&scene, "app.js", bytes, &["br", "gz"]);
            forbid(&scene, "app.js.br");
            for (accepted, coding, what) in
                [("br", None, "plain"), ("br, gzip", Some("gzip"), "gz")]
            {
                let sent = get(&scene, "/app.js", accepted);
                let found = (sent.status(), sent.field("Content-Encoding"));
                assert_eq!(found, (200, coding), "{accepted}");
                assert!(sent.body.starts_with(what.as_bytes()), "{accepted}");
                scene.wait(5_000);
            }
            assert_eq!(get(&scene, "/app.js.br", "").status(), 403);
        }
    });
}
