//! Handlers that answer without a look at the body, or before its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::slice::Iter;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use gustnado::{Flow, Middleware, Request, Response, Routes, Status, blocking, route};
use gustnado_tasks::sleep;

use crate::harness::Folder;
use crate::harness::folder::noise;

/// Adds one route for each way.
pub(super) fn all(routes: Routes, folder: &Folder) -> Routes {
    guarded(tasks(inline(routes), folder)).files("/files", folder.root())
}

fn inline(routes: Routes) -> Routes {
    routes
        .get("/get-only", |_: &Request| "got")
        .post("/inline", |_: &Request| "inline")
        .post("/inline-panic", |_: &Request| -> &str { panic!("on purpose") })
        .post("/inline-error", |_: &Request| Err::<&str, Status>(Status::CONFLICT))
        .post("/redirect", |_: &Request| Response::redirect(Status::SEE_OTHER, "/elsewhere"))
        .post("/pool", blocking(|_| "pool"))
        .post("/pool-panic", blocking(|_| -> &'static str { panic!("on purpose") }))
}

fn tasks(routes: Routes, folder: &Folder) -> Routes {
    let file = folder.path("file.txt");
    routes
        .post("/task", async |_: Request| "task")
        .post("/task-404", async |_: Request| Status::NOT_FOUND)
        .post("/task-204", async |_: Request| Status::NO_CONTENT)
        .post("/task-close", async |_: Request| Response::text("bye").close())
        .post("/task-panic", async |_: Request| -> &str { panic!("on purpose") })
        .post("/task-late", async |_: Request| {
            sleep(Duration::from_millis(2)).await;
            "late"
        })
        .post("/task-late-panic", async |_: Request| -> &str {
            sleep(Duration::from_millis(2)).await;
            panic!("on purpose")
        })
        .post("/task-begun", async |request: Request| {
            let mut body = request.into_body();
            _ = body.next().await;
            "begun"
        })
        .post("/task-big", async |_: Request| noise(1, 200_000))
        .post("/task-stream", async |_: Request| {
            Response::stream(Pieces(["one", "two", "three"].iter()))
        })
        .post("/task-file", move |_: Request| {
            let file = file.clone();
            async move { Response::file(file) }
        })
}

fn guarded(routes: Routes) -> Routes {
    let guard = |_: &mut Request| Flow::Respond(Response::new(Status::FORBIDDEN));
    let unread = route().post(async |_: Request| "early");
    routes
        .route("/guarded", route().any(|_: &Request| "open").middleware(Middleware::before(guard)))
        .route("/guarded-task", unread.middleware(Middleware::before(guard)))
        .route("/small", route().post(|_: &Request| "small").limit_body_bytes(10))
        .route("/small-task", route().post(async |_: Request| "small").limit_body_bytes(10))
}

/// A stream of pieces that are there.
struct Pieces(Iter<'static, &'static str>);

impl Stream for Pieces {
    type Item = Result<&'static str, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().copied().map(Ok))
    }
}
