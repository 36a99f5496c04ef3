//! Who is cut where memory is short: the client that holds more than its share, then the worst.
//! Never a newcomer.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Routes};

use crate::harness::client::{End, get, request};
use crate::harness::{Client, Server, Setup};

on_every_server!(
    one_client_holds_an_eighth_of_the_memory_for_bodies_while_there_are_others,
    readers_that_take_nothing_are_cut_where_memory_for_responses_is_short,
    the_client_with_most_unread_responses_is_cut_first,
    silent_heads_give_way_where_memory_for_heads_is_short,
    of_many_partial_heads_those_of_one_client_are_cut_first,
);

const MIB: usize = 1 << 20;
/// Bytes of each slow body that come with its head.
const FIRST: usize = 4_500;
/// The most that may come in one go, before anything can be said about it: under epoll one receive,
/// with `io_uring` 32 buffers.
const RECEIVED: usize = 128 << 10;
/// Ten times what it takes on a machine that does nothing else.
const SERVED_WITHIN: Duration = Duration::from_secs(1);
/// Of a response that is gathered in one buffer.
const RESPONSE: usize = 60_000;

fn upload(length: usize) -> String {
    request("POST", "/", &format!("Content-Length: {length}\r\n"))
}

fn one_client_holds_an_eighth_of_the_memory_for_bodies_while_there_are_others(setup: Setup) {
    const UPLOADS: usize = 30;
    let config = Config { limit_body_memory: 8 * MIB as u64, ..setup.patient_config() };
    let length = |request: &Request| request.bytes().len().to_string();
    let server = Server::routes(config, Routes::new().post("/", length));
    let open = |host: u8| {
        let mut client = Client::connect_from(host, server.address());
        client.send(upload(400_000) + &"s".repeat(FIRST));
        client
    };
    let others: Vec<_> = (2..10).map(open).collect();
    let mut many: Vec<_> = (0..UPLOADS).map(|_| open(1)).collect();
    // What a first receive brings is held at any rate.
    thread::sleep(Duration::from_millis(100));
    for client in &mut many {
        client.send_unless_closed("s".repeat(399_000 - FIRST));
    }
    let began = Instant::now();
    let mut most = 0;
    for host in (2..10).cycle() {
        if began.elapsed() > Duration::from_millis(1_500) {
            break;
        }
        most = most.max(server.stats().memory_bodies);
        let (mut client, start) = (Client::connect_from(host, server.address()), Instant::now());
        client.send(upload(300_000) + &"h".repeat(200_000));
        thread::sleep(Duration::from_millis(3));
        client.send("h".repeat(100_000));
        assert_eq!(client.read_answer().text(), "300000", "client {host}");
        assert!(start.elapsed() < SERVED_WITHIN, "client {host}: {:?}", start.elapsed());
    }
    let share = MIB + UPLOADS * (RECEIVED + FIRST);
    let limit = share + others.len() * FIRST + 300_000;
    assert!(most <= limit as u64, "{most} bytes are held, {limit} may be");
    assert!(most >= MIB as u64 / 2, "{most}: it has its share");
    drop((others, many));
    server.wait_until("all is released", |stats| stats.memory_bodies == 0);
}

/// Two mebibytes for heads, and as many for responses.
fn short_of_memory(setup: Setup) -> Config {
    Config { max_memory: 16 << 20, send_buffer_bytes: 4_096, ..setup.patient_config() }
}

fn large_responses(setup: Setup) -> Server {
    let routes = Routes::new().get("/", |_: &Request| "r".repeat(RESPONSE));
    Server::routes(short_of_memory(setup), routes)
}

/// A client that has asked for a response and does not read it.
fn silent_reader(host: u8, server: &Server) -> Client {
    silent_readers(host, 1, server).remove(0)
}

/// So many of them, that ask at once: while they connect, those who were first would be cut.
fn silent_readers(host: u8, count: usize, server: &Server) -> Vec<Client> {
    let connect = |_| Client::connect_narrow_from(host, server.address());
    let mut clients: Vec<_> = (0..count).map(connect).collect();
    for client in &mut clients {
        client.send(get("/"));
    }
    clients
}

fn readers_that_take_nothing_are_cut_where_memory_for_responses_is_short(setup: Setup) {
    const READERS: usize = 150;
    let server = large_responses(setup);
    let readers = silent_readers(1, READERS, &server);
    server.wait_until("they hold too much", |stats| stats.memory_sends > 3 * MIB as u64);
    // One that reads is served, however many others have to be cut for it.
    let mut slow = silent_reader(2, &server);
    assert_eq!(server.get("/").body.len(), RESPONSE);
    server.wait_until("enough were cut", |stats| stats.memory_sends <= 2 * MIB as u64);
    let cut = server.stats().sends_cut;
    assert!((60..READERS as u64).contains(&cut), "{cut} were cut");
    assert_eq!(slow.read_answer().body.len(), RESPONSE, "it came last");
    // A reset, so that the kernel holds nothing for them either.
    let reset = readers
        .into_iter()
        .filter_map(|mut reader| matches!(reader.try_answer(), Err(End::Reset(_))).then_some(()));
    assert_eq!(reset.count() as u64, cut);
    server.wait_until("all is released", |stats| stats.memory_sends == 0);
}

fn the_client_with_most_unread_responses_is_cut_first(setup: Setup) {
    let server = large_responses(setup);
    let mut many = silent_readers(1, 12, &server);
    server.wait_until("they are held", |stats| stats.memory_sends > 12 * RESPONSE as u64);
    // These are older than most of the others.
    let few: Vec<_> = (2..7).map(|host| silent_reader(host, &server)).collect();
    server.wait_until("so are these", |stats| stats.memory_sends > 17 * RESPONSE as u64);
    thread::sleep(Duration::from_millis(100));
    many.extend(silent_readers(1, 28, &server));
    server.wait_until("it is too much", |stats| stats.memory_sends > 2 * MIB as u64);
    server.wait_until("enough were cut", |stats| stats.memory_sends <= 2 * MIB as u64);
    assert!(server.stats().sends_cut >= 5);
    for mut client in few {
        assert_eq!(client.read_answer().body.len(), RESPONSE);
    }
}

/// A client that has sent so many bytes of a head.
fn partial_head(host: u8, bytes: usize, server: &Server) -> Client {
    partial_heads(host, 1, bytes, server).remove(0)
}

/// So many of them, that send at once.
fn partial_heads(host: u8, count: usize, bytes: usize, server: &Server) -> Vec<Client> {
    let connect = |_| Client::connect_from(host, server.address());
    let mut clients: Vec<_> = (0..count).map(connect).collect();
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(bytes));
    for client in &mut clients {
        client.send(&head);
    }
    clients
}

fn silent_heads_give_way_where_memory_for_heads_is_short(setup: Setup) {
    if Setup::http1_only("clients of these tests send heads of HTTP/2 whole") {
        return;
    }
    let mut paced = short_of_memory(setup);
    paced.pace.requests_per_second = 1_000_000;
    for config in [short_of_memory(setup), paced] {
        partial_heads_give_way(config);
    }
}

fn partial_heads_give_way(config: Config) {
    let server = Server::start(config);
    let partial = partial_heads(1, 300, 12_000, &server);
    server.wait_until("they hold too much", |stats| stats.memory_heads > 2 * MIB as u64);
    let mut newcomer = partial_head(2, 9_000, &server);
    server.wait_until("enough were cut", |stats| stats.memory_heads <= 2 * MIB as u64);
    newcomer.send("\r\n\r\n");
    assert_eq!(newcomer.read_answer().status, 200);
    let stats = server.stats();
    assert!((50..300).contains(&stats.heads_cut), "{} were cut", stats.heads_cut);
    let mut refused = 0;
    for mut client in partial {
        if client.has_bytes_within(Duration::from_millis(1)) {
            assert_eq!(client.read_answer().status, 503);
            refused += 1;
        }
    }
    assert!(refused >= 50, "{refused} were told so");
    server.wait_until("all is released", |stats| stats.memory_heads == 0);
}

fn of_many_partial_heads_those_of_one_client_are_cut_first(setup: Setup) {
    if Setup::http1_only("clients of these tests send heads of HTTP/2 whole") {
        return;
    }
    let server = Server::start(short_of_memory(setup));
    let mut many = partial_heads(1, 60, 12_000, &server);
    server.wait_until("they are held", |stats| stats.memory_heads > 700_000);
    let few: Vec<_> = (2..7).map(|host| partial_head(host, 14_000, &server)).collect();
    server.wait_until("so are these", |stats| stats.memory_heads > 770_000);
    thread::sleep(Duration::from_millis(100));
    many.extend(partial_heads(1, 140, 12_000, &server));
    server.wait_until("it is too much", |stats| stats.memory_heads > 2 * MIB as u64);
    server.wait_until("enough were cut", |stats| stats.memory_heads <= 2 * MIB as u64);
    for mut client in few {
        client.send("\r\n\r\n");
        assert_eq!(client.read_answer().status, 200);
    }
}
