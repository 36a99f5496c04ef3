//! The example, as it is shown to people.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/axum_app.rs"]
mod axum_app;

use crate::harness::client::request;
use crate::harness::{Server, Setup};

pub(crate) fn the_axum_example_answers(setup: Setup) {
    let routes = axum_app::server().config(setup.config());
    let server = Server::of(routes.start().expect("the server starts"));
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "Hello from Gustnado!");
    assert_eq!(client.get("/api/user/7").text(), r#"{"id":7,"name":"user 7"}"#);
    assert_eq!(client.get("/api/user/x").status, 400);
    let user = r#"{"id":1,"name":"Anna"}"#;
    assert_eq!(client.ask(crate::post("/api/user", "application/json", user)).text(), user);
    let packed = client.ask(request("GET", "/api/long", "Accept-Encoding: gzip\r\n"));
    assert_eq!(packed.expect_field("content-encoding"), "gzip");
    assert_eq!(client.get("/api/later").text(), "Hello, a little later!");
}
