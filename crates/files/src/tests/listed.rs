//! Folders without an index.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

fn listing() -> FileOptions {
    tuned(|settings| settings.listing = Listing::On)
}

fn links(page: &str) -> Vec<&str> {
    page.split("href=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

#[test]
fn a_folder_without_index_is_listed_where_that_is_wanted() {
    for way in WAYS {
        let scene = Scene::with(listing(), way);
        scene.write("sub/b.txt", "twelve bytes");
        scene.write("sub/A.txt", vec![b'x'; 1536]);
        scene.write("sub/deep/x", "");
        scene.write("sub/.secret", "");
        let answer = scene.get("/sub/");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(links(answer.text()), ["../", "deep/", "A.txt", "b.txt"]);
        assert!(answer.text().contains("<h1>/sub/</h1>"), "{}", answer.text());
        assert!(answer.text().contains("<td>12 B<td>") && answer.text().contains("1.5 KiB"));
        let head = scene.send("HEAD", "/sub/", &[]);
        assert_eq!((head.head, head.body.len()), (answer.head, 0));
        assert_eq!(links(scene.get("/").text()), ["sub/"], "the top has nothing above it");
        assert_eq!(scene.get("/sub").status(), 301);
        scene.write("sub/index.html", "the index");
        assert_eq!(scene.get("/sub/").text(), "the index");
    }
}

#[test]
fn a_folder_that_is_not_listed_says_what_was_looked_for_and_the_flag() {
    let scene = Scene::new();
    scene.write("sub/b.txt", "");
    let answer = scene.get("/sub/");
    assert_eq!(answer.status(), 404);
    let hint = answer.hint.expect("a sentence for the page");
    assert!(hint.contains("no index.html") && hint.contains("--listing"));
    for path in ["/none/", "/sub/none"] {
        assert_eq!(scene.get(path).hint, None, "there is no folder");
    }
}

#[test]
fn every_name_leads_to_its_file() {
    let scene = Scene::with(listing(), WAYS[0]);
    let names: [&[u8]; 9] = [
        b"a b & <i>\"'.txt",
        b"http:x",
        b"100%25",
        b"?q=1#top",
        "caf\u{e9}".as_bytes(),
        b"\xff\xfe",
        b"new\nline",
        b"~-_.",
        b"+;=,@",
    ];
    for name in names {
        let path = scene.place.path().join("site").join(std::ffi::OsStr::from_bytes(name));
        fs::write(path, name).expect("a file");
    }
    let page = scene.get("/");
    let found = links(page.text());
    assert_eq!(found.len(), names.len(), "{found:?}");
    let mut contents: Vec<Vec<u8>> =
        found.iter().map(|link| scene.get(&format!("/{link}")).body).collect();
    let mut expected: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    contents.sort();
    expected.sort();
    assert_eq!(contents, expected);
    assert!(!page.text().contains("<i>") && page.text().contains("&lt;i&gt;&quot;&#39;"));
}

#[test]
fn what_cannot_be_served_is_not_listed() {
    for (hidden, expected) in
        [(false, &["in", "ok"][..]), (true, &[".well-known/", ".x", "in", "ok"])]
    {
        let options = tuned(|settings| {
            settings.hidden = hidden;
            settings.listing = Listing::On;
        });
        let scene = Scene::with(options, WAYS[0]);
        let site = scene.place.path().join("site");
        scene.write("ok", "");
        scene.write(".x", "");
        scene.write(".well-known/y", "");
        scene.write("back\\slash", "");
        symlink("ok", site.join("in")).expect("a symlink");
        symlink("/etc/passwd", site.join("out")).expect("a symlink");
        symlink("nowhere", site.join("broken")).expect("a symlink");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            site.join("fifo"),
            FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("a fifo");
        assert_eq!(links(scene.get("/").text()), expected);
    }
}

#[test]
fn a_list_has_an_end() {
    let scene = Scene::with(listing(), WAYS[0]);
    scene.write("0", "");
    let first = scene.place.path().join("site/0");
    for number in 1..=10_000 {
        // A link costs less than a file.
        fs::hard_link(&first, scene.place.path().join(format!("site/{number}"))).expect("a link");
    }
    let answer = scene.get("/");
    assert_eq!(links(answer.text()).len(), 10_000);
    assert!(answer.text().ends_with("only the first 10,000 names are listed.</p>\n"));
    let length = answer.body.len().to_string();
    assert_eq!(answer.field("Content-Length"), Some(length.as_str()));
}

#[test]
fn a_list_of_a_folder_that_may_not_be_read_is_refused() {
    let scene = Scene::with(listing(), WAYS[0]);
    scene.write("shut/x", "");
    let shut = scene.place.path().join("site/shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o311)).expect("it is ours");
    // Root may read everything.
    let expected = if rustix::process::geteuid().is_root() { 200 } else { 403 };
    assert_eq!(scene.get("/shut/").status(), expected);
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).expect("it is ours");
}
