//! Idle connections give way: where all slots are taken, or descriptors have run out, the longest
//! idle ones are closed for those who wait. What is busy is never cut for that.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::{Acceptor, Config, Io};
use gustnado::task::sleep;
use gustnado::{Request, Routes};

use crate::harness::client::{End, get, post, request};
use crate::harness::{Client, Server, Setup};
use crate::limits::{connected_clients, leave_descriptors};

on_every_server!(
    a_newcomer_is_served_at_once_where_idle_clients_hold_all_slots,
    many_newcomers_are_served_soon,
    the_longest_idle_gives_way_first,
    who_was_active_a_moment_ago_is_left_alone,
    who_is_idle_is_left_alone_while_none_waits,
    who_never_asked_gives_way_too,
    a_dedicated_acceptor_makes_room_on_the_workers,
    what_is_under_way_is_never_cut,
    a_request_of_one_that_gives_way_is_answered_or_never_read,
    a_paced_connection_gives_way_too,
    the_client_with_most_connections_gives_way_first,
    behind_a_proxy_the_client_is_the_one_that_it_names,
    a_trusted_proxy_is_no_client,
);
on_every_server!(alone: without_descriptors_idle_connections_give_way);

/// Longer than a connection may be idle where others wait.
const IDLE: Duration = Duration::from_millis(1_100);
/// More than the kernel takes for a client that does not read.
const LARGE: usize = 8 << 20;
/// How long a newcomer may wait; it is about 20 ms on a machine that does nothing else.
const SOON: Duration = Duration::from_millis(500);

/// How long a newcomer waits for its first answer.
fn waits(server: &Server) -> (Client, Duration) {
    let start = Instant::now();
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    (client, start.elapsed())
}

/// Whether a client that was idle is still served.
fn is_open(client: &mut Client) -> bool {
    client.send_unless_closed(get("/"));
    client.try_answer().is_ok()
}

fn assert_soon(took: Duration) {
    assert!(took < SOON, "a newcomer waited for {took:?}");
}

fn a_newcomer_is_served_at_once_where_idle_clients_hold_all_slots(setup: Setup) {
    let server = Server::start(Config { connections_max: 16, ..setup.patient_config() });
    let mut idle = connected_clients(&server, 16);
    thread::sleep(IDLE);
    let (mut newcomer, took) = waits(&server);
    assert_soon(took);
    let evicted = server.stats().evicted;
    assert!((1..=4).contains(&evicted), "{evicted} were closed for one");
    assert_eq!(newcomer.get("/").status, 200);
    // Those who were not chosen stay. (In this order: the longest idle first.)
    let open = idle.iter_mut().skip(8).filter_map(|it| is_open(it).then_some(())).count();
    assert_eq!(open, 8);
}

fn many_newcomers_are_served_soon(setup: Setup) {
    let server = Server::start(Config { connections_max: 120, ..setup.patient_config() });
    let _idle = connected_clients(&server, 120);
    thread::sleep(IDLE);
    let start = Instant::now();
    let mut newcomers: Vec<_> = (0..60).map(|_| server.connect_early()).collect();
    for client in &mut newcomers {
        client.send(get("/"));
    }
    for client in &mut newcomers {
        assert_eq!(client.read_answer().status, 200);
    }
    assert!(start.elapsed() < 2 * SOON, "60 newcomers waited for {:?}", start.elapsed());
}

fn the_longest_idle_gives_way_first(setup: Setup) {
    let server = Server::start(Config { connections_max: 6, workers: 1, ..setup.patient_config() });
    let mut idle = connected_clients(&server, 6);
    for at in [3, 0, 5, 1, 4] {
        thread::sleep(Duration::from_millis(40));
        assert_eq!(idle[at].get("/").status, 200);
    }
    thread::sleep(IDLE);
    let (_newcomer, took) = waits(&server);
    assert_soon(took);
    server.wait_until("the first is closed", |stats| stats.evicted >= 1);
    idle[2].expect_end("the longest idle");
    let open: Vec<_> = [0, 5, 1, 4].map(|at| is_open(&mut idle[at])).to_vec();
    assert_eq!(open, [true; 4]);
}

fn who_was_active_a_moment_ago_is_left_alone(setup: Setup) {
    let server = Server::start(Config { connections_max: 4, ..setup.patient_config() });
    let mut clients = connected_clients(&server, 4);
    thread::sleep(IDLE);
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    let mut newcomer = server.connect_early();
    newcomer.send(get("/"));
    newcomer.expect_silence(Duration::from_millis(300));
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(server.stats().evicted, 0);
    // In time they are idle for long enough.
    assert_eq!(newcomer.read_answer().status, 200);
}

fn who_is_idle_is_left_alone_while_none_waits(setup: Setup) {
    let server = Server::start(Config { connections_max: 4, ..setup.patient_config() });
    let mut clients = connected_clients(&server, 4);
    thread::sleep(IDLE);
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(server.stats().evicted, 0);
}

fn who_never_asked_gives_way_too(setup: Setup) {
    let server = Server::start(Config { connections_max: 4, ..setup.patient_config() });
    let mut silent: Vec<_> = (0..4).map(|_| server.connect()).collect();
    server.wait_until("they are accepted", |stats| stats.connections_open == 4);
    thread::sleep(IDLE);
    assert_soon(waits(&server).1);
    let closed = silent.iter_mut().filter_map(|client| (!is_open(client)).then_some(())).count();
    assert!((1..=2).contains(&closed), "{closed} were closed");
}

fn a_dedicated_acceptor_makes_room_on_the_workers(setup: Setup) {
    let acceptor = Acceptor::Dedicated;
    let config = Config { connections_max: 6, acceptor, ..setup.patient_config() };
    let server = Server::start(config);
    let _idle = connected_clients(&server, 6);
    thread::sleep(IDLE);
    assert_soon(waits(&server).1);
}

fn what_is_under_way_is_never_cut(setup: Setup) {
    let wait = async |_: Request| {
        sleep(Duration::from_millis(2_500)).await;
        "waited"
    };
    let routes = Routes::new()
        .get("/wait", wait)
        .get("/large", |_: &Request| vec![b'l'; LARGE])
        .post("/echo", |_: &Request| "done");
    let server = Server::routes(Config { connections_max: 4, ..setup.patient_config() }, routes);
    let mut in_head = server.connect();
    in_head.send("GET / HT");
    let mut in_body = server.connect();
    in_body.send(&post("/echo", "0123456789")[..post("/echo", "0123456789").len() - 5]);
    let mut in_handler = server.connect();
    in_handler.send(get("/wait"));
    let mut in_answer = Client::connect_narrow(server.address());
    in_answer.send(get("/large"));
    server.wait_until("they are accepted", |stats| stats.connections_open == 4);
    thread::sleep(IDLE);
    let mut newcomer = server.connect_early();
    newcomer.send(get("/wait"));
    newcomer.expect_silence(Duration::from_millis(300));
    assert_eq!(server.stats().evicted, 0);
    in_body.send("56789");
    assert_eq!(in_body.read_answer().text(), "done");
    in_head.send("TP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(in_head.read_answer().status, 404);
    assert_eq!(in_handler.read_answer().text(), "waited");
    assert_eq!(in_answer.read_answer().body.len(), LARGE);
    assert_eq!(newcomer.read_answer().text(), "waited");
}

fn a_request_of_one_that_gives_way_is_answered_or_never_read(setup: Setup) {
    let server = Server::start(Config { connections_max: 8, ..setup.patient_config() });
    let mut answered = 0;
    for turn in 0..3 {
        let mut idle = connected_clients(&server, 8);
        thread::sleep(IDLE);
        let newcomers: Vec<_> = (0..8).map(|_| server.connect_early()).collect();
        thread::sleep(Duration::from_millis(4 * turn));
        for client in &mut idle {
            client.send_unless_closed(request("GET", "/", "Connection: close\r\n"));
        }
        for mut client in idle {
            match client.read_until_ended() {
                (bytes, End::Closed(_)) if bytes.starts_with(b"HTTP/1.1 200") => answered += 1,
                (bytes, end) => assert_eq!((bytes.len(), end.received()), (0, 0)),
            }
        }
        drop(newcomers);
        server.wait_until_empty();
    }
    assert!(answered > 0, "not one request was answered that came in time");
}

fn a_paced_connection_gives_way_too(setup: Setup) {
    let mut config = Config { connections_max: 4, ..setup.patient_config() };
    config.pace.read_rate = 1 << 20;
    let server = Server::start(config);
    let _idle = connected_clients(&server, 4);
    thread::sleep(IDLE);
    assert_soon(waits(&server).1);
}

/// So many connections of each client, each served once, of one client after the other.
fn connections_of(server: &Server, clients: &[(u8, usize)]) -> Vec<(u8, Client)> {
    let hosts = clients.iter().flat_map(|(host, count)| vec![*host; *count]);
    let mut open: Vec<_> =
        hosts.map(|host| (host, Client::connect_from(host, server.address()))).collect();
    for (_, client) in &mut open {
        assert_eq!(client.get("/").status, 200);
    }
    open
}

/// The hosts whose connections are still open, in order.
fn hosts_left(open: &mut [(u8, Client)]) -> Vec<u8> {
    open.iter_mut().filter_map(|(host, client)| is_open(client).then_some(*host)).collect()
}

fn the_client_with_most_connections_gives_way_first(setup: Setup) {
    let server = Server::start(Config { connections_max: 200, ..setup.patient_config() });
    // The ten are the longest idle.
    let ten: Vec<_> = (2..12).map(|host| (host, 1)).collect();
    let mut others = connections_of(&server, &ten);
    thread::sleep(Duration::from_millis(50));
    let mut many = connections_of(&server, &[(1, 190)]);
    thread::sleep(IDLE);
    for _ in 0..15 {
        let start = Instant::now();
        let mut newcomer = Client::connect_from(99, server.address());
        assert_eq!(newcomer.get("/").status, 200);
        assert_soon(start.elapsed());
        others.push((99, newcomer));
        // Where many come at once, more are closed than have to be.
        thread::sleep(Duration::from_millis(100));
    }
    let left = hosts_left(&mut others);
    assert_eq!(left[..10], (2..12).collect::<Vec<_>>(), "{left:?}");
    assert_eq!(left.len(), 25, "those served a moment ago stay");
    let left = hosts_left(&mut many).len() as u64;
    assert!(left <= 175, "{left} are left");
    server.wait_until("no other was closed", |stats| stats.evicted + left == 190);
}

/// A connection with a PROXY header that names the client 192.0.2.`host`.
fn through_proxy(server: &Server, host: u8) -> Client {
    let mut client = server.connect();
    client.send(format!("PROXY TCP4 192.0.2.{host} 192.0.2.99 999 80\r\n{}", get("/")));
    assert_eq!(client.read_answer().status, 200);
    client
}

fn behind_a_proxy_the_client_is_the_one_that_it_names(setup: Setup) {
    if Setup::plain_only("the header comes before the handshake") {
        return;
    }
    let mut config = Config { connections_max: 20, workers: 1, ..setup.patient_config() };
    config.proxy_protocol = true;
    config.proxy_allow_from = vec!["127.0.0.1".to_owned()];
    let server = Server::start(config);
    let mut named: Vec<_> = (2..6).map(|host| (host, through_proxy(&server, host))).collect();
    let mut many: Vec<_> = (0..16).map(|_| (1, through_proxy(&server, 1))).collect();
    thread::sleep(IDLE);
    let newcomers: Vec<_> = (0..4).map(|_| through_proxy(&server, 99)).collect();
    assert_eq!(hosts_left(&mut named), [2, 3, 4, 5]);
    let left = hosts_left(&mut many).len() as u64;
    server.wait_until("no other was closed", |stats| stats.evicted + left == 16);
    drop(newcomers);
}

fn a_trusted_proxy_is_no_client(setup: Setup) {
    let mut config = Config { connections_max: 20, workers: 1, ..setup.patient_config() };
    config.forwarded_allow_ips = vec!["127.0.0.1".to_owned()];
    let server = Server::start(config);
    let mut few = connections_of(&server, &[(2, 4)]);
    // The proxy has most, and is idle for less long.
    thread::sleep(Duration::from_millis(50));
    let mut proxied = connections_of(&server, &[(1, 16)]);
    thread::sleep(IDLE);
    let _newcomer = Client::connect_from(99, server.address()).get("/");
    assert!(hosts_left(&mut few).len() < 4, "it has more than one");
    assert_eq!(hosts_left(&mut proxied).len(), 16, "each of these counts for itself");
}

fn without_descriptors_idle_connections_give_way(setup: Setup) {
    let server = Server::start(setup.patient_config());
    // Fewer newcomers than idle ones: those served meanwhile have not been idle for a second.
    let sockets: Vec<_> = (0..28).map(|_| Client::socket()).collect();
    leave_descriptors(15);
    let join = |socket| {
        rustix::net::connect(&socket, &server.address()).expect("the backlog has room");
        Client::early_over(TcpStream::from(socket))
    };
    let mut sockets = sockets.into_iter();
    // Those who find no descriptor wait.
    let mut clients: Vec<_> = sockets.by_ref().take(20).map(join).collect();
    for client in &mut clients {
        client.send(get("/"));
    }
    if setup.io == Io::Epoll {
        server.wait_until("descriptors have run out", |stats| stats.accept_exhausted > 0);
    }
    thread::sleep(IDLE);
    for (turn, socket) in sockets.enumerate() {
        let start = Instant::now();
        let mut newcomer = join(socket);
        assert_eq!(newcomer.get("/").status, 200);
        let took = start.elapsed();
        assert!(took < SOON, "newcomer {turn} waited for {took:?}");
        clients.push(newcomer);
    }
}
