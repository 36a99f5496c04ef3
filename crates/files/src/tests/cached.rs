//! The cache's content and its age, and that no response mixes two files.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

fn cached(scene: &Scene, path: &str) -> bool {
    worker::with(&scene.files.folder, |worker| worker.cache.any_age(path.as_bytes()).is_some())
}

fn held_count(scene: &Scene, prefix: &str, count: usize) -> usize {
    (0..count).filter(|at| cached(scene, &format!("/{prefix}{at}"))).count()
}

#[test]
fn a_change_is_seen_after_a_second_and_not_looked_for_before() {
    for bytes in [10, 10_000] {
        let mut scene = Scene::new();
        scene.write("page", vec![b'1'; bytes]);
        let first = scene.get("/page");
        scene.replace("page", vec![b'2'; bytes]);
        scene.wait(999);
        assert!(scene.get("/page").body == first.body);
        scene.wait(1);
        let second = scene.get("/page");
        assert!(second.body == vec![b'2'; bytes]);
        assert_ne!(first.etag(), second.etag());
    }
}

#[test]
fn an_upload_has_every_file_looked_at_once_more() {
    for bytes in [10, 10_000] {
        let mut scene = Scene::new();
        scene.write("page", vec![b'1'; bytes]);
        scene.get("/page");
        for content in [b'2', b'3'] {
            scene.replace("page", vec![content; bytes]);
            scene.files.folder.note_written();
            assert!(scene.get("/page").body == vec![content; bytes]);
            scene.wait(100);
        }
        scene.replace("page", vec![b'4'; bytes]);
        scene.wait(899);
        assert!(scene.get("/page").body == vec![b'3'; bytes], "fresh for a second again");
        scene.wait(1);
        assert!(scene.get("/page").body == vec![b'4'; bytes]);
    }
}

#[test]
fn an_unchanged_file_keeps_its_tag_and_its_entry() {
    let mut scene = Scene::new();
    scene.write("page", "page");
    let first = scene.get("/page");
    for _ in 0..3 {
        scene.wait(1_000);
        assert_eq!(scene.get("/page").head, first.head);
    }
}

#[test]
fn a_file_that_is_gone_is_forgotten() {
    let mut scene = Scene::new();
    scene.write("page", "page");
    assert_eq!(scene.get("/page").status(), 200);
    fs::remove_file(scene.place.path().join("site/page")).expect("the file goes");
    scene.wait(1_000);
    assert_eq!(scene.get("/page").status(), 404);
    assert!(!cached(&scene, "/page"));
    scene.write("page", "back");
    assert_eq!(scene.get("/page").text(), "back", "a 404 is not remembered");
}

#[test]
fn the_same_size_and_time_do_not_hide_a_change() {
    let mut scene = Scene::new();
    scene.write("page", "one");
    let path = scene.place.path().join("site/page");
    let time = fs::metadata(&path).expect("metadata").modified().expect("a time");
    let first = scene.get("/page");
    fs::write(&path, "two").expect("a file");
    let file = fs::File::options().write(true).open(&path).expect("a file");
    file.set_modified(time).expect("a time can be set");
    scene.wait(1_000);
    let second = scene.get("/page");
    assert_eq!(second.text(), "two");
    assert_ne!(first.etag(), second.etag());
    assert_eq!(first.field("Last-Modified"), second.field("Last-Modified"));
}

#[test]
fn a_file_written_in_this_very_second_is_read_again() {
    let mut scene = Scene::new();
    scene.write("page", "page");
    let changed = fs::metadata(scene.place.path().join("site/page")).expect("metadata").ctime();
    scene.now.unix_secs = u64::try_from(changed).expect("after 1970");
    scene.get("/page");
    let stat = rustix::fs::stat(scene.place.path().join("site/page")).expect("metadata");
    let is_unchanged = |scene: &Scene| {
        worker::with(&scene.files.folder, |worker| {
            worker.cache.any_age(b"/page").expect("held").seen.is_unchanged(&stat)
        })
    };
    assert!(!is_unchanged(&scene));
    scene.now.unix_secs += 2;
    scene.wait(1_000);
    scene.get("/page");
    assert!(is_unchanged(&scene));
}

#[test]
fn last_modified_never_lies_in_the_future() {
    let mut scene = Scene::new();
    scene.write("page", "page");
    scene.now.unix_secs = 784_111_777;
    let sent = scene.get("/page");
    assert_eq!(sent.field("Last-Modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
}

#[test]
fn all_spellings_share_one_entry() {
    let spellings = ["/p%61ge", "//page", "/./page", "/%70age", "/.//%2e/page?query", "/page"];
    for bytes in [10, 10_000] {
        let mut scene = Scene::new();
        scene.write("page", vec![b'1'; bytes]);
        for path in ["/none", "/../page", "/%2fpage"] {
            scene.get(path);
        }
        assert_eq!(entries(&scene), 0);
        let first = scene.get(spellings[0]);
        // No spelling sees the change within the second, so one entry serves them all.
        scene.replace("page", vec![b'2'; bytes]);
        for path in spellings {
            assert!(scene.get(path).body == first.body, "{path}");
            assert_eq!(entries(&scene), 1, "{path}");
        }
        assert!(cached(&scene, "/page"));
        scene.wait(1_000);
        for path in spellings {
            assert!(scene.get(path).body == vec![b'2'; bytes], "{path}");
            assert_eq!(entries(&scene), 1, "{path}");
        }
    }
}

fn entries(scene: &Scene) -> usize {
    worker::with(&scene.files.folder, |worker| worker.cache.len())
}

#[test]
fn small_files_are_bounded_by_their_bytes() {
    let scene = Scene::with(FileOptions { cache_bytes: 64 * 1024, ..options() }, WAYS[0]);
    scene.write("hot", vec![b'h'; 1_000]);
    scene.get("/hot");
    for at in 0..200 {
        scene.write(&format!("f{at}"), vec![b'x'; 1_000]);
        assert_eq!(scene.get(&format!("/f{at}")).body.len(), 1_000);
        assert_eq!(scene.get("/hot").body.len(), 1_000);
    }
    let count = held_count(&scene, "f", 200);
    assert!((20..64).contains(&count), "{count}");
    assert!(cached(&scene, "/hot"), "what is used is spared");
}

#[test]
fn large_files_are_bounded_by_their_descriptors() {
    let mut scene = Scene::new();
    let folder = Arc::get_mut(&mut scene.files.folder).expect("not shared yet");
    folder.descriptors_max = 8;
    for at in 0..40 {
        scene.write(&format!("f{at}"), vec![b'x'; 10_000]);
        assert_eq!(scene.get(&format!("/f{at}")).body.len(), 10_000);
    }
    assert_eq!(held_count(&scene, "f", 40), 8);
}

#[test]
fn without_a_cache_all_is_answered_the_same() {
    let mut scene = Scene::with(FileOptions { cache_bytes: 0, ..options() }, WAYS[0]);
    Arc::get_mut(&mut scene.files.folder).expect("not shared yet").descriptors_max = 0;
    scene.write("small", "small");
    scene.write("large", vec![b'x'; 10_000]);
    for _ in 0..2 {
        assert_eq!(scene.get("/small").text(), "small");
        assert_eq!(scene.get("/large").body.len(), 10_000);
    }
    assert!(!cached(&scene, "/small") && !cached(&scene, "/large"));
}

#[test]
fn a_file_that_grows_or_shrinks_changes_over() {
    let mut scene = Scene::new();
    for bytes in [10, 9_000, 20, 0, 30_000] {
        scene.write("page", vec![b'x'; bytes]);
        scene.wait(1_000);
        assert_eq!(scene.get("/page").body.len(), bytes);
    }
}

#[test]
fn two_folders_in_one_thread_do_not_mix() {
    let scenes = [Scene::new(), Scene::new(), Scene::new()];
    for (at, scene) in scenes.iter().enumerate() {
        scene.write("page", at.to_string());
    }
    for _ in 0..2 {
        for (at, scene) in scenes.iter().enumerate() {
            assert_eq!(scene.get("/page").text(), at.to_string());
        }
    }
}

#[test]
fn an_answer_under_way_keeps_the_file_it_began_with() {
    let mut scene = Scene::new();
    scene.write("large", vec![b'1'; 10_000]);
    let input = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = Head::decode(input, &mut 0, &Limits::default());
    let Ok(Decoded::Done(head)) = outcome else { panic!("{outcome:?}") };
    let response = match scene.files.respond(None, &head.on(input), || false, scene.now) {
        FolderResponse::Ready(response) => *response,
        FolderResponse::Wait(lookup) => lookup.wait_here(scene.now),
    };
    scene.replace("large", vec![b'2'; 20_000]);
    scene.wait(1_000);
    assert!(scene.get("/large").body == vec![b'2'; 20_000]);
    assert!(Sent::new(response, false).body == vec![b'1'; 10_000]);
}

#[test]
fn a_file_replaced_all_the_time_is_always_whole() {
    let scene = Scene::with(FileOptions { cache_bytes: 0, ..options() }, WAYS[0]);
    let content = |digit: u8| vec![digit; 1_000 + usize::from(digit) * 200];
    scene.write("page", content(b'0'));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..600_u16 {
                let digit = b'0' + u8::try_from(at % 10).expect("a digit");
                scene.replace("page", content(digit));
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let sent = scene.get("/page");
            assert_eq!(sent.status(), 200);
            assert!(sent.body == content(sent.body[0]), "a mixture");
        }
    });
}

#[test]
fn a_small_file_rewritten_in_place_is_whole_or_refused_for_now() {
    let scene = Scene::with(FileOptions { cache_bytes: 0, ..options() }, WAYS[0]);
    scene.write("page", vec![b'0'; 5_000]);
    let path = scene.place.path().join("site/page");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..400_usize {
                fs::write(&path, vec![b'x'; 1_000 + at]).expect("a file");
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let sent = scene.get("/page");
            let length = sent.body.len().to_string();
            assert_eq!(sent.field("Content-Length"), Some(length.as_str()));
            assert!(matches!(sent.status(), 200 | 503));
            assert_eq!(sent.field("Retry-After").is_some(), sent.status() == 503);
        }
    });
}
