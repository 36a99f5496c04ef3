//! Folders without an index.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

/// (Without threads, each piece of a listing is there when it is polled.)
fn listing() -> FileOptions {
    FileOptions { threads: 0, ..tuned(|settings| settings.listing = Listing::On) }
}

fn links(page: &str) -> Vec<&str> {
    let rows = page.split_once("<tbody>").map_or("", |(_, rows)| rows);
    rows.split("href=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

/// The names in a listing in JSON, in its order.
fn names(json: &str) -> Vec<&str> {
    let lines = json.lines().filter_map(|line| line.strip_prefix("{\"name\":\""));
    lines.filter_map(|line| Some(line.split_once('"')?.0)).collect()
}

/// Sets when a file was changed, in seconds since 1970.
fn date(scene: &Scene, at: &str, unix_secs: u64) {
    let file = fs::File::options().append(true).open(scene.place.path().join("site").join(at));
    let time = std::time::UNIX_EPOCH + Duration::from_secs(unix_secs);
    file.expect("it is there").set_modified(time).expect("it is ours");
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
        let crumbs = "<h1><a href=\"../\">/</a>sub/</h1>";
        assert!(answer.text().contains(crumbs), "{}", answer.text());
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
        let mut options = listing();
        options.settings.hidden = hidden;
        let scene = Scene::with(options, WAYS[0]);
        let site = scene.place.path().join("site");
        scene.write("ok", "");
        scene.write(".x", "");
        scene.write(".gustnado-upload-0123456789abcdef", "half of");
        assert_eq!(scene.get("/.gustnado-upload-0123456789abcdef").status(), 404);
        scene.write(".well-known/y", "");
        scene.write("back\\slash", "");
        symlink("ok", site.join("in")).expect("a symlink");
        symlink("/etc/passwd", site.join("out")).expect("a symlink");
        symlink("nowhere", site.join("broken")).expect("a symlink");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            site.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("a fifo");
        assert_eq!(links(scene.get("/").text()), expected);
    }
}

#[test]
fn what_is_forbidden_is_not_listed() {
    let mut options = listing();
    let forbidden = ["*.php", "/secret*", "/b/", "/exact"];
    options.settings.forbidden = forbidden.map(str::to_owned).to_vec();
    let scene = Scene::with(options, WAYS[0]);
    for name in ["a.php", "A.PHP", "ok", "secret/x", "b/x", "sub/secret", "sub/x.php", "sub/y"] {
        scene.write(name, "");
    }
    scene.write("exact/x", "");
    assert_eq!(scene.get("/exact/").status(), 404);
    for (path, expected) in [("/", &["sub/", "ok"][..]), ("/sub/", &["../", "secret", "y"])] {
        assert_eq!(links(scene.get(path).text()), expected, "{path}");
        for link in expected.iter().filter(|link| **link != "../") {
            assert_eq!(scene.get(&format!("{path}{link}")).status(), 200, "{link}");
        }
    }
    let json = scene.get("/?format=json");
    assert_eq!(names(json.text()), ["sub", "ok"]);
    assert!(json.text().contains("\"total\":2"), "{}", json.text());
}

#[test]
fn a_readme_is_shown_below_the_entries() {
    let mut options = listing();
    options.settings.listing_readme = true;
    let scene = Scene::with(options, WAYS[0]);
    scene.write("md/README.md", "# About\n\nA <script>alert(1)</script> [a](b.md)\n");
    scene.write("text/README", "# About & *more*\n");
    scene.write("long/readme.markdown", "# About\n".repeat(10_000));
    scene.write("none/x", "");
    let article = |path: &str| {
        let page = scene.get(path);
        page.text().split_once("<article>").map(|(_, rest)| rest.to_owned())
    };
    let rendered = article("/md/").expect("a README");
    assert!(rendered.starts_with("<h1>About</h1>"), "{rendered}");
    assert!(rendered.contains("&lt;script&gt;") && rendered.contains("<a href=\"b.md\">a</a>"));
    let plain = article("/text/").expect("a README");
    assert_eq!(plain, "<pre># About &amp; *more*</pre></article>\n");
    // Too long to be read as Markdown.
    assert!(article("/long/").is_some_and(|text| text.starts_with("<pre># About\n# About")));
    assert_eq!(article("/none/"), None);
}

#[test]
fn entries_are_sorted_as_the_query_says() {
    let scene = Scene::with(listing(), WAYS[0]);
    for (name, bytes, changed) in [("a", 30, 2_000), ("B", 10, 3_000), ("c", 20, 1_000)] {
        scene.write(name, vec![b'x'; bytes]);
        date(&scene, name, changed);
    }
    scene.write("sub/x", "");
    for (query, expected) in [
        ("", ["sub/", "a", "B", "c"]),
        ("?sort=name&order=desc", ["sub/", "c", "B", "a"]),
        ("?sort=size", ["sub/", "B", "c", "a"]),
        ("?sort=size&order=desc", ["sub/", "a", "c", "B"]),
        ("?sort=date", ["sub/", "c", "a", "B"]),
        ("?order=desc&sort=date", ["sub/", "B", "a", "c"]),
        ("?sort=colour", ["sub/", "a", "B", "c"]),
    ] {
        let answer = scene.get(&format!("/{query}"));
        assert_eq!(links(answer.text()), expected, "{query}");
    }
    let page = scene.get("/?sort=size&order=desc");
    assert!(page.text().contains("<th aria-sort=descending><a href=\"?sort=size&amp;order=asc\">"));
    assert!(page.text().contains("<th><a href=\"?sort=date&amp;order=desc\">"));
    assert!(page.text().contains("1970-01-01 00:33"), "{}", page.text());
}

#[test]
fn a_listing_is_json_for_those_who_ask_for_it() {
    let scene = Scene::with(listing(), WAYS[0]);
    scene.write("a b/x", "");
    scene.write("q\"\u{e9}", "12345");
    date(&scene, "q\"\u{e9}", 784_111_777);
    let file = "{\"name\":\"q\\\"\u{e9}\",\"href\":\"q%22%C3%A9\",\"type\":\"file\",\"size\":5,\
                \"modified\":\"1994-11-06T08:49:37Z\"}";
    let by_field = scene.get_with("/", &["Accept: application/json"]);
    let by_query = scene.get("/?format=json");
    for answer in [&by_field, &by_query] {
        assert_eq!(answer.field("Content-Type"), Some("application/json"));
        assert_eq!(answer.field("Vary"), Some("Accept"));
        let text = answer.text();
        let head = "{\"path\":\"/\",\"page\":1,\"pages\":1,\"total\":2,\"sort\":\"name\",";
        assert!(text.starts_with(head) && text.ends_with("\n]}\n"), "{text}");
        assert!(
            text.contains("{\"name\":\"a b\",\"href\":\"a%20b/\",\"type\":\"directory\",\"mod")
        );
        assert!(text.contains(file), "{text}");
        assert_eq!(text.matches(",\n{").count(), 1);
    }
    scene.write("none/.x", "");
    let none = scene.get("/none/?format=json");
    assert!(none.text().ends_with("\"entries\":[\n]}\n"), "{}", none.text());
    assert!(scene.get("/none/").text().contains("This folder is empty."));
}

#[test]
fn many_names_come_in_pages_and_each_page_in_steps() {
    let scene = Scene::with(listing(), WAYS[0]);
    scene.write("0", "");
    let first = scene.place.path().join("site/0");
    for number in 1..10_002 {
        // A link costs less than a file.
        fs::hard_link(&first, scene.place.path().join(format!("site/{number}"))).expect("a link");
    }
    let (page, next) = (scene.get("/?sort=size"), scene.get("/?page=2&order=desc"));
    assert_eq!((links(page.text()).len(), page.pieces), (10_001, 20), "with a link to the next");
    assert!(page.text().contains("Names 1 to 10000 of 10002"));
    assert!(page.text().contains("<a href=\"?sort=name&amp;order=asc&amp;page=2\">Next page</a>"));
    assert!(page.text().contains("<th>Size<th>Changed"), "as many are not sorted by that");
    assert_eq!(links(next.text()), ["1", "0", "?sort=name&amp;order=desc&amp;page=1"]);
    let beyond = scene.get("/?page=7&format=json");
    assert_eq!(names(beyond.text()), ["9998", "9999"]);
    assert!(beyond.text().contains("\"page\":2,\"pages\":2,\"total\":10002"));
    assert_eq!(page.field("Content-Length"), None);
}

#[test]
fn what_vanishes_while_a_listing_is_sent_is_left_out() {
    let scene = Scene::with(listing(), WAYS[0]);
    for number in 0..1_200 {
        scene.write(&format!("{number:04}"), "");
    }
    for target in ["/", "/?format=json"] {
        let mut pieces = scene.pieces(target);
        let mut text: Vec<u8> = pieces.next().expect("the first step");
        for number in [0, 600, 601, 1_199] {
            fs::remove_file(scene.place.path().join(format!("site/{number:04}"))).expect("there");
        }
        fs::create_dir(scene.place.path().join("site/0601")).expect("a folder in its place");
        text.extend(pieces.by_ref().flatten());
        let text = String::from_utf8(text).expect("text");
        let found = if target == "/" { links(&text) } else { names(&text) };
        assert_eq!(found.len(), 1_198, "{target}: the first step was made before");
        let is_folder = |name: &&str| name.starts_with("0601");
        assert_eq!(found.into_iter().filter(is_folder).count(), 1);
        fs::remove_dir(scene.place.path().join("site/0601")).expect("there");
        for number in [0, 600, 601, 1_199] {
            scene.write(&format!("{number:04}"), "");
        }
    }
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

/// How many descriptors of this process are open folders below a scene.
fn open_folders(scene: &Scene) -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("the kernel lists descriptors");
    let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.starts_with(scene.place.path())).count()
}

#[test]
fn a_listing_that_waits_for_its_client_holds_one_descriptor_and_the_others_none() {
    let mut options = listing();
    options.settings.listing_readme = true;
    let scene = Scene::with(options, WAYS[0]);
    for number in 0..500 {
        scene.write(&format!("small/{number}"), "");
        scene.write(&format!("large/{number}"), "");
    }
    scene.write("large/500", "");
    scene.write("told/README", "text");
    let before = open_folders(&scene);
    let (begun, small) =
        (scene.respond("GET", "/large/", &[]), scene.respond("GET", "/small/", &[]));
    assert_eq!(open_folders(&scene), before + 1);
    let told = scene.respond("GET", "/told/", &[]);
    assert_eq!(open_folders(&scene), before + 2);
    let counts = &scene.files.folder.in_all;
    let open = &counts.listings_open;
    assert_eq!(open.load(Ordering::Relaxed), 2);
    drop((begun, small, told));
    assert_eq!((open_folders(&scene), open.load(Ordering::Relaxed)), (before, 0));
    let mut pieces = scene.pieces("/large/");
    assert!(pieces.next().is_some() && pieces.next().is_some());
    assert_eq!((open_folders(&scene), open.load(Ordering::Relaxed)), (before, 0), "it is made");
}

#[test]
fn more_listings_than_may_wait_are_refused_before_their_heads() {
    let scene = Scene::with(listing(), WAYS[0]);
    for number in 0..=500 {
        scene.write(&format!("large/{number}"), "");
    }
    scene.write("small/0", "");
    let begin = |_| scene.respond("GET", "/large/", &[]);
    let all: Vec<FileResponse> = (0..256).map(begin).collect();
    assert!(all.iter().all(|response| response.status == Status::OK));
    let refused = scene.get("/large/");
    assert_eq!((refused.status(), refused.field("Retry-After")), (503, Some("1")));
    assert_eq!(scene.files.folder.in_all.exhausted.load(Ordering::Relaxed), 1);
    assert_eq!(scene.get("/small/").status(), 200, "it is made at once");
    drop(all);
    assert_eq!(scene.get("/large/").status(), 200);
}
