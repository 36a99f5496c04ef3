//! Rules of header fields with conditions, and rewrites of paths.

use gustnado::config::{Config, HeaderRule};
use gustnado::{Method, Request, Response, Routes, Server as Builder, Status, route};

use crate::harness::client::{get, post, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    rules_change_the_answers_that_they_name,
    what_has_not_changed_has_the_fields_of_the_whole,
    rules_of_a_route_come_last,
    a_file_says_rules_and_rewrites,
    another_path_takes_the_place_of_the_first,
    a_rewrite_that_leads_nowhere_is_refused,
);

fn rules() -> Vec<HeaderRule> {
    vec![
        HeaderRule::new().path("/assets/{*rest}").class(2).set("Cache-Control", "immutable"),
        HeaderRule::new().content_type("text/html").set("X-Page", "yes"),
        HeaderRule::new().status(404).set("Cache-Control", "no-store").remove("X-Inner"),
        HeaderRule::new().method(Method::Post).add("Link", "</a>").add("Link", "</b>"),
    ]
}

fn rules_change_the_answers_that_they_name(setup: Setup) {
    let folder = Folder::new();
    folder.file("assets/a.js", "x");
    folder.file("a.html", "<p>");
    let mut config: Config = setup.folder_config(&folder);
    config.routes.header_rules = rules();
    let inner = |_: &Request| {
        Response::html("<p>")
            .status(Status::NOT_FOUND)
            .header("X-Inner", "1")
            .header("Link", "</own>")
    };
    let server = Server::routes(config, Routes::new().any("/inner", inner));
    let answer = server.get("/assets/a.js");
    assert_eq!((answer.status, answer.field("cache-control")), (200, Some("immutable")));
    assert_eq!(answer.field("x-page"), None);
    let tag = answer.expect_field("etag").to_owned();
    let answer = server.ask(request("GET", "/assets/a.js", &format!("If-None-Match: {tag}\r\n")));
    assert_eq!((answer.status, answer.field("cache-control")), (304, Some("immutable")));
    let page = server.get("/assets/none");
    assert_eq!(
        (page.field("cache-control"), page.field("x-page")),
        (Some("no-store"), Some("yes"))
    );
    let answer = server.get("/a.html");
    assert_eq!((answer.field("x-page"), answer.field("cache-control")), (Some("yes"), None));
    let answer = server.ask(post("/inner", "body"));
    assert_eq!((answer.status, answer.field("x-inner"), answer.count("link")), (404, None, 3));
    assert_eq!(server.get("/inner").count("link"), 1);
}

fn what_has_not_changed_has_the_fields_of_the_whole(setup: Setup) {
    let folder = Folder::new();
    folder.dated("a.html", "<p>");
    folder.dated("a.js", "x");
    let mut config: Config = setup.folder_config(&folder);
    config.routes.header_rules = vec![
        HeaderRule::new().class(2).set("Cache-Control", "max-age=60"),
        HeaderRule::new().status(200).content_type("text/html").set("Cache-Control", "no-cache"),
        HeaderRule::new().status(200).content_type("text/html").set("Content-Language", "en"),
        HeaderRule::new().status(206).set("X-Status", "part"),
        HeaderRule::new().status(304).set("X-Status", "same"),
    ];
    let inner = |_: &Request| Response::new(Status::NOT_MODIFIED);
    let server = Server::routes(config, Routes::new().any("/inner", inner));
    for (path, kept, language) in
        [("/a.html", "no-cache", Some("en")), ("/a.js", "max-age=60", None)]
    {
        for _ in 0..2 {
            let whole = server.get(path);
            let fields =
                ["cache-control", "content-language", "x-status"].map(|it| whole.field(it));
            assert_eq!((whole.status, fields), (200, [Some(kept), language, None]), "{path}");
            let tag = whole.expect_field("etag");
            let condition = format!("If-None-Match: {tag}\r\n");
            let same = server.ask(request("GET", path, &condition));
            let fields = ["cache-control", "content-language", "x-status"].map(|it| same.field(it));
            assert_eq!((same.status, fields), (304, [Some(kept), None, Some("same")]), "{path}");
            assert_eq!((same.field("content-type"), same.field("etag")), (None, Some(tag)));
        }
    }
    let same = server.get("/inner");
    assert_eq!((same.status, same.field("cache-control")), (304, Some("max-age=60")));
}

fn rules_of_a_route_come_last(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "x");
    let mut config = setup.folder_config(&folder);
    config.routes.header_rules.push(HeaderRule::new().set("X-Level", "server"));
    let own = route().get(|_: &Request| "own").tune(|settings| {
        settings.header_rules.push(HeaderRule::new().set("X-Level", "route"));
    });
    let server = Server::routes(config, Routes::new().route("/own", own));
    let answer = server.get("/own");
    assert_eq!((answer.field("x-level"), answer.count("x-level")), (Some("route"), 1));
    // A folder has in its prepared heads what is the same for all of its answers.
    for path in ["/a.txt", "/a.txt", "/none"] {
        assert_eq!(server.get(path).field("x-level"), Some("server"), "{path}");
    }
}

fn a_file_says_rules_and_rewrites(setup: Setup) {
    let folder = Folder::new();
    folder.file("b/a.txt", "x");
    let text = "
        root = \"root\"
        [[rewrite]]
        from = \"/a/{*rest}\"
        to = \"/b/{rest}\"
        [[header]]
        path = \"/b/{*rest}\"
        status = [200, \"4xx\"]
        set = { X-Level = \"server\" }
        [[route]]
        path = \"/own\"
        answer = \"own\"
        [[route.header]]
        methods = \"GET\"
        type = \"text/*\"
        add = { X-Level = \"route\" }
    ";
    let server = Server::built(setup.described(&folder, text));
    let answer = server.get("/a/a.txt");
    assert_eq!((answer.status, answer.field("x-level")), (200, Some("server")));
    assert_eq!(server.get("/b/none").field("x-level"), Some("server"));
    assert_eq!(server.get("/own").field("x-level"), Some("route"));
    assert_eq!(server.get("/none").field("x-level"), None);
}

fn told(request: &Request) -> String {
    let query = request.raw_query().unwrap_or("-");
    format!("{} {query} {} {}", request.path(), request.param("rest"), request.bytes().len())
}

fn another_path_takes_the_place_of_the_first(setup: Setup) {
    let folder = Folder::new();
    folder.file("docs/v2/a.txt", "second");
    let routes = Routes::new()
        .rewrite("/old/{*rest}", "/new/{rest}")
        .rewrite("/new/{*rest}", "/old/{rest}")
        .rewrite("/docs/latest/{*rest}", "/docs/v2/{rest}")
        .rewrite("/item/{id}", "/new/item?id={id}")
        .any("/new/{*rest}", told)
        .any("/old/{*rest}", told);
    let server = Server::built(Builder::new().config(setup.folder_config(&folder)).routes(routes));
    for (sent, wanted) in [
        ("/old/a/b?x=1", "/new/a/b x=1 a/b 0"),
        ("/new/a", "/old/a - a 0"),
        ("/old/", "/new/ -  0"),
        ("//old/./%61?y", "/new/a y a 0"),
        ("/item/7?x=1", "/new/item id=7 item 0"),
    ] {
        assert_eq!(server.get(sent).text(), wanted, "{sent}");
    }
    for _ in 0..2 {
        assert_eq!(server.get("/docs/latest/a.txt").text(), "second");
    }
    assert_eq!(server.get("/docs/latest/none").status, 404);
    // A body that is read first leads to the same path.
    let mut client = server.connect();
    for length in [5, 100_000] {
        client.send(post("/old/up", &"x".repeat(length)));
        assert_eq!(client.read_answer().text(), format!("/new/up - up {length}"));
    }
    client.send(get("/old/next"));
    assert_eq!(client.read_answer().text(), "/new/next - next 0");
}

fn a_rewrite_that_leads_nowhere_is_refused(setup: Setup) {
    let routes = Routes::new().rewrite("/a/{*rest}", "/{rest}").any("/{*rest}", told);
    let server = Server::routes(setup.config(), routes);
    // The part begins where it was sent escaped: it stays one segment.
    assert_eq!(server.get("/a/%2F%2Fevil.org/x").status, 200);
    let grown =
        Routes::new().rewrite("/a/{*rest}", "/{rest}{rest}{rest}{rest}").any("/{*rest}", told);
    let mut config = setup.config();
    config.limit_target_bytes = 20_000;
    config.limit_head_bytes = 30_000;
    let server = Server::routes(config, grown);
    assert_eq!(server.get(&format!("/a/{}", "x".repeat(9_000))).status, 400);
}
