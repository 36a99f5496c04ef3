//! Paths that lead to files by the settings of a server, a site and a route.

use gustnado::config::{RouteSettings, TrailingSlash};
use gustnado::{Request, Routes, Status, route};

use crate::harness::client::request;
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    pages_are_found_without_their_ending,
    a_site_and_a_route_have_paths_of_their_own,
    a_fallback_is_served_for_every_path,
    no_folder_is_a_way_around_the_route_that_guards_its_index,
    no_path_leads_to_a_page_that_another_route_guards,
    a_named_part_at_the_end_guards_no_index,
    what_is_guarded_makes_room_for_the_next_place,
    the_page_of_an_application_may_be_guarded,
    a_redirect_from_its_name_does_not_guard_an_index,
);

fn site() -> Folder {
    let folder = Folder::new();
    folder.file("index.html", "front page");
    folder.file("about.html", "about");
    folder.file("docs/index.html", "docs");
    folder.file("data.own", "own");
    folder.file("team.html", "team");
    folder.file("team/index.html", "members");
    folder
}

fn pages_are_found_without_their_ending(setup: Setup) {
    let folder = site();
    let mut config = setup.folder_config(&folder);
    config.routes.clean_urls = true;
    config.routes.trailing_slash = TrailingSlash::Remove;
    config.routes.mime = vec!["own=text/x-own".to_owned()];
    let server = Server::start(config);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/about").text(), "about");
        assert_eq!(client.get("/docs").text(), "docs");
        assert_eq!(client.get("/team").text(), "team");
        assert_eq!(client.get("/team/index.html").text(), "members", "no other path has it");
        for (from, to) in
            [("/about.html?a=b", "/about?a=b"), ("/docs/", "/docs"), ("/index.html", "/")]
        {
            let answer = client.get(from);
            assert_eq!((answer.status, answer.field("location")), (301, Some(to)), "{from}");
        }
        let own = client.get("/data.own");
        assert_eq!(own.field("content-type"), Some("text/x-own; charset=utf-8"));
    }
}

fn a_site_and_a_route_have_paths_of_their_own(setup: Setup) {
    let folder = site();
    let plain = route().files(folder.root()).tune(|settings| settings.clean_urls = false);
    let routes = Routes::new()
        .files("/clean", folder.root())
        .route("/plain", plain)
        .tune(|settings| settings.clean_urls = true);
    let server = Server::routes(setup.config(), routes);
    assert_eq!(server.get("/clean/about").text(), "about");
    let moved = server.get("/clean/docs/index.html");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/clean/docs/")));
    assert_eq!(server.get("/plain/about").status, 404);
    assert_eq!(server.get("/plain/about.html").text(), "about");
}

fn a_fallback_is_served_for_every_path(setup: Setup) {
    let folder = site();
    let mut config = setup.folder_config(&folder);
    config.routes.try_files = ["$uri", "$uri/", "/index.html"].map(str::to_owned).to_vec();
    let server = Server::start(config);
    let mut client = server.connect();
    for path in ["/", "/any/where", "/any/where?x=1", "/index.html"] {
        assert_eq!(client.get(path).text(), "front page", "{path}");
    }
    assert_eq!(client.get("/docs/").text(), "docs");
    assert_eq!(client.get("/docs").status, 301);
    assert_eq!(client.get("/..%2f..%2fetc/passwd").status, 404);
}

/// A folder of which other routes guard parts.
fn guarded(setup: Setup, folder: &Folder, change: impl FnOnce(&mut RouteSettings)) -> Server {
    for name in ["private/index.html", "guard.html", "ann/card.html"] {
        folder.file(name, "secret");
    }
    let refuse = |_: &Request| (Status::FORBIDDEN, "not for you");
    let routes = Routes::new()
        .root(folder.root())
        .any("/private/{*rest}", refuse)
        .any("/guard.html", refuse)
        .any("/{user}/card.html", refuse)
        .files("/mounted", folder.root())
        .any("/mounted/guard.html", refuse);
    let mut config = setup.config();
    change(&mut config.routes);
    Server::routes(config, routes)
}

/// Asks twice, as the second response may come from a cache.
fn assert_statuses(server: &Server, expected: &[(&str, u16)]) {
    let mut client = server.connect();
    for (path, status) in expected.iter().chain(expected) {
        let answer = client.get(path);
        assert_eq!(answer.status, *status, "{path}: {}", answer.text());
        assert!(*status == 200 || answer.text() != "secret", "{path}");
    }
}

fn no_folder_is_a_way_around_the_route_that_guards_its_index(setup: Setup) {
    let folder = site();
    let tries = ["$uri", "$uri/index.html", "=404"].map(str::to_owned).to_vec();
    let ways: [&dyn Fn(&mut RouteSettings); 3] = [
        &|settings| settings.trailing_slash = TrailingSlash::Remove,
        &|settings| settings.trailing_slash = TrailingSlash::Ignore,
        &|settings| settings.try_files.clone_from(&tries),
    ];
    for way in ways {
        let server = guarded(setup, &folder, way);
        let hidden = ["/private", "//private", "/%70rivate", "/./private"].map(|path| (path, 404));
        assert_statuses(&server, &hidden);
        assert_statuses(&server, &[("/private/", 403), ("/private/index.html", 403)]);
        // Nothing guards the same file there.
        assert_statuses(&server, &[("/", 200), ("/docs", 200), ("/mounted/private", 200)]);
    }
}

fn no_path_leads_to_a_page_that_another_route_guards(setup: Setup) {
    let folder = site();
    let tries = ["$uri", "$uri.html", "$uri/"].map(str::to_owned).to_vec();
    let ways: [&dyn Fn(&mut RouteSettings); 2] =
        [&|settings| settings.clean_urls = true, &|settings| settings.try_files.clone_from(&tries)];
    for way in ways {
        let server = guarded(setup, &folder, way);
        assert_statuses(&server, &[("/guard", 404), ("/ann/card", 404), ("/mounted/guard", 404)]);
        assert_statuses(&server, &[("/guard.html", 403), ("/ann/card.html", 403)]);
        assert_statuses(&server, &[("/about", 200), ("/mounted/ann/card", 200)]);
    }
    let slash = |settings: &mut RouteSettings| settings.trailing_slash = TrailingSlash::Ignore;
    let server = guarded(setup, &folder, slash);
    assert_statuses(&server, &[("/guard.html/", 404), ("/guard.html", 403), ("/about.html/", 200)]);
}

fn a_named_part_at_the_end_guards_no_index(setup: Setup) {
    let folder = site();
    folder.file("private/index.html", "secret");
    let page = |_: &Request| "a page";
    let routes = Routes::new()
        .root(folder.root())
        .get("/{page}", page)
        .get("/docs/{page}", page)
        .get("/private/{*rest}", |_: &Request| (Status::FORBIDDEN, "not for you"));
    let mut config = setup.config();
    config.routes.trailing_slash = TrailingSlash::Ignore;
    let server = Server::routes(config, routes);
    assert_eq!(server.get("/").text(), "front page");
    assert_eq!(server.get("/index.html").text(), "a page");
    assert_eq!(server.get("/about.html").text(), "a page");
    assert_statuses(&server, &[("/docs/", 200), ("/private/", 403)]);
}

fn what_is_guarded_makes_room_for_the_next_place(setup: Setup) {
    let folder = site();
    let tries = ["$uri", "$uri.html", "$uri/index.html", "/about.html"].map(str::to_owned).to_vec();
    let server = guarded(setup, &folder, |settings| settings.try_files = tries);
    for path in ["/guard", "/private", "/any/where"] {
        assert_eq!(server.get(path).text(), "about", "{path}");
    }
    let tries = ["$uri", "/guard.html"].map(str::to_owned).to_vec();
    let server = guarded(setup, &folder, |settings| settings.try_files = tries);
    assert_statuses(&server, &[("/any/where", 404), ("/about.html", 200)]);
}

fn the_page_of_an_application_may_be_guarded(setup: Setup) {
    let folder = site();
    for (page, status) in [("guard.html", 404), ("about.html", 200)] {
        let server = guarded(setup, &folder, |settings| settings.spa = page.into());
        let mut client = server.connect();
        for _ in 0..2 {
            let answer = client.ask(request("GET", "/users/7", "Accept: text/html\r\n"));
            assert_eq!(answer.status, status, "{page}");
        }
    }
}

fn a_redirect_from_its_name_does_not_guard_an_index(setup: Setup) {
    let folder = site();
    folder.file("private/index.html", "secret");
    let text = "root = \"root\"\ntrailing-slash = \"remove\"\n\
        [[route]]\npath = \"/index.html\"\nredirect = \"/\"\n\
        [[route]]\npath = \"/docs/index.html\"\nredirect = \"/login\"\n\
        [[route]]\npath = \"/private/{*rest}\"\nanswer = \"This is private.\"\nstatus = 403\n";
    let server = Server::built(setup.described(&folder, text));
    assert_eq!(server.get("/").text(), "front page");
    assert_eq!(server.get("/index.html").field("location"), Some("/"));
    assert_statuses(&server, &[("/docs", 404), ("/private", 404), ("/private/index.html", 403)]);
}
