//! Files as the difference to a version that the client has.

use std::os::unix::fs::MetadataExt;

use super::*;
use gustnado_compress::compress_with;
use gustnado_config::{CacheControl, CacheRule, Compress, Dictionaries, Precompressed};
use sha2::{Digest as _, Sha256};

const OLD: &str = "assets/main.0a1b2c3d.js";
const NEW: &str = "assets/main.9f2c1b7a.js";

/// The field of a client that can read deltas.
const ACCEPTS: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz";

fn scene(change: impl FnOnce(&mut RouteSettings)) -> Scene {
    let options = tuned(|settings| {
        settings.dictionaries = Dictionaries::On;
        settings.cache_control = CacheControl::On;
        change(settings);
    });
    Scene::with(FileOptions { cache_bytes: 8 << 20, ..options }, WAYS[0])
}

/// A bundle; versions differ in a few lines.
fn bundle(version: usize, bytes: usize) -> Vec<u8> {
    let line = |at: usize| {
        let version = if at % 50 == 7 { version } else { 0 };
        format!("const name{} = {version};\n", at.wrapping_mul(7_919) % 10_007)
    };
    (0..).flat_map(|at| line(at).into_bytes()).take(bytes).collect()
}

fn named(dictionary: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = Sha256::digest(dictionary);
    let text: String = hash
        .chunks(3)
        .flat_map(|three| {
            let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - three.len()));
            (0..4).map(move |at| char::from(digits[(bits >> (18 - 6 * at) & 63) as usize]))
        })
        .take(43)
        .collect();
    format!("Available-Dictionary: :{text}=:")
}

fn delta(dictionary: &[u8], file: &[u8]) -> Vec<u8> {
    compress_with((dictionary, Sha256::digest(dictionary).into()), file).expect("it is encoded")
}

/// The deltas that were made and sent.
fn counts(scene: &Scene) -> (u64, u64) {
    let counts = &scene.files.folder.in_all;
    (counts.deltas_made.load(Ordering::Relaxed), counts.deltas_sent.load(Ordering::Relaxed))
}

/// The response once everything was made that the first request has asked for.
fn settled(scene: &Scene, path: &str, fields: &[&str]) -> Sent {
    scene.secure("GET", path, fields);
    scene.files.folder.deltas.settle();
    scene.secure("GET", path, fields)
}

#[test]
fn a_hashed_file_comes_as_the_difference_to_the_one_before_it() {
    for bytes in [3_000, 200_000] {
        let scene = scene(|_| {});
        let (old, new) = (bundle(1, bytes), bundle(2, bytes));
        scene.write(OLD, &old);
        scene.write(NEW, &new);
        let path = format!("/{NEW}");
        // Nobody waits for it.
        let first = scene.secure("GET", &path, &[ACCEPTS, &named(&old)]);
        assert_eq!((first.status(), first.field("Content-Encoding")), (200, None));
        assert!(first.body == new);
        scene.files.folder.deltas.settle();
        let sent = scene.secure("GET", &path, &[ACCEPTS, &named(&old)]);
        assert_eq!((sent.status(), sent.field("Content-Encoding")), (200, Some("dcz")));
        assert!(sent.body == delta(&old, &new), "{bytes}");
        assert_eq!(sent.field("Accept-Ranges"), None);
        for one in [&first, &sent] {
            assert_eq!(one.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
            assert_eq!(one.field("Use-As-Dictionary"), Some("match=\"main.*.js\""));
            assert_eq!(one.field("Content-Type"), Some("text/javascript; charset=utf-8"));
            let rule = "public, max-age=31536000, immutable";
            assert_eq!(one.field("Cache-Control"), Some(rule));
        }
        assert_ne!(first.etag(), sent.etag());
        let head = scene.secure("HEAD", &path, &[ACCEPTS, &named(&old)]);
        assert_eq!((head.head == sent.head, head.body.len()), (true, 0));
        let tag = format!("If-None-Match: {}", sent.etag());
        let same = scene.secure("GET", &path, &[ACCEPTS, &named(&old), &tag]);
        assert_eq!((same.status(), same.field("ETag")), (304, Some(sent.etag())));
        assert_eq!(same.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
        assert_eq!(same.field("Use-As-Dictionary"), None);
        assert_eq!(counts(&scene), (1, 1));
    }
}

#[test]
fn who_does_not_ask_for_it_gets_the_file() {
    let scene = scene(|_| {});
    let (old, new) = (bundle(1, 20_000), bundle(2, 20_000));
    scene.write(OLD, &old);
    scene.write(NEW, &new);
    let (path, named_other) = (format!("/{NEW}"), named(b"another file"));
    let named = named(&old);
    let is_delta = |fields: &[&str]| {
        let sent = settled(&scene, &path, fields);
        assert_eq!(sent.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
        let is_delta = sent.field("Content-Encoding") == Some("dcz");
        assert!(is_delta || sent.body == new || sent.status() == 206);
        is_delta
    };
    assert!(is_delta(&[ACCEPTS, &named]));
    for fields in [
        &[ACCEPTS][..],
        &[&named],
        &["Accept-Encoding: gzip, br, zstd, *", &named],
        &["Accept-Encoding: dcz;q=0, *", &named],
        &["Accept-Encoding: dcz;q=0.1, identity;q=0.2", &named],
        &[ACCEPTS, "Available-Dictionary: :AAAA:"],
        &[ACCEPTS, &named_other],
        &[ACCEPTS, &named, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
        &[ACCEPTS, &named, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"],
        &[ACCEPTS, &named, "Range: bytes=0-9"],
    ] {
        assert!(!is_delta(fields), "{fields:?}");
    }
    for fields in [
        &["Accept-Encoding: dcz", &named][..],
        &[ACCEPTS, &named, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"],
    ] {
        assert!(is_delta(fields), "{fields:?}");
    }
    // In clear, nothing is said of dictionaries.
    let plain = scene.get_with(&path, &[ACCEPTS, &named]);
    assert_eq!((plain.field("Use-As-Dictionary"), plain.field("Content-Encoding")), (None, None));
    assert_eq!(plain.field("Vary"), Some("Accept-Encoding"));
}

#[test]
fn what_may_be_no_dictionary_is_none() {
    let scene = scene(|settings| {
        let rule = CacheRule::new;
        settings.cache = vec![
            rule("/assets/asis.*", "max-age=60, no-transform"),
            rule("/assets/asked.*", "max-age=60, no-cache"),
        ];
        settings.spa = "index.html".into();
    });
    scene.write("assets/yes.9f2c1b7a.js", bundle(1, 2_000));
    assert!(
        scene.secure("GET", "/assets/yes.9f2c1b7a.js", &[]).field("Use-As-Dictionary").is_some()
    );
    scene.write("assets/asked.9f2c1b7a.js", bundle(1, 2_000));
    let asked = scene.secure("GET", "/assets/asked.9f2c1b7a.js", &[]);
    assert_eq!(asked.field("Use-As-Dictionary"), None);
    assert_eq!(asked.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
    for (name, bytes) in [
        ("main.9f2c1b7a.js", 2_000),
        ("assets/main.js", 2_000),
        ("assets/9f2c1b7a.js", 2_000),
        ("assets/short.9f2c1b7a.js", 500),
        ("assets/long.9f2c1b7a.js", (8 << 20) + 1),
        ("assets/photo.9f2c1b7a.png", 2_000),
        ("assets/asis.9f2c1b7a.js", 2_000),
        ("assets/[slug]-9f2c1b7a.js", 2_000),
        ("index.html", 2_000),
    ] {
        scene.write(name, bundle(1, bytes));
        let sent = scene.secure("GET", &format!("/{name}"), &[ACCEPTS, &named(b"")]);
        assert_eq!((sent.status(), sent.field("Use-As-Dictionary")), (200, None), "{name}");
        let vary = sent.field("Vary").unwrap_or_default();
        assert!(!vary.contains("Available-Dictionary"), "{name}");
    }
    assert!(scene.secure("GET", "/page", &["Accept: text/html"]).field("Vary").is_some());
}

#[test]
fn a_delta_that_saves_nothing_is_not_sent() {
    let scene = scene(|settings| settings.precompressed = Precompressed::On);
    let mut state = 1_u64;
    let mut noise = || -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..5_000).map(|_| next()).collect()
    };
    let (old, new) = (noise(), noise());
    scene.write(OLD, &old);
    scene.write(NEW, &new);
    let path = format!("/{NEW}");
    let sent = settled(&scene, &path, &[ACCEPTS, &named(&old)]);
    assert!(sent.field("Content-Encoding").is_none() && sent.body == new);
    // Nor one that is larger than what lies beside the file.
    let name = "assets/page.9f2c1b7a.js";
    scene.write(name, bundle(2, 9_000));
    scene.write(&format!("{name}.br"), "tiny");
    scene.write("assets/page.0a1b2c3d.js", bundle(1, 9_000));
    let sent = settled(&scene, &format!("/{name}"), &[ACCEPTS, &named(&bundle(1, 9_000))]);
    assert_eq!((sent.field("Content-Encoding"), sent.text()), (Some("br"), "tiny"));
    assert_eq!(counts(&scene).0, 0);
}

#[test]
fn a_dictionary_is_a_file_that_a_client_could_load() {
    let scene = scene(|settings| settings.forbidden = vec!["*.0dead0be.js".into()]);
    let new = bundle(9, 9_000);
    scene.write(NEW, &new);
    let path = format!("/{NEW}");
    let others = [
        "assets/main.0dead0be.js",
        "assets/main.0a1b2c3d.css",
        "assets/other.0a1b2c3d.js",
        "assets/main.legacy.0a1b2c3d.js",
        "assets/more/main.0a1b2c3d.js",
        "main.0a1b2c3d.js",
    ];
    for (version, name) in others.iter().enumerate() {
        scene.write(name, bundle(version, 9_000));
    }
    let outside = scene.place.path().join("outside.js");
    fs::write(&outside, bundle(7, 9_000)).expect("a file");
    let link = scene.place.path().join("site/assets/main.7a7a7a7b.js");
    std::os::unix::fs::symlink(&outside, link).expect("a link");
    for version in 0..8 {
        let sent = settled(&scene, &path, &[ACCEPTS, &named(&bundle(version, 9_000))]);
        assert!(sent.field("Content-Encoding").is_none() && sent.body == new, "{version}");
    }
    assert_eq!(counts(&scene).0, 0);
}

#[test]
fn a_dictionary_that_came_later_is_found_in_a_minute() {
    let mut scene = scene(|_| {});
    let (old, new) = (bundle(1, 9_000), bundle(2, 9_000));
    scene.write(NEW, &new);
    let fields = [ACCEPTS, &named(&old)];
    let path = format!("/{NEW}");
    assert_eq!(settled(&scene, &path, &fields).field("Content-Encoding"), None);
    scene.write(OLD, &old);
    scene.wait(59_000);
    assert_eq!(settled(&scene, &path, &fields).field("Content-Encoding"), None);
    scene.wait(1_000);
    assert_eq!(settled(&scene, &path, &fields).field("Content-Encoding"), Some("dcz"));
    // One that has changed is none.
    scene.replace(OLD, bundle(3, 9_000));
    scene.wait(60_000);
    assert_eq!(settled(&scene, &path, &fields).field("Content-Encoding"), None);
    let fields = [ACCEPTS, &named(&bundle(3, 9_000))];
    assert_eq!(settled(&scene, &path, &fields).field("Content-Encoding"), Some("dcz"));
}

#[test]
fn the_next_best_comes_until_it_is_there() {
    let scene = scene(|settings| settings.compress = Compress::On);
    let (old, new) = (bundle(1, 50_000), bundle(2, 50_000));
    scene.write(OLD, &old);
    scene.write(NEW, &new);
    let path = format!("/{NEW}");
    let first = scene.secure("GET", &path, &[ACCEPTS, &named(&old)]);
    assert_eq!(first.field("Content-Encoding"), Some("zstd"));
    assert_eq!(first.field("Use-As-Dictionary"), Some("match=\"main.*.js\""));
    assert_eq!(first.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
    let sent = settled(&scene, &path, &[ACCEPTS, &named(&old)]);
    assert_eq!(sent.field("Content-Encoding"), Some("dcz"));
    assert!(sent.body.len() * 4 < first.body.len(), "{} {}", sent.body.len(), first.body.len());
    let refused = scene.secure("GET", &path, &["Accept-Encoding: br, identity;q=0"]);
    assert_eq!(refused.status(), 406);
    assert_eq!(refused.field("Vary"), Some("Accept-Encoding, Available-Dictionary"));
}

#[test]
fn hashes_of_nothing_cost_no_work() {
    let scene = scene(|_| {});
    scene.write(NEW, bundle(1, 9_000));
    let path = format!("/{NEW}");
    settled(&scene, &path, &[ACCEPTS, &named(b"0")]);
    let jobs = scene.files.folder.deltas.hold();
    for at in 1..200 {
        let sent = scene.secure("GET", &path, &[ACCEPTS, &named(at.to_string().as_bytes())]);
        assert_eq!(sent.status(), 200);
    }
    // So many would leave no room for another one.
    drop((scene.files.folder.deltas.hold(), jobs));
}

#[test]
fn what_is_known_of_dictionaries_is_bounded() {
    let scene = scene(|_| {});
    for at in 0..600 {
        let name = format!("assets/page{at}.9f2c1b7a.js");
        scene.write(&name, bundle(1, 2_000));
        settled(&scene, &format!("/{name}"), &[ACCEPTS, &named(b"x")]);
    }
    assert_eq!(scene.files.folder.dictionaries.len(), 512);
}

#[test]
fn a_file_that_was_just_written_comes_whole() {
    let mut scene = scene(|_| {});
    let (old, new) = (bundle(1, 3_000), bundle(2, 3_000));
    scene.write(OLD, &old);
    scene.write(NEW, &new);
    let written = fs::metadata(scene.place.path().join("site").join(NEW)).expect("it is there");
    scene.now.unix_secs = written.ctime().unsigned_abs();
    let path = format!("/{NEW}");
    for coding in [None, Some("dcz")] {
        let sent = settled(&scene, &path, &[ACCEPTS, &named(&old)]);
        assert_eq!(sent.field("Content-Encoding"), coding);
        scene.now.unix_secs += 2;
        scene.wait(1_000);
    }
}
