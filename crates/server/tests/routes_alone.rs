//! Routes asked without a server: `gustnado::test::TestClient`.
//!
//! A binary of its own: a test looks whether its process has any thread of ours left.

use std::time::Duration;

use gustnado::config::Config;
use gustnado::task::{block_on, sleep};
use gustnado::test::{TestClient, TestError};
use gustnado::{
    Event, Flow, Method, Middleware, Next, Request, Response, Routes, Status, blocking, route,
};

fn routes() -> Routes {
    Routes::new()
        .get("/inline/{name}", |request: &Request| format!("Hello, {}!", request.param("name")))
        .post("/inline", |request: &Request| request.bytes().to_vec())
        .post("/task", async |request: Request| Response::stream(request.into_body()))
        .get("/late", async |_: Request| {
            sleep(Duration::from_millis(5)).await;
            "late"
        })
        .post("/pool", blocking(|request: Request| request.bytes().to_vec()))
        .get("/panic", |request: &Request| {
            assert_ne!(request.raw_path(), "/panic", "a fault of the handler's own");
            ""
        })
}

#[test]
fn all_kinds_of_handler_answer() {
    let client = TestClient::new(&routes());
    let answer = client.get("/inline/A%20b?x=1").send();
    assert_eq!((answer.status(), &*answer.text()), (200, "Hello, A b!"));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(client.get("/late").send().text(), "late");
    let long = "x".repeat(300_000);
    for path in ["/inline", "/task", "/pool"] {
        let answer = client.post(path).body(long.clone()).send();
        assert!(answer.status() == 200 && answer.text() == long, "{path}");
    }
}

#[test]
fn what_is_no_success_is_an_answer_too() {
    let routes = routes()
        .error_page(Status::NOT_FOUND, |request: &Request, _| format!("no {}", request.path()))
        .route("/small", route().limit_body_bytes(4).post(|_: &Request| "small enough"));
    let client = TestClient::new(&routes);
    let answer = client.get("/none").send();
    assert_eq!((answer.status(), &*answer.text()), (404, "no /none"));
    let answer = client.delete("/late").send();
    assert_eq!((answer.status(), answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(client.get("/panic").send().status(), 500);
    assert_eq!(client.post("/small").body("12345").send().status(), 413);
    assert_eq!(client.post("/small").body("1234").send().status(), 200);
}

#[test]
fn chains_hosts_and_methods_count() {
    let guard = |request: &mut Request| match request.header("authorization") {
        Some("let me in") => Flow::Next,
        _ => Flow::Respond(Response::new(Status::UNAUTHORIZED)),
    };
    let routes = routes()
        .host("other.example", Routes::new().get("/", |_: &Request| "other"))
        .chain(guard)
        .middleware(Middleware::around(async |request: Request, next: Next| {
            next.run(request).await.header("X-Around", "1")
        }));
    let client = TestClient::new(&routes);
    assert_eq!(client.get("/late").send().status(), 401);
    let answer = client.get("/late").header("Authorization", "let me in").send();
    assert_eq!((answer.status(), answer.header("x-around")), (200, Some("1")));
    let other = client.get("/").host("other.example:8080").header("Authorization", "let me in");
    assert_eq!(other.send().text(), "other");
    let head = client.request(Method::Head, "/late").header("Authorization", "let me in").send();
    assert_eq!((head.header("content-length"), head.bytes().len()), (Some("4"), 0));
}

#[test]
fn folders_are_served() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("data.txt"), "0123456789").expect("it is writable");
    let client = TestClient::new(&Routes::new().files("/static", folder.path()));
    let answer = client.get("/static/data.txt").header("Range", "bytes=2-4").send();
    assert_eq!((answer.status(), &*answer.text()), (206, "234"));
    assert_eq!(client.get("/static/../secret").send().status(), 400);
    assert_eq!(client.get("/static/none").send().status(), 404);
}

#[test]
fn trailers_and_interim_answers_are_kept() {
    let routes = Routes::new().get("/", async |request: Request| {
        request.early_hints(&[("Link", "</a.css>; rel=preload")]).expect("a good field");
        sleep(Duration::from_millis(5)).await;
        let (appender, response) = Response::append(4);
        appender.try_append("text").expect("there is room");
        response.trailers(|| vec![("X-Sum".to_owned(), "4".to_owned())])
    });
    let answer = TestClient::new(&routes).get("/").send();
    assert_eq!((answer.interim(), &*answer.text()), ([103].as_slice(), "text"));
    assert_eq!(answer.trailers(), [("X-Sum".to_owned(), "4".to_owned())]);
}

#[test]
fn an_answer_that_is_cut_is_an_error() {
    let routes = Routes::new().get("/", async |_: Request| {
        let (appender, response) = Response::append(4);
        appender.try_append("text").expect("there is room");
        drop((appender, response));
        Response::stream_of_length(Silent, 10)
    });
    let error = TestClient::new(&routes).get("/").try_send().expect_err("it has 10 bytes less");
    assert!(matches!(error, TestError::Request(_)), "{error}");
}

/// A stream that brings nothing.
struct Silent;

impl futures_core::Stream for Silent {
    type Item = Result<&'static str, std::convert::Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(None)
    }
}

#[test]
fn a_stream_can_be_read_as_it_comes() {
    let routes = Routes::new().get("/events", async |_: Request| {
        let (appender, response) = Response::append(1);
        gustnado::task::spawn_detached(async move {
            let mut count = 0;
            while appender.append(format!("{count};")).await.is_ok() {
                count += 1;
            }
        })
        .expect("there is room for a task");
        response.content_type("text/event-stream")
    });
    let client = TestClient::new(&routes);
    let read = block_on(async {
        let mut answer = client.get("/events").open().await.expect("an answer");
        let mut read = String::new();
        while read.len() < 20 {
            let piece = answer.next().await.expect("it has no end").expect("it is not cut");
            read += &String::from_utf8_lossy(&piece);
        }
        read
    });
    assert!(read.expect("this thread runs no tasks").starts_with("0;1;2;3;"));
    drop(Event::data("unused here"));
}

#[test]
fn inside_a_task_one_awaits_and_is_told_if_one_does_not() {
    let client = TestClient::new(&routes());
    block_on(async {
        let answer = client.get("/late").send_async().await.expect("an answer");
        assert_eq!(answer.text(), "late");
        let error = client.get("/late").try_send().expect_err("it would block the task");
        assert!(matches!(error, TestError::Thread(_)), "{error}");
    })
    .expect("this thread runs no tasks");
}

#[test]
fn clients_of_several_routes_do_not_mix() {
    let one = TestClient::new(&Routes::new().get("/", |_: &Request| "one"));
    let config = Config { server_name: "two".to_owned(), ..Config::default() };
    let two = Routes::new().get("/", |_: &Request| "two");
    let two = TestClient::with_config(&two, &config).expect("good routes");
    for _ in 0..3 {
        assert_eq!(one.get("/").send().text(), "one");
        let answer = two.get("/").send();
        assert_eq!((&*answer.text(), answer.header("server")), ("two", Some("two")));
    }
}

#[test]
fn nothing_is_left_behind() {
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
        let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm"));
        tasks
            .flatten()
            .filter_map(|task| name(task.path()).ok())
            .filter(|name| name.starts_with("gust"))
            .count()
    };
    let client = TestClient::new(&Routes::new().get("/", |_: &Request| "x"));
    for _ in 0..2_000 {
        // Each has two descriptors; more than the usual 1,024 in all would be noticed.
        assert_eq!(client.get("/").send().status(), 200);
    }
    drop(client);
    let patience = std::time::Instant::now();
    while threads() > 0 && patience.elapsed() < Duration::from_secs(25) {
        // (Those of other tests in this binary that use the pool.)
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(threads(), 0);
}
