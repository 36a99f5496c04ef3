//! Where a request came from: asked by handlers of all kinds, matchers, chains and pages.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;

use gustnado::config::Config;
use gustnado::task::{spawn, yield_now};
use gustnado::{Endpoint, Flow, Middleware, Next, Request, Response, Routes, Status, blocking};

use crate::harness::client::get;
use crate::harness::{Client, Server, Setup};

on_every_server!(
    every_handler_can_ask_where_a_request_came_from,
    what_stands_around_handlers_can_ask_too,
    a_request_that_was_taken_elsewhere_knows_what_it_was_told,
    many_connections_have_a_peer_each,
    an_ipv6_client_has_its_address,
    a_unix_client_has_no_name,
    a_client_that_has_reset_the_connection_is_no_mystery_to_the_others,
);

fn told(request: &Request) -> String {
    let text = |end: Option<Endpoint>| end.map_or_else(|| "?".to_owned(), |end| end.to_string());
    format!("{} {}", text(request.peer()), text(request.local()))
}

fn routes() -> Routes {
    Routes::new()
        .any("/inline", told)
        .any("/task", async |request: Request| told(&request))
        .any("/late", async |request: Request| {
            yield_now().await;
            told(&request)
        })
        .any("/pool", blocking(|request: Request| told(&request)))
}

/// What a client on this connection should be told.
fn wanted(stream: &TcpStream) -> String {
    let (own, server) = (stream.local_addr(), stream.peer_addr());
    format!("{} {}", own.expect("it is connected"), server.expect("it is connected"))
}

/// A client, and what it should be told.
fn client_of(server: &Server) -> (Client, String) {
    let stream = TcpStream::connect(server.address()).expect("a connection");
    let wanted = wanted(&stream);
    (Client::over(stream), wanted)
}

fn every_handler_can_ask_where_a_request_came_from(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    let (mut client, wanted) = client_of(&server);
    for _ in 0..3 {
        for path in ["/inline", "/task", "/late", "/pool"] {
            assert_eq!(client.get(path).text(), wanted, "{path}");
            let length = "Content-Length: 3\r\n";
            let posted = crate::harness::client::request("POST", path, length) + "abc";
            assert_eq!(client.ask(posted).text(), wanted, "{path} with a body");
        }
        // Several in one turn.
        client.send(["/inline", "/late", "/pool", "/inline"].map(get).concat());
        for _ in 0..4 {
            assert_eq!(client.read_answer().text(), wanted);
        }
    }
}

fn what_stands_around_handlers_can_ask_too(setup: Setup) {
    let is_loopback = |request: &Request| request.peer_ip().is_some_and(|ip| ip.is_loopback());
    let routes = routes()
        .matching(
            move |request| request.raw_path() == "/matched" && is_loopback(request),
            |_: &Request| "matched",
        )
        .chain(move |request| {
            if is_loopback(request) {
                return Flow::Next;
            }
            Flow::Respond(Response::new(Status::FORBIDDEN))
        })
        .middleware(Middleware::around(async |request: Request, next: Next| {
            let peer = request.peer().map(|peer| peer.to_string()).unwrap_or_default();
            next.run(request).await.header("X-Around", peer)
        }))
        .middleware(Middleware::after(|request: &Request, response: &mut Response| {
            let peer = request.peer().map(|peer| peer.to_string()).unwrap_or_default();
            response.try_header("X-After", peer).expect("an address is a good value");
        }))
        .error_pages(|request: &Request, _| told(request));
    let server = Server::routes(setup.config(), routes);
    let (mut client, wanted) = client_of(&server);
    let own = wanted.split(' ').next().expect("it has two parts");
    assert_eq!(client.get("/matched").text(), "matched");
    for path in ["/inline", "/late", "/pool", "/none"] {
        let answer = client.get(path);
        assert_eq!(answer.text(), wanted, "{path}");
        assert_eq!(answer.expect_field("x-around"), own, "{path}");
        assert_eq!(answer.expect_field("x-after"), own, "{path}");
    }
}

async fn elsewhere(request: Request) -> String {
    let task = spawn(async move { told(&request) }).expect("there is room for a task");
    task.await.expect("it does not panic")
}

fn a_request_that_was_taken_elsewhere_knows_what_it_was_told(setup: Setup) {
    let routes =
        Routes::new().get("/unasked", elsewhere).get("/asked", async |request: Request| {
            let here = told(&request);
            format!("{here} {}", elsewhere(request).await)
        });
    let server = Server::routes(setup.config(), routes);
    let (mut client, wanted) = client_of(&server);
    // (By HTTP/2 a handler is a task of its own, and is told at once.)
    let unasked = if Setup::is_http2() { &wanted } else { "? ?" };
    assert_eq!(client.get("/unasked").text(), unasked, "nobody can know any more");
    assert_eq!(client.get("/asked").text(), format!("{wanted} {wanted}"));
}

fn many_connections_have_a_peer_each(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    let address = server.address();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let connect = || {
                    let stream = TcpStream::connect(address).expect("a connection");
                    let wanted = wanted(&stream);
                    (Client::over(stream), wanted)
                };
                let mut clients: Vec<_> = (0..40).map(|_| connect()).collect();
                for round in 0..6 {
                    let path = ["/inline", "/late", "/pool"][round % 3];
                    for (client, _) in &mut clients {
                        client.send(get(path));
                    }
                    for (client, wanted) in &mut clients {
                        assert_eq!(client.read_answer().text(), *wanted);
                    }
                    // Places are taken again by others.
                    for kept in clients.iter_mut().skip(round % 2).step_by(2) {
                        *kept = connect();
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every client was told its own address");
    }
}

fn an_ipv6_client_has_its_address(setup: Setup) {
    let routes =
        routes().get("/ip", |request: &Request| request.peer_ip().map(|ip: IpAddr| ip.to_string()));
    let config = Config { host: "::1".to_owned(), ..setup.config() };
    if TcpStream::connect("[::1]:1").is_err_and(|error| error.raw_os_error() == Some(99)) {
        println!("skipped: there is no IPv6 here");
        return;
    }
    let server = Server::routes(config, routes);
    let (mut client, wanted) = client_of(&server);
    assert_eq!(client.get("/task").text(), wanted);
    assert_eq!(client.get("/ip").text(), "::1");
}

fn a_unix_client_has_no_name(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let routes = routes().get("/ip", |request: &Request| request.peer_ip().is_none().to_string());
    let config = Config { uds: Some(path.clone()), ..setup.config() };
    let _server = Server::routes(config, routes);
    let mut client = Client::connect_unix(&path);
    assert_eq!(client.get("/inline").text(), format!("unix: unix:{}", path.display()));
    assert_eq!(client.get("/ip").text(), "true");
}

fn a_client_that_has_reset_the_connection_is_no_mystery_to_the_others(setup: Setup) {
    let server = Server::routes(setup.config(), routes());
    for _ in 0..20 {
        let (mut gone, _) = client_of(&server);
        gone.send(get("/pool"));
        gone.reset();
        let (mut client, wanted) = client_of(&server);
        assert_eq!(client.get("/inline").text(), wanted);
    }
    server.wait_until_empty();
    let address: SocketAddr = server.address();
    assert_eq!(address.ip().to_string(), "127.0.0.1");
}
