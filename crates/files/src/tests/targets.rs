//! Paths that lead to files by the rules of a folder.

use gustnado_config::TrailingSlash;

use super::*;

fn scene(change: impl FnOnce(&mut RouteSettings)) -> Scene {
    let scene = Scene::with(FileOptions { threads: 0, ..tuned(change) }, WAYS[0]);
    for name in ["index.html", "about.html", "docs/index.html", "docs/guide.html", "plain.txt"] {
        scene.write(name, name);
    }
    scene.write("both", "file");
    scene.write("both.html", "page");
    scene.write("team.html", "team.html");
    scene.write("team/member.html", "team/member.html");
    scene.write("bare/x.txt", "x");
    scene.write(".html", "hidden");
    scene
}

/// What a path is answered with: a status, and the body or the location.
fn answer(scene: &Scene, path: &str) -> (u16, String) {
    let sent = scene.get(path);
    let place = sent.field("Location").map(str::to_owned);
    (sent.status(), place.unwrap_or_else(|| String::from_utf8(sent.body).expect("text")))
}

#[track_caller]
fn assert_answers(scene: &Scene, expected: &[(&str, u16, &str)]) {
    // Twice: the second answer may come from the cache.
    for (path, status, text) in expected.iter().chain(expected) {
        assert_eq!(answer(scene, path), (*status, (*text).to_owned()), "{path}");
    }
}

#[test]
fn the_index_is_the_first_name_that_is_there() {
    let names = ["index.htm", "index.html", "plain.txt"];
    let scene = scene(|settings| settings.index = names.map(str::to_owned).to_vec());
    scene.write("old/index.htm", "old");
    scene.write("old/index.html", "new");
    scene.write("text/plain.txt", "text");
    assert_answers(
        &scene,
        &[
            ("/", 200, "index.html"),
            ("/old/", 200, "old"),
            ("/text/", 200, "text"),
            ("/docs", 301, "/docs/"),
            ("/bare/", 404, ""),
        ],
    );
    let none = self::scene(|settings| settings.index.clear());
    assert_answers(&none, &[("/", 404, ""), ("/index.html", 200, "index.html")]);
}

#[test]
fn pages_have_paths_without_their_ending() {
    let scene = scene(|settings| settings.clean_urls = true);
    assert_answers(
        &scene,
        &[
            ("/about", 200, "about.html"),
            ("/about.html", 301, "/about"),
            ("/about.html?a=1", 301, "/about?a=1"),
            ("/about/", 404, ""),
            ("/docs/guide", 200, "docs/guide.html"),
            ("/docs/guide.html", 301, "/docs/guide"),
            ("/index.html", 301, "/"),
            ("/docs/index.html", 301, "/docs/"),
            ("/docs", 301, "/docs/"),
            ("/docs/", 200, "docs/index.html"),
            // A file of that very name stays what it is, and its page has its own path.
            ("/both", 200, "file"),
            ("/both.html", 200, "page"),
            // A page comes before a folder.
            ("/team", 200, "team.html"),
            ("/team/member", 200, "team/member.html"),
            ("/plain.txt", 200, "plain.txt"),
            ("/plain", 404, ""),
            ("/.html", 404, ""),
            ("/", 200, "index.html"),
        ],
    );
    assert_eq!(scene.get("/about").field("Content-Type"), Some("text/html; charset=utf-8"));
    let tag = scene.get("/about").etag().to_owned();
    assert_eq!(scene.get_with("/about", &[&format!("If-None-Match: {tag}")]).status(), 304);
    scene.write("about", "exact");
    let mut scene = scene;
    scene.wait(2_000);
    assert_eq!(answer(&scene, "/about"), (200, "exact".to_owned()));
}

#[test]
fn a_slash_is_taken_away_or_does_not_matter() {
    let remove = scene(|settings| {
        settings.clean_urls = true;
        settings.trailing_slash = TrailingSlash::Remove;
    });
    assert_answers(
        &remove,
        &[
            ("/", 200, "index.html"),
            ("/docs", 200, "docs/index.html"),
            ("/docs/?a=b", 301, "/docs?a=b"),
            ("/about/", 301, "/about"),
            ("/about", 200, "about.html"),
            ("/plain.txt/", 301, "/plain.txt"),
            ("/docs/index.html", 301, "/docs"),
            ("/index.html", 301, "/"),
            ("/none/", 404, ""),
        ],
    );
    let ignore = scene(|settings| {
        settings.clean_urls = true;
        settings.trailing_slash = TrailingSlash::Ignore;
    });
    assert_answers(
        &ignore,
        &[
            ("/docs", 200, "docs/index.html"),
            ("/docs/", 200, "docs/index.html"),
            ("/about", 200, "about.html"),
            ("/about/", 200, "about.html"),
            ("/plain.txt/", 200, "plain.txt"),
            ("/none/", 404, ""),
        ],
    );
    let listed = scene(|settings| {
        settings.listing = Listing::On;
        settings.trailing_slash = TrailingSlash::Remove;
    });
    assert_answers(&listed, &[("/bare", 301, "/bare/"), ("/docs/", 301, "/docs")]);
    assert_eq!(listed.get("/bare/").status(), 200, "its links begin at the slash");
}

#[test]
fn files_are_tried_in_order() {
    let templates = |texts: &'static [&'static str]| {
        scene(|settings| {
            settings.try_files = texts.iter().map(|text| (*text).to_owned()).collect();
        })
    };
    let app = templates(&["$uri", "$uri/", "/index.html"]);
    assert_answers(
        &app,
        &[
            ("/plain.txt", 200, "plain.txt"),
            ("/docs", 301, "/docs/"),
            ("/docs/", 200, "docs/index.html"),
            ("/bare/", 200, "index.html"),
            ("/any/where?x", 200, "index.html"),
            ("/.secret", 404, ""),
            ("/%00", 404, ""),
        ],
    );
    let caddy = templates(&["{path}", "{path}.html", "{path}/index.html"]);
    assert_answers(
        &caddy,
        &[
            ("/about", 200, "about.html"),
            ("/docs", 200, "docs/index.html"),
            ("/", 200, "index.html"),
            ("/none", 404, ""),
        ],
    );
    let strict = templates(&["$uri", "=404", "/index.html"]);
    assert_answers(&strict, &[("/plain.txt", 200, "plain.txt"), ("/docs/", 404, "")]);
}

#[test]
fn what_any_path_leads_to_fills_no_cache() {
    let scene = scene(|settings| settings.try_files = vec!["$uri".into(), "/index.html".into()]);
    for number in 0..50 {
        assert_eq!(scene.get(&format!("/{number}")).text(), "index.html");
    }
    let cached = worker::with(&scene.files.folder, |worker| worker.cache.len());
    assert_eq!(cached, 0);
}

#[test]
fn types_are_an_operators_own() {
    let scene = scene(|settings| {
        settings.mime = vec!["txt=text/x-own".into(), "html=application/xhtml+xml".into()];
        settings.charset = "iso-8859-1".into();
    });
    let plain = scene.get("/plain.txt");
    assert_eq!(plain.field("Content-Type"), Some("text/x-own; charset=iso-8859-1"));
    let range = scene.get_with("/plain.txt", &["Range: bytes=0-1"]);
    assert_eq!(range.field("Content-Type"), Some("text/x-own; charset=iso-8859-1"));
    assert_eq!(scene.get("/").field("Content-Type"), Some("application/xhtml+xml"));
}

#[test]
fn an_index_is_found_by_its_name_where_a_page_has_its_folders() {
    for slash in [TrailingSlash::Add, TrailingSlash::Remove, TrailingSlash::Ignore] {
        let scene = scene(|settings| {
            settings.clean_urls = true;
            settings.trailing_slash = slash;
        });
        scene.write("team/index.html", "team/index.html");
        let docs = if slash == TrailingSlash::Remove { "/docs" } else { "/docs/" };
        assert_answers(&scene, &[("/index.html", 301, "/"), ("/docs/index.html", 301, docs)]);
        let by_name = answer(&scene, "/team/index.html");
        if slash == TrailingSlash::Add {
            assert_eq!(by_name, (301, "/team/".to_owned()));
            assert_answers(&scene, &[("/team/", 200, "team/index.html")]);
        } else {
            assert_eq!(by_name, (200, "team/index.html".to_owned()), "{slash:?}");
        }
        assert_answers(&scene, &[("/team", 200, "team.html")]);
    }
}

/// Returns which of some new files would be found by a path that leads to another file.
fn shadowing<'n>(scene: &Scene, names: &[&'n str]) -> Vec<&'n str> {
    let folder = &scene.files.folder;
    let locate = |path: &[u8]| folder.root.locate(path).map_err(Failure::Disk);
    let shadows = |name: &&&str| folder.rules.would_shadow(name.as_bytes(), |_| Ok(()), locate);
    names.iter().filter(shadows).copied().collect()
}

#[test]
fn a_new_file_is_told_that_would_be_found_before_another() {
    let usual = scene(|_| {});
    let names = ["about", "docs.html", "bare/index.html", "team", "new.html", "bare/a/b"];
    assert_eq!(shadowing(&usual, &names), [""; 0]);
    for slash in [TrailingSlash::Add, TrailingSlash::Remove, TrailingSlash::Ignore] {
        let clean = scene(|settings| {
            settings.clean_urls = true;
            settings.trailing_slash = slash;
        });
        // (A folder without an index has no file that another one could be found before.)
        let new =
            ["about", "docs.html", "bare.html", "bare/index.html", "new.html", "both.html.html"];
        assert_eq!(shadowing(&clean, &new), ["about", "docs.html"], "{slash:?}");
    }
    let names = ["main.htm", "index.html", "index.htm"];
    let index = scene(|settings| settings.index = names.map(str::to_owned).to_vec());
    let new = ["main.htm", "index.htm", "bare/index.htm", "docs/index.htm", "docs/main.htm"];
    assert_eq!(shadowing(&index, &new), ["main.htm", "docs/main.htm"]);
    let attempts = ["$uri", "/first.txt", "$uri.txt", "$uri/index.html", "/app.html"];
    let tried = scene(|settings| settings.try_files = attempts.map(str::to_owned).to_vec());
    let new =
        ["first.txt", "plain", "app.html", "bare/index.html", "about.txt", "plain/index.html"];
    assert_eq!(shadowing(&tried, &new), ["first.txt", "plain"]);
}
