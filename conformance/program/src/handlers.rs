//! Handlers of the server's own.

use std::time::Duration;

use gustnado::task::sleep;
use gustnado::{Request, Response, Server, Status};

use crate::service::running;

/// The server, before it listens.
pub(crate) fn server() -> Server {
    Server::new()
        .get("/running", |_: &Request| running().to_string())
        .any("/echo", async |request: Request| Response::stream(request.into_body()))
        .any("/trailers", async |request: Request| {
            Response::stream(request.into_body())
                .header("Trailer", "x-sum")
                .trailers(|| vec![("x-sum".to_owned(), "42".to_owned())])
        })
        .get("/hints", async |request: Request| {
            let told = request.early_hints(&[("Link", "</style.css>; rel=preload; as=style")]);
            sleep(Duration::from_millis(50)).await;
            told.map_or("none", |()| "after hints")
        })
        .get("/slow", async |_: Request| {
            sleep(Duration::from_millis(300)).await;
            "slow"
        })
        .post("/whole", async |mut request: Request| {
            match request.body_mut().bytes(1 << 20).await {
                Ok(body) => Response::text(body.len().to_string()),
                Err(error) => Response::text(error.to_string()).status(error.status()),
            }
        })
        .post("/unread", async |_request: Request| {
            sleep(Duration::from_secs(5)).await;
            "unread"
        })
        .post("/refused", async |_: Request| Response::text("no").status(Status::FORBIDDEN))
}
