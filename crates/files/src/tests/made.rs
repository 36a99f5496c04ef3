//! Files that the server compresses itself.

use std::os::unix::fs::MetadataExt;
use std::thread;

use super::*;
use crate::lookup::FoundEntry;
use crate::made::MadeBy;
use gustnado_compress::{Level, compress};
use gustnado_config::{Compress, Precompressed};
use gustnado_http::content_coding::ContentCoding;

fn scene() -> Scene {
    with(|settings| settings.compress = Compress::On)
}

fn with(change: impl FnOnce(&mut RouteSettings)) -> Scene {
    Scene::with(FileOptions { cache_bytes: 8 << 20, ..tuned(change) }, WAYS[0])
}

/// Text that becomes fewer bytes.
fn text(bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|at| format!("{at:7}\n").into_bytes()).take(bytes).collect()
}

fn compressed(coding: ContentCoding, bytes: usize) -> Vec<u8> {
    compress(coding, Level::default(), &text(bytes)).expect("it is encoded")
}

fn get(scene: &Scene, path: &str, accepted: &str) -> Sent {
    scene.get_with(path, &[&format!("Accept-Encoding: {accepted}")])
}

#[test]
fn a_file_is_compressed_as_the_client_wants() {
    for bytes in [2_000, 100_000] {
        let scene = scene();
        scene.write("page.html", text(bytes));
        for _ in 0..2 {
            for (accepted, coding) in
                [("gzip, zstd, br", ContentCoding::Zstd), ("gzip", ContentCoding::Gzip)]
            {
                let sent = get(&scene, "/page.html", accepted);
                assert_eq!(sent.field("Content-Encoding"), Some(coding.name()));
                assert!(sent.body == compressed(coding, bytes), "{accepted} {bytes}");
                assert_eq!(sent.field("Content-Type"), Some("text/html; charset=utf-8"));
                assert_eq!(sent.field("Vary"), Some("Accept-Encoding"));
                let head = scene.send("HEAD", "/page.html", &["Accept-Encoding: gzip"]);
                assert_eq!(head.status(), 200);
                let tag = format!("If-None-Match: {}", sent.etag());
                let accepted = format!("Accept-Encoding: {accepted}");
                assert_eq!(scene.get_with("/page.html", &[&accepted, &tag]).status(), 304);
                assert_eq!(scene.get_with("/page.html", &[&tag]).status(), 200);
                let part = scene.get_with("/page.html", &[&accepted, "Range: bytes=3-9"]);
                assert_eq!(
                    (part.status(), part.field("Content-Encoding")),
                    (206, Some(coding.name()))
                );
                assert!(part.body == compressed(coding, bytes)[3..10]);
            }
            let plain = scene.get("/page.html");
            assert_eq!(
                (plain.field("Content-Encoding"), plain.field("Vary")),
                (None, Some("Accept-Encoding"))
            );
            assert!(plain.body == text(bytes));
        }
    }
}

#[test]
fn it_is_made_once_for_all_threads_and_found_without_the_disk() {
    let scene = scene();
    scene.write("app.js", text(50_000));
    let first = get(&scene, "/app.js", "gzip");
    assert_eq!((first.field("Content-Encoding"), scene.files.folder.made.len()), (Some("gzip"), 1));
    let files = scene.files.clone();
    let now = scene.now;
    // Another thread finds the file on the disk, and what was made of it in the folder.
    thread::scope(|scope| {
        scope.spawn(|| {
            let input = b"GET /app.js HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
            let outcome = Head::decode(input, &mut 0, &Limits::default());
            let Ok(Decoded::Done(head)) = outcome else { panic!("{outcome:?}") };
            match files.respond(None, &head.on(input), || false, now) {
                FolderResponse::Ready(response) => assert_eq!(response.status, Status::OK),
                FolderResponse::Wait(_) => panic!("it is made again"),
            }
        });
    });
    fs::remove_dir_all(scene.place.path().join("site")).expect("it goes");
    let again = get(&scene, "/app.js", "gzip");
    assert!(again.head == first.head && again.body == first.body);
    assert_eq!(scene.files.folder.made.len(), 1);
}

#[test]
fn what_is_not_worth_it_is_sent_as_it_is() {
    let scene = scene();
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    let noise: Vec<u8> = (0..4_000).map(|_| next()).collect();
    scene.write("noise.txt", &noise);
    scene.write("photo.png", text(5_000));
    scene.write("short.txt", text(500));
    for (path, vary) in
        [("/photo.png", None), ("/short.txt", None), ("/noise.txt", Some("Accept-Encoding"))]
    {
        for _ in 0..2 {
            let sent = get(&scene, path, "gzip");
            assert_eq!(
                (sent.field("Content-Encoding"), sent.field("Vary")),
                (None, vary),
                "{path}"
            );
        }
    }
    assert_eq!(scene.files.folder.made.len(), 0);
    // Who refuses it as it is gets it so, if nothing that could be made is there.
    for accepted in ["gzip, identity;q=0", "zstd, gzip;q=0.5, identity;q=0"] {
        let sent = get(&scene, "/noise.txt", accepted);
        assert_eq!((sent.status(), sent.field("Content-Encoding")), (200, None), "{accepted}");
    }
    assert_eq!(get(&scene, "/noise.txt", "br, identity;q=0").status(), 406);
    assert_eq!(get(&scene, "/photo.png", "gzip, identity;q=0").status(), 200);
}

#[test]
fn what_another_request_makes_is_not_waited_for() {
    let scene = scene();
    scene.write("app.js", text(5_000));
    let folder = &scene.files.folder;
    let found = crate::worker::with(folder, |worker| worker.find(folder, b"/app.js", scene.now));
    let Ok(FoundEntry::Variants { set, .. }) = found else { panic!("it has variants") };
    let key = set.key_of(MadeBy::Coding(ContentCoding::Gzip));
    assert!(folder.made.begin(key));
    for accepted in ["gzip", "gzip, identity;q=0"] {
        let sent = get(&scene, "/app.js", accepted);
        assert_eq!((sent.status(), sent.field("Content-Encoding")), (200, None), "{accepted}");
    }
    folder.made.abandon(&key);
    assert_eq!(get(&scene, "/app.js", "gzip").field("Content-Encoding"), Some("gzip"));
}

#[test]
fn settings_say_which_files_and_how() {
    let scene = with(|settings| {
        settings.compress = Compress::Gzip;
        settings.compress_types = vec!["image/*".to_owned()];
        settings.compress_bytes_min = 10;
    });
    scene.write("photo.png", text(50));
    scene.write("page.html", text(5_000));
    assert_eq!(get(&scene, "/photo.png", "gzip, zstd").field("Content-Encoding"), Some("gzip"));
    assert_eq!(get(&scene, "/page.html", "gzip, zstd").field("Content-Encoding"), None);
}

#[test]
fn a_file_beside_it_comes_before_what_would_be_made() {
    let scene = with(|settings| {
        (settings.compress, settings.precompressed) = (Compress::On, Precompressed::On);
    });
    scene.write("app.js", text(5_000));
    scene.write("app.js.gz", "made by somebody");
    assert_eq!(get(&scene, "/app.js", "gzip").text(), "made by somebody");
    assert_eq!(get(&scene, "/app.js", "gzip, zstd").field("Content-Encoding"), Some("zstd"));
    assert_eq!(scene.files.folder.made.len(), 1);
}

#[test]
fn a_changed_file_is_compressed_again() {
    let mut scene = scene();
    for bytes in [5_000, 6_000, 90_000] {
        scene.replace("app.js", text(bytes));
        scene.wait(1_000);
        assert!(get(&scene, "/app.js", "gzip").body == compressed(ContentCoding::Gzip, bytes));
    }
}

#[test]
fn what_is_made_is_bounded() {
    let options =
        FileOptions { cache_bytes: 400_000, ..tuned(|settings| settings.compress = Compress::On) };
    let scene = Scene::with(options, WAYS[0]);
    for at in 0..60 {
        scene.write(&format!("f{at}.js"), text(20_000 + at));
        let sent = get(&scene, &format!("/f{at}.js"), "gzip");
        assert_eq!(sent.field("Content-Encoding"), Some("gzip"));
    }
    let each = compressed(ContentCoding::Gzip, 20_000).len();
    let count = scene.files.folder.made.len();
    assert!((2..=100_000 / each).contains(&count), "{count} of {each} bytes");
    // One that would take too much of it is sent as it is.
    scene.write("large.js", text(200_000));
    assert_eq!(get(&scene, "/large.js", "gzip").field("Content-Encoding"), None);
}

#[test]
fn the_page_of_an_application_is_compressed_under_every_path() {
    let scene = with(|settings| {
        (settings.compress, settings.spa) = (Compress::On, "index.html".to_owned());
    });
    scene.write("index.html", text(5_000));
    for _ in 0..2 {
        for (path, is_fallback) in [("/", false), ("/users/42", true), ("/", false), ("/a/b", true)]
        {
            for coding in [ContentCoding::Gzip, ContentCoding::Zstd] {
                let accepted = format!("Accept-Encoding: {}", coding.name());
                let sent = scene.get_with(path, &[&accepted, "Sec-Fetch-Mode: navigate"]);
                assert_eq!(sent.status(), 200, "{path}");
                assert_eq!(sent.field("Content-Encoding"), Some(coding.name()), "{path}");
                assert!(sent.body == compressed(coding, 5_000));
                assert!(sent.head.contains("Accept-Encoding"), "{}", sent.head);
                assert_eq!(sent.head.contains("Sec-Fetch-Mode"), is_fallback, "{}", sent.head);
            }
        }
    }
}

#[test]
fn a_file_with_two_names_has_the_type_of_each() {
    let scene = scene();
    scene.write("a.json", text(5_000));
    let site = scene.place.path().join("site");
    fs::hard_link(site.join("a.json"), site.join("a.txt")).expect("a link");
    for _ in 0..2 {
        for (path, kind) in
            [("/a.json", "application/json"), ("/a.txt", "text/plain; charset=utf-8")]
        {
            let sent = get(&scene, path, "gzip");
            assert_eq!(sent.field("Content-Encoding"), Some("gzip"));
            assert_eq!(sent.field("Content-Type"), Some(kind));
        }
    }
}

#[test]
fn a_file_whose_time_lies_in_the_future_is_compressed_once() {
    let mut scene = scene();
    scene.write("app.js", text(5_000));
    let path = scene.place.path().join("site/app.js");
    let changed = fs::metadata(path).expect("it is there").ctime().unsigned_abs();
    scene.now.unix_secs = changed - 100;
    for _ in 0..3 {
        scene.now.unix_secs += 1;
        scene.wait(1_000);
        let body = get(&scene, "/app.js", "gzip").body;
        assert!(body == compressed(ContentCoding::Gzip, 5_000));
        assert_eq!(scene.files.folder.made.len(), 1);
    }
}

#[test]
fn what_was_made_of_a_file_that_was_just_written_does_not_last() {
    let mut scene = scene();
    scene.write("app.js", text(5_000));
    let path = scene.place.path().join("site/app.js");
    let written = fs::metadata(path).expect("it is there").ctime();
    scene.now.unix_secs = written.unsigned_abs() + 1;
    let made = |scene: &Scene| get(scene, "/app.js", "gzip").body;
    let first = made(&scene);
    assert!(first == compressed(ContentCoding::Gzip, 5_000));
    assert_eq!(scene.files.folder.made.len(), 1);
    // As other bytes with the same stamp would, it is made again of what is there by then.
    for made_by_then in [2, 2] {
        scene.now.unix_secs += 1;
        scene.wait(1_000);
        assert!(made(&scene) == first);
        assert_eq!(scene.files.folder.made.len(), made_by_then);
    }
}
