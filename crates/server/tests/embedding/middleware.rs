//! Middleware sees every response as it will be sent: of files, 206, 304, pages for errors.

use gustnado::{Middleware, Request, Response, Routes, route};

use crate::harness::client::request;
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    a_field_is_added_to_every_response,
    the_content_of_every_response_may_be_replaced,
    a_status_is_known_before_the_response_is_written,
    one_route_of_a_table_has_middleware_and_a_folder_has_none,
);

/// A page that is in the cache by the time it is asked for again, and what stands in its place.
fn site() -> Folder {
    let folder = Folder::new();
    folder.file("page.txt", "a page");
    folder.file("big.bin", vec![7; 100_000]);
    folder
}

/// The field that makes a request for the page a conditional one that comes to 304.
fn unchanged(server: &Server) -> String {
    let etag = server.get("/page.txt").expect_field("etag").to_owned();
    format!("If-None-Match: {etag}\r\n")
}

fn a_field_is_added_to_every_response(setup: Setup) {
    let folder = site();
    let stamp = Middleware::after(|_: &Request, response: &mut Response| {
        response.try_header("X-Stamp", "1").expect("a good field");
    });
    let routes = Routes::new()
        .middleware(stamp)
        .get("/file", {
            let path = folder.root().join("page.txt");
            move |_: &Request| Response::file(&path)
        })
        .root(folder.root());
    let server = Server::routes(setup.config(), routes);
    let unchanged = unchanged(&server);
    for (path, fields, status, text) in [
        ("/page.txt", "", 200, "a page"),
        ("/page.txt", "", 200, "a page"),
        ("/page.txt", "Range: bytes=2-\r\n", 206, "page"),
        ("/page.txt", &unchanged, 304, ""),
        ("/file", "Range: bytes=2-\r\n", 206, "page"),
        ("/file", &unchanged, 304, ""),
    ] {
        let answer = server.ask(request("GET", path, fields));
        let found = (answer.status, &*answer.text(), answer.expect_field("x-stamp"));
        assert_eq!(found, (status, text, "1"), "{path} {fields}");
    }
    for (path, fields, status) in
        [("/none", "", 404), ("/page.txt", "Range: bytes=99-\r\n", 416), ("/../x", "", 400)]
    {
        let answer = server.ask(request("GET", path, fields));
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text().contains(&status.to_string()), "the page says what it is");
        if status != 400 {
            assert_eq!(answer.expect_field("x-stamp"), "1", "{path}");
        }
    }
    let big = server.get("/big.bin");
    assert_eq!((big.body.len(), big.expect_field("x-stamp")), (100_000, "1"));
}

fn the_content_of_every_response_may_be_replaced(setup: Setup) {
    let folder = site();
    let replace = Middleware::after(|_: &Request, response: &mut Response| {
        let status = response.status_code();
        *response = Response::text(format!("it was {}", status.code())).status(status);
    });
    let server =
        Server::routes(setup.config(), Routes::new().middleware(replace).root(folder.root()));
    let plain = Server::routes(setup.config(), Routes::new().root(folder.root()));
    let unchanged = unchanged(&plain);
    let mut client = server.connect();
    for (path, fields, status, text) in [
        ("/page.txt", "", 200, "it was 200"),
        ("/big.bin", "", 200, "it was 200"),
        ("/page.txt", "Range: bytes=2-\r\n", 206, "it was 206"),
        ("/page.txt", &unchanged, 304, ""),
        ("/none", "", 404, "it was 404"),
    ] {
        let answer = client.ask(request("GET", path, fields));
        assert_eq!((answer.status, &*answer.text()), (status, text), "{path} {fields}");
    }
}

fn a_status_is_known_before_the_response_is_written(setup: Setup) {
    let folder = site();
    let told = Middleware::around(async |request: Request, next: gustnado::Next| {
        let response = next.run(request).await;
        let status = response.status_code().code().to_string();
        response.header("X-Status", status)
    });
    let routes = Routes::new().middleware(told).files("/static", folder.root());
    let server = Server::routes(setup.config(), routes);
    for (path, status) in [("/static/page.txt", "200"), ("/static/none", "404"), ("/x", "404")] {
        assert_eq!(server.get(path).expect_field("x-status"), status, "{path}");
    }
    let part = server.ask(request("GET", "/static/page.txt", "Range: bytes=2-\r\n"));
    assert_eq!(part.expect_field("x-status"), "206");
}

fn one_route_of_a_table_has_middleware_and_a_folder_has_none(setup: Setup) {
    let folder = site();
    let stamp = Middleware::after(|_: &Request, response: &mut Response| {
        response.try_header("X-Stamp", "1").expect("a good field");
    });
    let routes = Routes::new()
        .route("/stamped", route().middleware(stamp).files(folder.root()))
        .files("/plain", folder.root());
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/stamped/page.txt").expect_field("x-stamp"), "1");
        let plain = client.get("/plain/page.txt");
        assert_eq!((&*plain.text(), plain.field("x-stamp")), ("a page", None));
    }
}
