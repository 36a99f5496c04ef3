//! Values of a program's own types: JSON, queries, parts of the path.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/notes.rs"]
mod notes;

use std::collections::BTreeMap;

use gustnado::{Request, Response, Routes, blocking};
use serde::{Deserialize, Serialize};

use crate::harness::client::{get, post_chunked, post_of};
use crate::harness::{Server, Setup};

on_every_server!(
    json_is_read_in_each_kind_and_written,
    a_body_that_is_not_the_json_wanted_is_refused_with_its_reason,
    a_query_is_read_as_a_value,
    a_part_of_the_path_is_read_as_a_value,
    what_cannot_be_json_is_a_500,
    the_notes_are_kept,
);

const JSON: &str = "application/json";

#[derive(Serialize, Deserialize)]
struct Point {
    x: i32,
    y: i32,
}

fn turned(point: &Point) -> Response {
    Response::json(&Point { x: -point.y, y: point.x })
}

fn json_is_read_in_each_kind_and_written(setup: Setup) {
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.json().map(|point| turned(&point)))
        .post("/pool", blocking(|request: Request| request.json().map(|point| turned(&point))))
        .post("/task", async |mut request: Request| {
            request.read_json(1_000).await.map(|point| turned(&point))
        });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/pool", "/task"] {
        let body = br#"{"x": 3, "y": 4, "other": null}"#;
        for kind in [JSON, "Application/JSON; charset=utf-8", "application/geo+json"] {
            for sent in [post_of(path, kind, body), post_chunked(path, kind, body)] {
                let answer = client.ask(sent);
                assert_eq!(answer.text(), r#"{"x":-4,"y":3}"#, "{path} {kind}");
                assert_eq!(answer.field("content-type"), Some(JSON));
            }
        }
    }
}

fn a_body_that_is_not_the_json_wanted_is_refused_with_its_reason(setup: Setup) {
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.json().map(|point| turned(&point)))
        .post("/task", async |mut request: Request| {
            request.read_json(40).await.map(|point| turned(&point))
        });
    let server = Server::routes(setup.config(), routes);
    for path in ["/inline", "/task"] {
        for (kind, body, status, reason) in [
            ("text/plain", r#"{"x":3,"y":4}"#, 415, "set Content-Type"),
            (JSON, r#"{"x":3,"#, 400, "the body is not JSON: EOF"),
            (JSON, "", 400, "the body is not JSON: EOF"),
            (JSON, "{x:3}", 400, "line 1 column 2"),
            (JSON, r#"{"x":3,"y":4} 5"#, 400, "trailing characters"),
            (JSON, r#"{"x":3}"#, 422, "missing field `y`"),
            (JSON, r#"{"x":3,"y":"4"}"#, 422, "invalid type: string"),
            (JSON, r#"{"x":3,"y":3000000000}"#, 422, "3000000000"),
        ] {
            let answer = server.ask(post_of(path, kind, body.as_bytes()));
            assert_eq!(answer.status, status, "{path} {body}");
            assert!(answer.text().contains(reason), "{path} {body}: {}", answer.text());
        }
    }
    let long = format!(r#"{{"x":3,"y":4,"z":"{}"}}"#, "z".repeat(100));
    assert_eq!(server.ask(post_of("/task", JSON, long.as_bytes())).status, 413);
    assert_eq!(server.ask(post_chunked("/task", JSON, long.as_bytes())).status, 413);
}

#[derive(Deserialize)]
struct Page {
    size: u8,
    #[serde(default)]
    after: Option<String>,
}

fn a_query_is_read_as_a_value(setup: Setup) {
    let routes = Routes::new().get("/", |request: &Request| {
        let page: Page = request.query_as()?;
        let after = page.after.unwrap_or_else(|| "-".to_owned());
        Ok::<_, gustnado::QueryError>(format!("{} {after}", page.size))
    });
    let server = Server::routes(setup.config(), routes);
    let ask = |target: &str| {
        let answer = server.ask(get(target));
        (answer.status, answer.text())
    };
    assert_eq!(ask("/?size=20&after=J%C3%BC+x&more=1"), (200, "20 J\u{fc} x".to_owned()));
    assert_eq!(ask("/?size=20"), (200, "20 -".to_owned()));
    for (target, reason) in [
        ("/", "missing field `size`"),
        ("/?size=300", "number too large"),
        ("/?size=x", "invalid digit"),
        ("/?size=1&size=2", "duplicate field `size`"),
    ] {
        let (status, text) = ask(target);
        assert_eq!(status, 400, "{target}");
        assert!(text.contains(reason), "{target}: {text}");
    }
}

fn a_part_of_the_path_is_read_as_a_value(setup: Setup) {
    let routes = Routes::new()
        .get("/users/{id}", |request: &Request| {
            request.param_as::<u32>("id").map(|id| format!("user {id}"))
        })
        .get("/addresses/{ip}", |request: &Request| {
            request.param_as::<std::net::IpAddr>("ip").map(|ip| ip.to_string())
        })
        .get("/wrong/{id}", |request: &Request| {
            request.param_as::<u32>("number").map(|id| id.to_string())
        });
    let server = Server::routes(setup.config(), routes);
    let status = |target: &str| server.ask(get(target)).status;
    assert_eq!(server.ask(get("/users/%37")).text(), "user 7");
    assert_eq!(server.ask(get("/addresses/%3A%3A1")).text(), "::1");
    for target in ["/users/x", "/users/-1", "/users/4294967296", "/users/7%20", "/addresses/7"] {
        assert_eq!(status(target), 404, "{target}");
    }
    assert_eq!(status("/wrong/7"), 500);
}

fn what_cannot_be_json_is_a_500(setup: Setup) {
    let routes =
        Routes::new().get("/", |_: &Request| Response::json(&BTreeMap::from([((1, 2), 3)])));
    let answer = Server::routes(setup.config(), routes).ask(get("/"));
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("key must be a string"), "{}", answer.text());
}

fn the_notes_are_kept(setup: Setup) {
    let server = Server::routes(setup.config(), notes::routes());
    let mut client = server.connect();
    assert_eq!(client.get("/notes").text(), "[]");
    for (number, text) in ["first", "second"].into_iter().enumerate() {
        let answer =
            client.ask(post_of("/notes", JSON, format!(r#"{{"text":"{text}"}}"#).as_bytes()));
        assert_eq!(
            (answer.status, answer.field("location")),
            (201, Some(&*format!("/notes/{number}")))
        );
    }
    assert_eq!(client.get("/notes/1").text(), r#"{"text":"second"}"#);
    assert_eq!(client.get("/notes?contains=fir").text(), r#"[{"text":"first"}]"#);
    for target in ["/notes/2", "/notes/x", "/notes/-1"] {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
    assert_eq!(client.ask(post_of("/notes", JSON, b"{}")).status, 422);
}
