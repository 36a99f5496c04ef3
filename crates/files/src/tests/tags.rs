//! Tags made of bytes, and those that stand in for them until the bytes were digested.

use std::thread;
use std::time::{Instant, SystemTime};

use gustnado_http::etag::EntityTag;

use super::*;

/// Sizes on both sides of the border between what is read and what is sent from the disk.
const SIZES: [usize; 2] = [1_000, 100_000];

/// 14 November 2023: as whole as build tools set it, and unknown to the server.
const A_DAY: u64 = 1_700_000_000;

impl Scene {
    /// Replaces a file by bytes with a time of their own, as the layer of an image does.
    fn release(&self, at: &str, content: &[u8], unix_secs: u64) {
        self.replace(at, content);
        let path = self.place.path().join("site").join(at);
        let file = fs::File::options().write(true).open(path).expect("a file");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_secs);
        file.set_modified(time).expect("a time can be set");
    }

    /// Waits until the tag of a file is that of its bytes, and returns it.
    fn digested(&mut self, path: &str, bytes: &[u8]) -> String {
        let expected = EntityTag::of_digest(&digest::digest_of(bytes));
        let expected = String::from_utf8_lossy(expected.as_bytes()).into_owned();
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.get(path).field("ETag") != Some(&*expected) {
            assert!(Instant::now() < deadline, "no digest within ten seconds");
            thread::sleep(Duration::from_millis(5));
            self.wait(1_000);
        }
        expected
    }
}

#[test]
fn the_same_bytes_have_the_same_tag_on_every_server_and_after_every_deployment() {
    for size in SIZES {
        let tags = [A_DAY, A_DAY + 86_400, 1].map(|time| {
            let mut scene = Scene::new();
            scene.release("page", &vec![b'x'; size], time);
            if size < 8_192 {
                return scene.get("/page").etag().to_owned();
            }
            scene.digested("/page", &vec![b'x'; size])
        });
        assert!(tags[0] == tags[1] && tags[1] == tags[2], "{size}: {tags:?}");
    }
}

#[test]
fn other_bytes_of_the_same_size_and_time_are_never_taken_for_the_same() {
    for time in [0, 1, 315_532_800, A_DAY] {
        for size in SIZES {
            let mut scene = Scene::new();
            scene.release("page", &vec![b'1'; size], time);
            let first = scene.get("/page").field("ETag").map(str::to_owned);
            let known = [first, Some(scene.digested("/page", &vec![b'1'; size]))];
            scene.release("page", &vec![b'2'; size], time);
            // At once, and when the new bytes were digested as well.
            for _ in 0..2 {
                scene.wait(1_000);
                for tag in known.iter().flatten() {
                    let sent = scene.get_with("/page", &[&format!("If-None-Match: {tag}")]);
                    assert_eq!(sent.status(), 200, "{time} {size} {tag}");
                    assert!(sent.body == vec![b'2'; size]);
                }
                scene.digested("/page", &vec![b'2'; size]);
            }
        }
    }
}

#[test]
fn the_tag_of_before_the_digest_stays_valid_and_is_sent_to_those_who_name_it() {
    let mut scene = Scene::new();
    let bytes: Vec<u8> = (0..=250).cycle().take(100_000).collect();
    scene.release("film.bin", &bytes, A_DAY);
    let first = scene.get("/film.bin");
    let old = first.etag().to_owned();
    let new = scene.digested("/film.bin", &bytes);
    for (named, sent_tag) in [(&old, &old), (&new, &new), (&format!("{old}, {new}"), &new)] {
        let sent = scene.get_with("/film.bin", &[&format!("If-None-Match: {named}")]);
        assert_eq!((sent.status(), sent.etag()), (304, sent_tag.as_str()), "{named}");
    }
    for ranges in ["bytes=10-19", "bytes=10-19,30-39"] {
        for tag in [&old, &new] {
            let fields = [&*format!("Range: {ranges}"), &*format!("If-Range: {tag}")];
            let sent = scene.get_with("/film.bin", &fields);
            assert_eq!((sent.status(), sent.etag()), (206, tag.as_str()), "{ranges} {tag}");
        }
        let fields = [&*format!("Range: {ranges}"), "If-Range: \"x\""];
        assert_eq!(scene.get_with("/film.bin", &fields).status(), 200, "{ranges}");
        let sent = scene.get_with("/film.bin", &[&format!("Range: {ranges}")]);
        assert_eq!((sent.status(), sent.etag()), (206, new.as_str()), "{ranges}");
    }
    assert_eq!(scene.get_with("/film.bin", &[&format!("If-Match: {old}")]).status(), 200);
}

#[test]
fn pinned_times_are_no_validators() {
    let date = "Sun, 06 Nov 2094 08:49:37 GMT";
    for time in [0, 1, 315_532_800, 315_619_199] {
        for size in SIZES {
            let mut scene = Scene::new();
            scene.release("page", &vec![b'x'; size], time);
            let first = scene.get("/page");
            assert_eq!(first.field("Last-Modified"), None, "{time}");
            assert_eq!(first.field("ETag").is_some(), size < 8_192, "{time} {size}");
            for (field, status) in [
                (format!("If-Modified-Since: {date}"), 200),
                ("If-Unmodified-Since: Sun, 06 Nov 1960 08:49:37 GMT".to_owned(), 200),
                ("If-None-Match: \"x\"".to_owned(), 200),
                ("If-None-Match: *".to_owned(), 304),
                ("If-Match: \"x\"".to_owned(), 412),
            ] {
                assert_eq!(scene.get_with("/page", &[&field]).status(), status, "{time} {field}");
            }
            let range = scene.get_with("/page", &["Range: bytes=0-1"]);
            assert_eq!((range.status(), range.field("Last-Modified")), (206, None));
            let ranged =
                scene.get_with("/page", &["Range: bytes=0-1", &format!("If-Range: {date}")]);
            assert_eq!(ranged.status(), 200);
            scene.digested("/page", &vec![b'x'; size]);
        }
    }
    for time in [2, 315_532_799, 315_619_200, A_DAY] {
        let scene = Scene::new();
        scene.release("page", b"x", time);
        assert!(scene.get("/page").field("Last-Modified").is_some(), "{time}");
    }
}

#[test]
fn what_is_too_large_to_be_digested_keeps_the_tag_of_its_attributes() {
    for time in [1, A_DAY] {
        let mut scene = Scene::hashing(50_000);
        scene.release("large", &vec![b'1'; 50_001], time);
        scene.release("exact", &vec![b'1'; 50_000], A_DAY);
        let large = scene.get("/large");
        scene.digested("/exact", &vec![b'1'; 50_000]);
        assert_eq!(scene.get("/large").etag(), large.etag());
        // The tag holds the inode and the change time.
        scene.release("large", &vec![b'2'; 50_001], time);
        scene.wait(1_000);
        assert_ne!(scene.get("/large").etag(), large.etag());
    }
}

#[test]
fn without_digests_all_tags_are_made_of_attributes() {
    let mut scene = Scene::hashing(0);
    for size in SIZES {
        let paths = ["one", "two"].map(|name| format!("/{name}-{size}"));
        let tags = paths.each_ref().map(|path| {
            scene.release(&path[1..], &vec![b'x'; size], A_DAY);
            scene.get(path).etag().to_owned()
        });
        assert_ne!(tags[0], tags[1]);
        for _ in 0..3 {
            scene.wait(1_000);
            assert_eq!(scene.get(&paths[0]).etag(), tags[0]);
        }
    }
}

#[test]
fn bytes_that_were_just_written_have_a_tag_for_this_moment_only() {
    let mut scene = Scene::new();
    scene.write("page", vec![b'1'; 100_000]);
    scene.now.unix_secs =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let first = scene.get("/page");
    scene.now.unix_secs = LATER;
    let tag = format!("If-None-Match: {}", first.etag());
    scene.wait(1_000);
    assert_eq!(scene.get_with("/page", &[&tag]).status(), 200);
    scene.digested("/page", &vec![b'1'; 100_000]);
    assert_eq!(scene.get_with("/page", &[&tag]).status(), 200);
}
