//! Starting and ending as programs with an async `main` do, and what the server answers itself.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use gustnado::{Refused, Response, tower};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::harness::client::{get as asking, request};
use crate::harness::{Client, Setup, wait_until};
use crate::streams::Alive;

fn hello(setup: Setup) -> gustnado::Server {
    let app = Router::new().route("/", get(async || "hello"));
    gustnado::Server::new().config(setup.config()).fallback(tower(app))
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

pub(crate) fn a_listener_of_the_program_is_served(setup: Setup) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let runtime = runtime();
    let _entered = runtime.enter();
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = tcp.local_addr().expect("it is bound");
    let running = hello(setup).serve(tcp).expect("it listens");
    assert_eq!(Client::connect(address).get("/").text(), "hello");
    drop(running);
    assert!(TcpStream::connect(address).is_err(), "it was the server's own");

    let tcp = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = tcp.local_addr().expect("it is bound");
    let _running = hello(setup).serve(tcp).expect("it listens");
    assert_eq!(Client::connect(address).get("/").text(), "hello");

    let unix = UnixListener::bind(path("std")).expect("a free name");
    let _std = hello(setup).serve(unix).expect("it listens");
    let unix = tokio::net::UnixListener::bind(path("tokio")).expect("a free name");
    let _tokio = hello(setup).serve(unix).expect("it listens");
    for name in ["std", "tokio"] {
        assert_eq!(Client::connect_unix(&path(name)).get("/").text(), "hello", "{name}");
    }
}

pub(crate) fn a_socket_is_named_by_its_number(setup: Setup) {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = tcp.local_addr().expect("it is bound");
    let _running = hello(setup).listen(&format!("fd:{}", tcp.as_raw_fd())).expect("it listens");
    assert_eq!(Client::connect(address).get("/").text(), "hello");
    let error = hello(setup).listen("fd:987654").expect_err("there is none");
    assert!(error.to_string().contains("987654"), "{error}");
}

pub(crate) fn a_server_ends_when_an_async_program_says_so(setup: Setup) {
    let runtime = runtime();
    let (going, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked, counted) = (Arc::clone(&going), Arc::clone(&count));
    let slow = async move || {
        let _alive = Alive::new(&counted);
        asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        "slow"
    };
    let app = Router::new().route("/", get(slow));
    let server = gustnado::Server::new().config(setup.config()).fallback(tower(app));
    let running = server.start().expect("it listens");
    let gustnado::Endpoint::Tcp(address) = running.addresses()[0] else { panic!("it is TCP") };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(running.until(stopped));
    let mut client = Client::connect(address);
    client.send(asking("/"));
    wait_until("it is asked", || going.load(Ordering::SeqCst) == 1);
    stop.send(()).expect("it is waited for");
    // What is under way is answered, and that is the end.
    assert_eq!(client.read_answer().text(), "slow");
    let report = runtime.block_on(serving).expect("no panic");
    assert_eq!(report.cut, 0);
    assert!(TcpStream::connect(address).is_err());
    // A future that is dropped ends its server, too.
    let running = hello(setup).start().expect("it listens");
    let gustnado::Endpoint::Tcp(address) = running.addresses()[0] else { panic!("it is TCP") };
    drop(running.with_graceful_shutdown(std::future::pending::<()>()));
    assert!(TcpStream::connect(address).is_err());
}

pub(crate) fn what_the_server_refuses_can_be_dressed(setup: Setup) {
    let dress = |refused: &Refused<'_>, response: &mut Response| {
        if let Some(origin) = refused.header("origin") {
            _ = response.try_header("Access-Control-Allow-Origin", origin);
        }
        let asked = format!("{:?} {:?}", refused.method(), refused.target());
        _ = response.try_header("X-Asked", asked);
        assert_ne!(refused.status().code(), 431, "a hook that panics");
    };
    let app = Router::new().fallback(async || "app");
    let server = gustnado::Server::new()
        .config(setup.config())
        .on_refusal(dress)
        .fallback(tower(app).limit_body_bytes(10));
    let running = server.start().expect("it listens");
    let gustnado::Endpoint::Tcp(address) = running.addresses()[0] else { panic!("it is TCP") };
    let ask = |text: String| {
        let mut client = Client::connect(address);
        client.send_unless_closed(text);
        client.read_answer()
    };
    let large = ask(request("POST", "/a", "Origin: http://o\r\nContent-Length: 11\r\n"));
    assert_eq!(large.status, 413);
    assert_eq!(large.field("access-control-allow-origin"), Some("http://o"));
    assert_eq!(large.field("x-asked"), Some("Some(\"POST\") Some(\"/a\")"));
    assert!(large.text().contains("413") && large.closes());
    let unknown = ask(request(&"M".repeat(65), "/", ""));
    assert_eq!((unknown.status, unknown.field("x-asked")), (501, Some("None None")));
    // A panic in it leaves the page as it always is.
    let long = ask(request("GET", "/", &format!("X: {}\r\n", "x".repeat(20_000))));
    assert_eq!((long.status, long.field("x-asked")), (431, None));
    assert_eq!(Client::connect(address).get("/").text(), "app");
}
