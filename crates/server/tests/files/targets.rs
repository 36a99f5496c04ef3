//! Paths that lead to files by the settings of a server, a site and a route.

use gustnado::Routes;
use gustnado::config::TrailingSlash;
use gustnado::route;

use crate::harness::{Folder, Server, Setup};

on_every_server!(
    pages_are_found_without_their_ending,
    a_site_and_a_route_have_paths_of_their_own,
    a_fallback_is_served_for_every_path,
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
