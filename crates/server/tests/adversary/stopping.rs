//! A server that ends answers every connection that its kernel has completed, and refuses the rest
//! at once.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Endpoint, Request, Response, Routes};

use crate::harness::client::{End, get, request, wait_until_refused};
use crate::harness::link::Wire;
use crate::harness::{Client, Folder, PATIENCE, Server, Setup, wait_until};

on_every_server!(
    clients_that_come_again_and_again_are_answered_or_refused,
    the_same_over_a_unix_socket,
    what_waits_in_the_queue_of_a_held_worker_is_answered,
    a_client_that_was_held_back_for_its_bytes_is_answered,
    readiness_changes_first_and_answers_say_close,
    a_socket_that_others_hold_keeps_its_queue,
    a_socket_that_is_taken_over_is_served_to_the_end,
    a_listener_that_a_reload_closes_loses_nobody,
    a_listening_socket_belongs_to_a_worker_that_stays,
    without_time_to_accept_the_queue_is_served_all_the_same,
);

const LONG: Duration = Duration::from_secs(15);
/// The goal is that no `connect()` takes over 100 ms.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// What clients have met that come again and again, with a connection for each request.
#[derive(Default)]
struct Met {
    answered: AtomicU64,
    /// Connections that were made, and ended without a whole answer.
    lost: AtomicU64,
    connect_max_us: AtomicU64,
    /// Connections that took longer than [`CONNECT_MAX`] to make.
    late: AtomicU64,
}

/// One client: until it is refused, or `ends`.
fn come<S: Into<Wire>>(met: &Met, ends: &AtomicBool, connect: impl Fn() -> std::io::Result<S>) {
    while !ends.load(Ordering::SeqCst) {
        let began = Instant::now();
        let connected = connect();
        let took = u64::try_from(began.elapsed().as_micros()).expect("a test is short");
        met.connect_max_us.fetch_max(took, Ordering::Relaxed);
        met.late.fetch_add(u64::from(began.elapsed() > CONNECT_MAX), Ordering::Relaxed);
        let Ok(stream) = connected else { return };
        let mut client = Client::over(stream);
        client.send_unless_closed(request("GET", "/", "Connection: close\r\n"));
        let (answer, end) = client.read_until_ended();
        let is_whole = matches!(end, End::Closed(_)) && answer.starts_with(b"HTTP/1.1 200 ");
        let count = if is_whole { &met.answered } else { &met.lost };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends a few servers under clients that come again and again.
fn end_under_churn<S: Into<Wire>>(
    start: impl Fn() -> Server,
    connect: impl Fn(&Server) -> std::io::Result<S> + Sync,
) {
    const STOPS: u64 = 3;
    let met = Met::default();
    let discarded_before = syns_discarded();
    for _ in 0..STOPS {
        let server = start();
        let ends = AtomicBool::new(false);
        let before = met.answered.load(Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| come(&met, &ends, || connect(&server)));
            }
            wait_until("clients are served", || {
                met.answered.load(Ordering::Relaxed) >= before + 50
            });
            server.running().drain(LONG);
            ends.store(true, Ordering::SeqCst);
        });
    }
    let (lost, connect_max_us) = (met.lost.into_inner(), met.connect_max_us.into_inner());
    // The goal is one in twelve stops.
    assert!(lost * 12 <= STOPS * 10, "{lost} lost in {STOPS} stops");
    // A SYN that the kernel is just answering while the socket begins to refuse is discarded, and
    // comes again after 1 s: see `refuse_connections`. The kernel counts those.
    let (late, connect_max) = (met.late.into_inner(), Duration::from_micros(connect_max_us));
    let discarded = syns_discarded() - discarded_before;
    let is_one_again = late <= discarded.min(1) && connect_max < CONNECT_MAX * 5 / 2;
    assert!(
        late == 0 || is_one_again,
        "{late} of connect() took up to {connect_max:?}, and {discarded} SYN were discarded"
    );
}

/// How many packets this network namespace could not send for want of a route, as a SYN-ACK of a
/// socket that has just been bound to no interface.
fn syns_discarded() -> u64 {
    let table = std::fs::read_to_string("/proc/net/snmp").expect("Linux tells");
    let mut of_ip = table.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, numbers) = (of_ip.next().expect("names"), of_ip.next().expect("numbers"));
    let at = names.split(' ').position(|name| name == "OutNoRoutes").expect("a counter");
    numbers.split(' ').nth(at).and_then(|number| number.parse().ok()).expect("a number")
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, PATIENCE)
}

fn clients_that_come_again_and_again_are_answered_or_refused(setup: Setup) {
    end_under_churn(|| setup.default_site(), |server| connect(server.address()));
}

fn the_same_over_a_unix_socket(setup: Setup) {
    let folder = Folder::new();
    let path = folder.outside().join("gust.sock");
    let config = || Config { uds: Some(path.clone()), ..setup.config() };
    end_under_churn(|| Server::start(config()), |_| UnixStream::connect(&path));
}

/// Routes whose `/hold` holds its worker until the sender of `release` is used or dropped.
fn holding(release: mpsc::Receiver<()>) -> Routes {
    let release = std::sync::Mutex::new(release);
    let hold = move |_: &Request| {
        let release = release.lock().expect("nobody panics with it");
        let _ = release.recv_timeout(PATIENCE);
        Response::text("held")
    };
    Routes::new().get("/hold", hold).get("/", |_: &Request| Response::text("here"))
}

/// Ends a server of one worker while a handler holds that, and others stand in its queue.
fn end_while_held(config: Config) {
    let (release, held) = mpsc::channel();
    let server = Server::routes(Config { workers: 1, ..config }, holding(held));
    let mut holder = server.connect();
    holder.send(get("/hold"));
    holder.wait_until_read();
    let mut waiting: Vec<_> = (0..20).map(|_| server.connect_early()).collect();
    for client in &mut waiting {
        client.send(get("/"));
    }
    thread::scope(|scope| {
        let draining = scope.spawn(|| server.running().drain(LONG));
        wait_until("it ends", || !server.running().ready());
        release.send(()).expect("the handler waits");
        assert_eq!(holder.read_answer().status, 200);
        for (at, client) in waiting.iter_mut().enumerate() {
            let answer = client.try_answer();
            let answer =
                answer.unwrap_or_else(|end| panic!("client {at} was not answered: {end:?}"));
            assert_eq!(answer.status, 200);
            assert!(answer.closes(), "{answer:?}");
        }
        assert_eq!(draining.join().expect("the drain ends").cut, 0);
    });
}

fn what_waits_in_the_queue_of_a_held_worker_is_answered(setup: Setup) {
    end_while_held(setup.config());
}

fn without_time_to_accept_the_queue_is_served_all_the_same(setup: Setup) {
    end_while_held(Config { drain_accept: Duration::ZERO, ..setup.config() });
}

fn a_client_that_was_held_back_for_its_bytes_is_answered(setup: Setup) {
    // Its kernel takes it for connected; ours waits for its first bytes. They come once the server
    // has begun to end, which a busy machine may delay too long.
    let is_served = || {
        let server = Server::start(Config { defer_accept: true, ..setup.config() });
        let mut client = server.connect_early();
        thread::sleep(Duration::from_millis(20));
        thread::scope(|scope| {
            scope.spawn(|| server.running().drain(LONG));
            wait_until("it ends", || !server.running().ready());
            thread::sleep(Duration::from_millis(10));
            client.send_unless_closed(get("/"));
            client.try_answer().is_ok_and(|answer| answer.status == 200 && answer.closes())
        })
    };
    assert!((0..10).any(|_| is_served()), "nobody was answered who was held back");
}

fn readiness_changes_first_and_answers_say_close(setup: Setup) {
    // As above: there is a fraction of a second for a client to come in.
    let is_served = || {
        let server = setup.default_site();
        assert!(server.running().ready() && server.stats().ready);
        assert!(!server.ask(get("/")).closes());
        let mut drain = server.running().begin_drain(LONG);
        assert!(!server.running().ready() && !server.stats().ready, "it is welcoming yet");
        let answer = connect(server.address()).ok().map(Client::over).and_then(|mut client| {
            client.send_unless_closed(get("/"));
            client.try_answer().ok()
        });
        let began = Instant::now();
        while drain.step(server.running()).is_none() {
            assert!(began.elapsed() < LONG, "the drain does not end");
            thread::sleep(Duration::from_millis(1));
        }
        let Some(answer) = answer else { return false };
        assert!(answer.closes(), "{answer:?}");
        true
    };
    assert!((0..10).any(|_| is_served()), "nobody was accepted once the server was ending");
}

/// A listening socket that this test holds, and the server that is given its number.
fn of_number(setup: Setup, ours: &TcpListener) -> Server {
    let listen = vec![format!("fd:{}", ours.as_raw_fd())];
    Server::start(Config { listen, ..setup.config() })
}

fn listening() -> (TcpListener, SocketAddr) {
    let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listening.local_addr().expect("it is bound");
    (listening, address)
}

fn a_socket_that_others_hold_keeps_its_queue(setup: Setup) {
    let (ours, address) = listening();
    for turn in 0..3 {
        // The next one serves whom the last one left.
        let left = (turn > 0).then(|| connect(address).expect("it listens"));
        let server = of_number(setup, &ours);
        if let Some(left) = left {
            let mut left = Client::over(left);
            left.send(get("/"));
            assert_eq!(left.read_answer().status, 200, "whom the last server left");
        }
        let mut client = Client::connect(address);
        client.send(get("/"));
        assert_eq!(client.read_answer().status, 200);
        assert_eq!(server.running().drain(LONG).cut, 0);
    }
    let client = connect(address).expect("the queue is ours yet");
    ours.set_nonblocking(true).expect("a socket need not block");
    let began = Instant::now();
    let (accepted, peer) = loop {
        match ours.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && began.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(1));
            }
            accepted => break accepted.expect("it listens for us"),
        }
    };
    assert_eq!(peer, client.local_addr().expect("it is connected"));
    drop(accepted);
}

fn a_socket_that_is_taken_over_is_served_to_the_end(setup: Setup) {
    let (ours, address) = listening();
    let server = of_number(setup, &ours);
    assert!(server.running().take_socket_over(ours.as_raw_fd()));
    assert!(!server.running().take_socket_over(1_000_000), "there is none of that number");
    assert_eq!(Client::connect(address).get("/").status, 200);
    assert_eq!(server.running().drain(LONG).cut, 0);
    // Though it is open here yet.
    wait_until_refused(address);
}

fn a_listener_that_a_reload_closes_loses_nobody(setup: Setup) {
    let (release, held) = mpsc::channel();
    let routes = holding(held);
    let of = |listen: &[&str]| {
        let listen = listen.iter().map(|text| (*text).to_owned()).collect();
        gustnado::Server::new()
            .config(Config { workers: 1, listen, ..setup.config() })
            .routes(routes.clone())
    };
    let server = Server::built(of(&["127.0.0.1:0", "127.0.0.2:0"]));
    let addresses = || -> Vec<SocketAddr> {
        let text = |endpoint: &Endpoint| endpoint.to_string().parse().expect("TCP");
        server.running().listens_on().iter().map(text).collect()
    };
    let [stays, goes] = addresses()[..] else { panic!("two addresses") };
    let mut holder = Client::connect(stays);
    holder.send(get("/hold"));
    holder.wait_until_read();
    let mut waiting: Vec<_> = (0..10).map(|_| Client::connect_early(goes)).collect();
    for client in &mut waiting {
        client.send(get("/"));
    }
    server.running().reload(of(&["127.0.0.1:0"])).expect("a good configuration");
    release.send(()).expect("the handler waits");
    assert_eq!(holder.read_answer().status, 200);
    for client in &mut waiting {
        assert_eq!(client.read_answer().status, 200);
    }
    wait_until_refused(goes);
    assert_eq!(Client::connect(stays).get("/").status, 200);
}

/// How many sockets listen on a port of 127.0.0.1.
fn sockets_of(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux tells");
    let listening = format!(" 0100007F:{port:04X} 00000000:0000 0A ");
    table.lines().filter(|line| line.contains(&listening)).count()
}

fn a_listening_socket_belongs_to_a_worker_that_stays(setup: Setup) {
    // Closing one of a group would lose its queue; so nobody has one who may go before the end.
    let released = Arc::new(AtomicBool::new(false));
    let held = {
        let released = Arc::clone(&released);
        move |_: &Request| {
            let began = Instant::now();
            while !released.load(Ordering::SeqCst) && began.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(1));
            }
            Response::text("held")
        }
    };
    let shrink_period = Duration::from_millis(20);
    let config = Config { workers_max: 4, shrink_period, ..setup.config() };
    let server = Server::routes(config, Routes::new().get("/hold", held));
    let port = server.address().port();
    let sockets = sockets_of(port);
    assert!(sockets > 0, "none was found");
    // (The kernel may put several into the queue of one worker.)
    let mut holders = Vec::new();
    wait_until("workers come", || {
        if holders.len() < 20 {
            let address = server.address();
            holders.push(thread::spawn(move || Client::connect(address).get("/hold").status));
        }
        thread::sleep(Duration::from_millis(20));
        server.stats().workers_grown > 0
    });
    assert_eq!(sockets_of(port), sockets, "one that came has a socket of its own");
    released.store(true, Ordering::SeqCst);
    for holder in holders {
        assert_eq!(holder.join().expect("an answer"), 200);
    }
    server.wait_until("workers go", |stats| stats.workers_shrunk > 0);
    assert_eq!(sockets_of(port), sockets, "one that went has closed a socket");
}
