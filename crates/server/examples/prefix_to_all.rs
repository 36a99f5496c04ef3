//! A link around all handlers that writes a heading before what they answer, for requests that ask
//! for it with `url` in their query.
//!
//! ```text
//! cargo run --release --example prefix_to_all -- 127.0.0.1:3456
//! curl http://127.0.0.1:3456/hello
//! curl 'http://127.0.0.1:3456/hello?url'
//! ```

use std::env;

use gustnado::{Middleware, Request, Response, Server};

/// The server, before it listens.
pub(crate) fn server() -> Server {
    let asks = |request: &Request| request.raw_query().is_some_and(|query| query.contains("url"));
    Server::new()
        .middleware(Middleware::after(write_before).only_if(asks))
        .get("/hello", |_: &Request| Response::html("<p>Hello!"))
        .get("/{name}", |request: &Request| {
            Response::html(format!("<p>This is {}.", escaped(&request.param("name"))))
        })
}

/// Puts the request's address before the content, where that is there as a whole.
fn write_before(request: &Request, response: &mut Response) {
    let Some(content) = response.content() else { return };
    let heading = format!("<h1>{}</h1>\n", escaped(request.target()));
    let whole = [heading.as_bytes(), content].concat();
    *response = Response::html(whole).status(response.status_code());
}

/// What a client sent, so that it is text in a page and nothing else.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn main() -> gustnado::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3456".to_owned());
    println!("try: curl 'http://{address}/hello?url'");
    server().listen(&address)?.run()
}
