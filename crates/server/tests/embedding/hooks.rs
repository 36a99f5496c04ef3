//! What a program may have called: when a limit strikes, and when a connection has ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{
    ClosedConnection, Limit, LimitAction, LimitEvent, Middleware, Request, Response, Routes, Sent,
    Server as Builder, route,
};

use crate::harness::client::{get, request};
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    every_time_that_strikes_is_told,
    every_size_that_strikes_is_told,
    a_head_and_a_pause_may_be_given_more_time,
    a_body_may_be_given_more_time,
    a_reader_may_be_given_more_time,
    a_handler_may_be_given_more_time,
    a_grace_is_not_asked_for_again_before_it_is_over,
    a_panic_in_a_hook_is_its_own,
    the_end_of_each_connection_is_told_once,
    chains_see_every_stage_of_a_request,
);

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_mins(1);

/// What a hook was told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    limit: Limit,
    configured: u64,
    reached: u64,
    target: Option<String>,
}

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<Told>>>);

impl Tape {
    fn note(&self, event: &LimitEvent<'_>) {
        let LimitEvent { limit, configured, reached, target, .. } = *event;
        let target = target.map(str::to_owned);
        self.0.lock().expect("no panic").push(Told { limit, configured, reached, target });
    }

    fn all(&self) -> Vec<Told> {
        self.0.lock().expect("no panic").clone()
    }

    /// Waits for the one entry that is due, and takes it.
    fn take(&self, limit: Limit) -> Told {
        wait_until(limit.name(), || !self.all().is_empty());
        let mut all = std::mem::take(&mut *self.0.lock().expect("no panic"));
        assert_eq!((all.len(), all[0].limit), (1, limit), "{all:?}");
        all.remove(0)
    }
}

/// A server that tells the tape, and does what `verdict` says.
fn telling(
    config: Config,
    routes: Routes,
    verdict: impl Fn(&LimitEvent<'_>) -> LimitAction + Send + Sync + 'static,
) -> (Server, Tape) {
    let tape = Tape::default();
    let noting = tape.clone();
    let builder = Builder::new().config(config).routes(routes).on_limit(move |event| {
        noting.note(event);
        verdict(event)
    });
    (Server::built(builder), tape)
}

fn length(request: &Request) -> String {
    request.bytes().len().to_string()
}

async fn read(request: Request) -> Response {
    match request.into_body().bytes(1 << 20).await {
        Ok(body) => Response::text(body.len().to_string()),
        Err(error) => Response::new(error.status()),
    }
}

fn every_time_that_strikes_is_told(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("long.bin", 64 << 20);
    let hang = async |_: Request| {
        sleep(LONG).await;
        ""
    };
    let routes = Routes::new()
        .post("/inline", length)
        .post("/task", read)
        .get("/hang", hang)
        .route("/idle", route().idle_timeout(SHORT / 2).get(hang))
        .files("/files", folder.root());
    let config = Config {
        first_request_timeout: SHORT,
        header_timeout: SHORT + Duration::from_millis(1),
        timeout_keep_alive: SHORT + Duration::from_millis(2),
        body_timeout: SHORT + Duration::from_millis(3),
        write_timeout: SHORT + Duration::from_millis(4),
        half_close_timeout: SHORT + Duration::from_millis(5),
        ..setup.patient_config()
    };
    let (server, tape) = telling(config, routes, |_| LimitAction::Close);
    let expect = |limit, configured: u64, reached, target: Option<&str>| {
        let target = target.map(str::to_owned);
        assert_eq!(tape.take(limit), Told { limit, configured, reached, target });
    };
    server.connect().expect_end("nothing was said");
    expect(Limit::FirstRequest, 300, 0, None);
    let mut client = server.connect();
    client.send("GET / HT");
    if Setup::is_http2() {
        client.expect_end("half a frame");
        expect(Limit::Head, 301, 1, None);
    } else {
        assert_eq!(client.read_answer().status, 408);
        expect(Limit::Head, 301, 8, None);
    }
    let mut client = server.connect();
    assert_eq!(client.get("/none").status, 404);
    client.expect_end("a long pause");
    expect(Limit::KeepAlive, 302, 0, None);
    for path in ["/inline", "/task"] {
        let mut client = server.connect();
        client.send(request("POST", path, "Content-Length: 10\r\n") + "hello");
        assert_eq!(client.read_answer().status, 408, "{path}");
        expect(Limit::Body, 303, 5, Some(path));
    }
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/files/long.bin"));
    server.wait_until_empty();
    let told = tape.take(Limit::Write);
    assert_eq!(told.configured, 304);
    let (all, _) = client.read_until_ended();
    assert!(told.reached <= all.len() as u64 && told.reached < 64 << 20, "{told:?}");
    let mut client = server.connect();
    client.send(get("/hang"));
    client.shut_write();
    client.expect_end("a client that has gone");
    // (By HTTP/2 several streams may be what is waited for.)
    expect(Limit::HalfClose, 305, 0, (!Setup::is_http2()).then_some("/hang"));
    assert_eq!(server.get("/idle").status, 503);
    expect(Limit::Idle, 150, 0, Some("/idle"));
    server.wait_until_empty();
    let stats = server.stats();
    assert_eq!((stats.timeouts, stats.idle_closed, stats.never_asked), (8, 1, 1));
}

fn every_size_that_strikes_is_told(setup: Setup) {
    let routes = Routes::new()
        .post("/inline", length)
        .post("/task", read)
        .route("/own", route().limit_body_bytes(3).post(length));
    let config = Config {
        limit_head_bytes: 400,
        limit_target_bytes: 100,
        limit_header_fields: 5,
        limit_body_bytes: 1_000,
        ..setup.patient_config()
    };
    let (server, tape) = telling(config, routes, |_| LimitAction::Wait(LONG));
    let status = |request: String| server.ask(request).status;
    assert_eq!(status(request("GET", "/", &format!("X: {}\r\n", "x".repeat(400)))), 431);
    let told = tape.take(Limit::HeadBytes);
    assert!(told.configured == 400 && told.reached >= 400, "{told:?}");
    assert_eq!(status(get(&format!("/{}", "x".repeat(100)))), 414);
    assert_eq!(tape.take(Limit::TargetBytes).configured, 100);
    // (By HTTP/2 the host is no field.)
    let many = 5 + usize::from(Setup::is_http2());
    assert_eq!(status(request("GET", "/", &"X: y\r\n".repeat(many))), 431);
    let told = tape.take(Limit::HeaderFields);
    assert_eq!((told.configured, told.reached), (5, 6));
    for (path, limit) in [("/inline", 1_000), ("/task", 1_000), ("/own", 3)] {
        assert_eq!(status(request("POST", path, "Content-Length: 1001\r\n")), 413, "{path}");
        let told = tape.take(Limit::BodyBytes);
        let target = Some(path.to_owned());
        assert_eq!((told.configured, told.reached, told.target), (limit, 1_001, target));
        let chunked = request("POST", path, "Transfer-Encoding: chunked\r\n");
        let chunk = format!("400\r\n{}\r\n", "x".repeat(1_024));
        assert_eq!(status(chunked + &chunk), 413, "{path}");
        assert_eq!(tape.take(Limit::BodyBytes).configured, limit, "{path}");
    }
    assert_eq!(status(get("/none")), 404);
    assert_eq!(tape.all(), [], "nothing strikes where nothing is too large");
}

fn a_head_and_a_pause_may_be_given_more_time(setup: Setup) {
    let config = Config {
        header_timeout: SHORT,
        timeout_keep_alive: SHORT,
        first_request_timeout: SHORT,
        ..setup.patient_config()
    };
    let routes = Routes::new().get("/", |_: &Request| "here");
    let (server, tape) = telling(config, routes, |_| LimitAction::Wait(SHORT * 20));
    let mut client = server.connect();
    tape.take(Limit::FirstRequest);
    client.send("GET / HTTP/1.1\r\n");
    tape.take(Limit::Head);
    client.send("Host: x\r\n\r\n");
    assert_eq!(client.read_answer().text(), "here");
    tape.take(Limit::KeepAlive);
    assert_eq!(client.get("/").text(), "here");
    assert_eq!((server.stats().connections_accepted, server.stats().timeouts), (1, 0));
}

fn a_body_may_be_given_more_time(setup: Setup) {
    let routes = Routes::new().post("/inline", length).post("/task", read);
    let config = Config { body_timeout: SHORT, ..setup.patient_config() };
    let (server, tape) = telling(config, routes, |_| LimitAction::Wait(SHORT * 20));
    for path in ["/inline", "/task"] {
        let mut client = server.connect();
        client.send(request("POST", path, "Content-Length: 10\r\n") + "hello");
        tape.take(Limit::Body);
        client.send("world");
        assert_eq!(client.read_answer().text(), "10", "{path}");
    }
}

fn a_reader_may_be_given_more_time(setup: Setup) {
    let much = noise(4, 24 << 20);
    let folder = Folder::new();
    folder.file("much.bin", &much);
    let bytes = bytes::Bytes::from(much.clone());
    let pieces = bytes.clone();
    let many = bytes.slice(..60_000);
    let routes = Routes::new()
        .get("/bytes", move |_: &Request| bytes.clone())
        .get("/many", move |_: &Request| many.clone())
        .get("/stream", move |_: &Request| {
            let (appender, response) = Response::append(2);
            let mut left = pieces.clone();
            gustnado::task::spawn_detached(async move {
                while !left.is_empty() {
                    let piece = left.split_to(left.len().min(100_000));
                    appender.append(piece).await.expect("the client reads in the end");
                }
            })
            .expect("a slot");
            response
        })
        .files("/files", folder.root());
    let config = Config { write_timeout: SHORT, ..setup.patient_config() };
    let (server, tape) = telling(config, routes, |_| LimitAction::Wait(SHORT * 20));
    for path in ["/bytes", "/stream", "/files/much.bin"] {
        let mut client = Client::connect_narrow(server.address());
        client.send(get(path));
        tape.take(Limit::Write);
        assert!(client.read_answer().body == much, "{path}");
    }
    // Answers that are ready leave on the quick way; that may be too slow for a client as well.
    let mut client = Client::connect_narrow(server.address());
    client.send(get("/many").repeat(200));
    tape.take(Limit::Write);
    for _ in 0..200 {
        assert!(client.read_answer().body == much[..60_000]);
    }
    assert_eq!(server.stats().timeouts, 0);
}

fn a_handler_may_be_given_more_time(setup: Setup) {
    let slow = async |_: Request| {
        sleep(SHORT * 2).await;
        let (appender, response) = Response::append(1);
        gustnado::task::spawn_detached(async move {
            sleep(SHORT * 2).await;
            appender.append("at last").await.expect("the client is there");
        })
        .expect("a slot");
        response
    };
    let routes = Routes::new().route("/", route().idle_timeout(SHORT).get(slow));
    let (server, tape) = telling(setup.patient_config(), routes, |_| LimitAction::Wait(SHORT * 20));
    let mut client = server.connect();
    client.send(get("/"));
    tape.take(Limit::Idle);
    assert_eq!(client.read_answer().text(), "at last");
    tape.take(Limit::Idle);
}

fn a_grace_is_not_asked_for_again_before_it_is_over(setup: Setup) {
    // Far below the smallest rate: by that rule each piece would come too late at once.
    let config =
        Config { body_timeout: SHORT / 3, body_rate_min: 1 << 30, ..setup.patient_config() };
    let routes = Routes::new().post("/inline", length).post("/task", read);
    let (server, tape) = telling(config, routes, |_| LimitAction::Wait(SHORT));
    for path in ["/inline", "/task"] {
        let began = Instant::now();
        let mut client = server.connect();
        client.send(request("POST", path, "Content-Length: 40\r\n"));
        client.trickle(&[b'x'; 40], SHORT / 10);
        assert_eq!(client.read_answer().text(), "40", "{path}");
        let asked = std::mem::take(&mut *tape.0.lock().expect("no panic")).len();
        let most = began.elapsed().as_millis() / SHORT.as_millis() + 2;
        assert!(
            (1..=most).contains(&(asked as u128)),
            "{path}: asked {asked} times, {most} at most"
        );
    }
}

fn a_panic_in_a_hook_is_its_own(setup: Setup) {
    let builder = Builder::new()
        .config(Config { timeout_keep_alive: SHORT, ..setup.patient_config() })
        .get("/", |_: &Request| "fine")
        .on_limit(|_| panic!("a fault of the hook's own"))
        .on_closed(|_| panic!("a fault of the hook's own"));
    let server = Server::built(builder);
    for _ in 0..3 {
        let mut client = server.connect();
        assert_eq!(client.get("/").text(), "fine");
        client.expect_end("it is over all the same");
    }
    server.wait_until_empty();
}

fn the_end_of_each_connection_is_told_once(setup: Setup) {
    let ends = Arc::<Mutex<Vec<ClosedConnection>>>::default();
    let noting = Arc::clone(&ends);
    let builder = Builder::new()
        .config(setup.patient_config())
        .get("/", |_: &Request| "fine")
        .on_closed(move |closed| noting.lock().expect("no panic").push(*closed));
    let server = Server::built(builder);
    for requests in 0..4 {
        let mut client = server.connect();
        for _ in 0..requests {
            assert_eq!(client.get("/").status, 200);
        }
        std::thread::sleep(Duration::from_millis(20)); // so long it lasts at least
        if requests % 2 == 0 {
            drop(client);
        } else {
            client.reset();
        }
        wait_until("its end is told", || ends.lock().expect("no panic").len() == requests + 1);
        let closed = ends.lock().expect("no panic")[requests];
        assert_eq!(closed.requests as usize, requests);
        assert!(closed.lasted >= Duration::from_millis(10) && closed.lasted < LONG, "{closed:?}");
        assert!(closed.worker.is_some_and(|worker| worker < 2), "{closed:?}");
    }
    let mut open: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for client in &mut open {
        assert_eq!(client.get("/").status, 200);
    }
    server.stop();
    assert_eq!(ends.lock().expect("no panic").len(), 9, "those that were cut are told too");
}

fn chains_see_every_stage_of_a_request(setup: Setup) {
    let stages = Arc::<Mutex<Vec<String>>>::default();
    let note = |stages: &Arc<Mutex<Vec<String>>>, text: String| {
        stages.lock().expect("no panic").push(text);
    };
    let (head, after, sent) = (Arc::clone(&stages), Arc::clone(&stages), Arc::clone(&stages));
    let body = Arc::clone(&stages);
    let broken = Arc::new(AtomicBool::new(false));
    let calls = Arc::<AtomicUsize>::default();
    let (breaking, counting) = (Arc::clone(&broken), Arc::clone(&calls));
    let builder = Builder::new()
        .config(setup.patient_config())
        .middleware(Middleware::before(move |request| {
            counting.fetch_add(1, Ordering::SeqCst);
            note(&head, format!("head of {}", request.raw_path()));
            gustnado::Flow::Next
        }))
        .middleware(Middleware::after(move |_, response| {
            note(&after, format!("answered {:?}", response.status_code()));
            let (sent, breaking) = (Arc::clone(&sent), Arc::clone(&breaking));
            let told = std::mem::replace(response, Response::new(gustnado::Status::OK));
            *response = told.on_sent(move |how| {
                breaking.fetch_or(how == Sent::Lost, Ordering::SeqCst);
                note(&sent, "sent".to_owned());
            });
        }))
        .post("/", move |request: &Request| {
            note(&body, format!("body of {}", request.bytes().len()));
            "done"
        });
    let server = Server::built(builder);
    let mut client = server.connect();
    client.send(request("POST", "/", "Content-Length: 5\r\n"));
    client.wait_until_read();
    client.send("hello");
    assert_eq!(client.read_answer().text(), "done");
    wait_until("it was sent", || stages.lock().expect("no panic").len() == 4);
    let stages = stages.lock().expect("no panic").join(", ");
    assert!(stages.starts_with("head of /, body of 5, answered "), "{stages}");
    assert!(stages.ends_with(", sent"), "{stages}");
    assert_eq!((calls.load(Ordering::SeqCst), broken.load(Ordering::SeqCst)), (1, false));
}
