//! What clients make the server hold: bodies are granted their memory, go to the disk, or are cut;
//! windows do not grow while memory is short; content that is not taken is bounded.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::{BodyPolicy, Config};
use gustnado::task::sleep;
use gustnado::{Request, Response, Routes, Server as Builder};
use gustnado_http::h2::frame::{flag, kind, setting};

use crate::harness::folder::noise;
use crate::harness::http2::heads::request_frame;
use crate::harness::http2::{Http2Client, frame_of};
use crate::harness::{Folder, PATIENCE, Server, Setup};
use crate::{in_clear, of_folder};

on_every_server!(
    a_thousand_streams_of_a_byte_a_second_are_charged,
    half_gathered_bodies_stay_within_their_memory,
    bodies_that_nobody_reads_stay_within_their_memory,
    without_memory_bodies_go_to_the_disk_and_come_back,
    bursts_of_uploads_go_to_the_disk,
    a_long_body_goes_to_the_disk,
    a_window_grows_to_an_eighth_of_the_memory_for_bodies,
    a_window_does_not_grow_while_memory_is_short,
    tiny_windows_with_large_files_hold_nothing,
    streams_of_pieces_that_nobody_takes_are_bounded,
    heads_that_have_no_end_are_cut,
);

const MIB: usize = 1 << 20;

fn routes() -> Routes {
    Routes::new()
        .post("/length", |request: &Request| request.bytes().len().to_string())
        .post("/inline", |request: &Request| Response::bytes(request.bytes().to_vec()))
        .post("/unread", async |_: Request| {
            sleep(PATIENCE).await;
            "late"
        })
        .post("/task", async |request: Request| Response::stream(request.into_body()))
        .get("/", |_: &Request| "here")
}

fn a_thousand_streams_of_a_byte_a_second_are_charged(setup: Setup) {
    let server = Server::routes(Config { h2_streams: 1_000, ..in_clear(setup) }, routes());
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let ids: Vec<_> = (0..1_000).map(|_| client.request("POST", "/length", &[], false)).collect();
    for id in &ids {
        client.send_data(*id, b"x", false);
    }
    client.ping();
    let stats = server.stats();
    // Eight streams, with their bodies, belong to each connection.
    assert!((990..=1_000).contains(&stats.memory_bodies), "{} of bodies", stats.memory_bodies);
    assert!(stats.memory_heads >= 990 * 1_024, "{} of heads", stats.memory_heads);
    let mut other = Http2Client::connect(server.address());
    let body = noise(1, 60_000);
    assert_eq!(other.post("/length", &body).text(), "60000");
    for id in &ids {
        client.send_data(*id, b"x", true);
        assert_eq!(client.answer(*id).text(), "2");
    }
    server.wait_until("nothing is held", |stats| stats.memory_bodies + stats.memory_heads == 0);
}

/// Opens streams with as much of a body as their windows allow.
fn uploads(server: &Server, target: &str, (host, count): (u8, usize), bytes: usize) -> Http2Client {
    let mut client = Http2Client::connect_from(host, server.address());
    client.ping();
    for _ in 0..count {
        let id = client.request("POST", target, &[], false);
        for piece in vec![b'u'; bytes].chunks(16_000) {
            while client.window(0) < 16_000 {
                client.next_frame().expect("it goes on");
            }
            client.send_data(id, piece, false);
        }
    }
    client
}

/// Holds up uploads of many connections, and returns the most that was held meanwhile.
fn most_held(server: &Server, target: &str) -> u64 {
    let mut clients: Vec<_> =
        (2..12).map(|host| uploads(server, target, (host, 20), 60_000)).collect();
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(1_500) {
        most = most.max(server.stats().memory_bodies);
        let mut newcomer = Http2Client::connect_from(99, server.address());
        let start = Instant::now();
        assert_eq!(newcomer.post("/length", &noise(1, 10_000)).text(), "10000");
        assert!(start.elapsed() < Duration::from_secs(1), "it took {:?}", start.elapsed());
    }
    for client in &mut clients {
        client.send_frame(kind::PING, 0, 0, b"are here");
    }
    most
}

fn half_gathered_bodies_stay_within_their_memory(setup: Setup) {
    let (limit_body_memory, body_policy) = (2 * MIB as u64, BodyPolicy::Memory);
    let config = Config { limit_body_memory, body_policy, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    let most = most_held(&server, "/length");
    // 10 connections send 12 MB; each may be ahead by 64 KiB and what comes in one go.
    assert!(most <= 2 * MIB as u64 + 10 * (64 + 64) * 1_024, "{most} bytes were held");
    assert!(most >= MIB as u64, "{most} bytes were held");
    assert!(server.stats().bodies_cut >= 20, "{} were cut", server.stats().bodies_cut);
}

fn bodies_that_nobody_reads_stay_within_their_memory(setup: Setup) {
    let config = Config { limit_body_memory: 2 * MIB as u64, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    let most = most_held(&server, "/unread");
    assert!(most <= 2 * MIB as u64 + 10 * (64 + 64) * 1_024, "{most} bytes were held");
    assert!(most >= MIB as u64, "{most} bytes were held");
}

fn without_memory_bodies_go_to_the_disk_and_come_back(setup: Setup) {
    let config = Config { limit_body_memory: MIB as u64, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    let mut clients: Vec<_> = (2..6)
        .map(|host| {
            let mut client = Http2Client::connect_from(host, server.address());
            client.ping();
            let ids: Vec<_> =
                (0..10).map(|_| client.request("POST", "/inline", &[], false)).collect();
            (client, ids)
        })
        .collect();
    let body = noise(4, 200_000);
    for (client, ids) in &mut clients {
        for id in &*ids {
            let mut left = &body[..];
            while !left.is_empty() {
                let room = usize::try_from(client.window(*id).min(client.window(0))).unwrap_or(0);
                let count = left.len().min(room).min(16_384);
                if count == 0 {
                    client.next_frame().expect("more room");
                    continue;
                }
                client.send_data(*id, &left[..count], false);
                left = &left[count..];
            }
        }
    }
    let stats = server.stats();
    assert!(stats.bodies_spooled > 10, "{} went to the disk", stats.bodies_spooled);
    for (client, ids) in &mut clients {
        for id in ids {
            client.send_data(*id, b"", true);
            let answer = client.answer(*id);
            assert_eq!((answer.status, answer.body == body), (200, true));
        }
    }
    let stats = server.stats();
    assert_eq!((stats.bodies_cut, stats.memory_bodies), (0, 0));
    server.wait_until("the disk is free", |stats| stats.spool_bytes == 0);
}

/// Sends requests with bodies, all in one go, and returns their streams.
fn burst(client: &mut Http2Client, target: &str, bodies: &[Vec<u8>]) -> Vec<u32> {
    let ids: Vec<_> = bodies.iter().map(|_| client.new_stream()).collect();
    let head = |id: &u32| request_frame(*id, "POST", target, &[], false);
    let mut sent: Vec<u8> = ids.iter().flat_map(head).collect();
    let pieces = |body: &[u8]| body.len().div_ceil(16_384);
    for at in 0..pieces(&bodies[0]) {
        for (id, body) in ids.iter().zip(bodies) {
            let piece = body.chunks(16_384).nth(at).expect("they are as long");
            let flags = if at + 1 == pieces(body) { flag::END_STREAM } else { 0 };
            sent.extend(frame_of(kind::DATA, flags, *id, piece));
        }
    }
    client.send(&sent);
    ids
}

/// Each burst is just within the window of its connection, and all of them are five times as much
/// as the memory.
fn bursts_of_uploads_go_to_the_disk(setup: Setup) {
    let config = Config { limit_body_memory: MIB as u64, ..in_clear(setup) };
    let whole = async |mut request: Request| request.body_mut().bytes(MIB).await;
    let server = Server::routes(config, routes().post("/whole", whole));
    let bodies: Vec<_> = (0..20).map(|number| noise(number, 50_000)).collect();
    for target in ["/inline", "/whole"] {
        for round in 0..3 {
            thread::scope(|scope| {
                for host in 2..7 {
                    let (server, bodies) = (&server, &bodies);
                    scope.spawn(move || {
                        let mut client = Http2Client::connect_from(host, server.address());
                        client.ping();
                        let ids = burst(&mut client, target, bodies);
                        for (id, body) in ids.into_iter().zip(bodies) {
                            let answer = client.answer(id);
                            let found = (answer.status, answer.reset, answer.body == *body);
                            assert_eq!(found, (200, None, true), "{target} {round} {id}");
                        }
                    });
                }
            });
        }
    }
    let stats = server.stats();
    assert!(stats.bodies_spooled > 10, "{} went to the disk", stats.bodies_spooled);
    assert_eq!(stats.bodies_cut, 0);
    server.wait_until("nothing is held", |stats| stats.memory_bodies + stats.spool_bytes == 0);
}

fn a_long_body_goes_to_the_disk(setup: Setup) {
    let server = Server::routes(Config { limit_body_bytes: 16 << 20, ..in_clear(setup) }, routes());
    let mut client = Http2Client::connect(server.address());
    let body = noise(3, 5 * MIB);
    let answer = client.post_within_windows("/inline", &body);
    assert_eq!((answer.status, answer.body == body), (200, true));
    assert_eq!(server.stats().bodies_spooled, 1);
}

/// Uploads in pieces to a handler that reads. Returns how many bytes more the client may have on
/// the way in the end than at first.
fn growth(client: &mut Http2Client) -> i64 {
    let id = client.request("POST", "/task", &[], false);
    let first = client.window(id);
    for _ in 0..40 {
        // The handler, which may come late on a busy machine, has to take the bytes first.
        while client.window(id) < 8_192 {
            client.next_frame().expect("more room");
        }
        client.send_data(id, &[b'g'; 8_192], false);
        client.ping();
    }
    client.send_data(id, b"", true);
    let answer = client.answer(id);
    let found = (answer.status, answer.reset, answer.body.len());
    assert_eq!(found, (200, None, 40 * 8_192));
    client.window(id) - first
}

fn a_window_grows_to_an_eighth_of_the_memory_for_bodies(setup: Setup) {
    let config = Config { limit_body_memory: MIB as u64, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let grown = growth(&mut client);
    assert!((1..=64 << 10).contains(&grown), "from 64 KiB by {grown}");
}

fn a_window_does_not_grow_while_memory_is_short(setup: Setup) {
    // What is taken out of a body that is dropped is the handler's own, and no longer charged.
    let whole = async |mut request: Request| {
        let body = request.body_mut().bytes(MIB).await.unwrap_or_default();
        sleep(PATIENCE).await;
        body
    };
    let of = |limit_body_memory| {
        let body_policy = BodyPolicy::Memory;
        let config = Config { limit_body_memory, body_policy, ..in_clear(setup) };
        Builder::new().config(config).routes(routes().post("/whole", whole))
    };
    let server = Server::built(of(4 << 20));
    let mut client = Http2Client::connect(server.address());
    client.ping();
    let grown = growth(&mut client);
    assert!(grown > 0, "it grows while it is used: {grown}");
    let mut holder = Http2Client::connect(server.address());
    holder.ping();
    for _ in 0..2 {
        let id = holder.request("POST", "/whole", &[], false);
        for piece in vec![b'h'; 1_000_000].chunks(10_000) {
            while holder.window(id).min(holder.window(0)) < 10_000 {
                holder.next_frame().expect("more room");
            }
            holder.send_data(id, piece, false);
        }
        holder.send_data(id, b"", true);
    }
    server.wait_until("it is held", |stats| stats.memory_bodies >= 2_000_000);
    server.running().reload(of(MIB as u64)).expect("it is valid");
    let grown = growth(&mut client);
    assert!(grown <= 0, "memory is short: {grown}");
}

fn tiny_windows_with_large_files_hold_nothing(setup: Setup) {
    let folder = Folder::new();
    folder.hollow("large.bin", 64 << 20);
    folder.file("small.txt", noise(1, 5_000));
    let server = Server::start(of_folder(setup, &folder));
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1)];
    let mut clients: Vec<_> = (0..10)
        .map(|_| {
            let mut client = Http2Client::connect_with(server.address(), &settings);
            client.gives_window = false;
            for number in 0..100 {
                client.get(if number % 2 == 0 { "/large.bin" } else { "/small.txt" });
            }
            client
        })
        .collect();
    clients.iter_mut().for_each(Http2Client::ping);
    let stats = server.stats();
    assert!(stats.memory_sends < 10 * 16_384, "{} bytes of sends", stats.memory_sends);
    assert_eq!(Http2Client::connect(server.address()).ask("/small.txt").body.len(), 5_000);
}

fn streams_of_pieces_that_nobody_takes_are_bounded(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        let (appender, response) = Response::append(1);
        let task = gustnado::task::spawn(async move {
            while appender.append(vec![b'p'; 8_000]).await.is_ok() {}
        });
        drop(task.expect("a slot"));
        response
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    for _ in 0..100 {
        client.get("/");
    }
    thread::sleep(Duration::from_millis(300));
    client.ping();
    let held = server.stats().memory_sends;
    // One piece for each stream, and 256 KiB for all of them.
    assert!((100 * 8_000..=100 * 8_000 + (300 << 10)).contains(&held), "{held} bytes");
    drop(client);
    server.wait_until("nothing is held", |stats| stats.memory_sends == 0);
}

fn heads_that_have_no_end_are_cut(setup: Setup) {
    let config = Config { max_memory: 16 << 20, ..in_clear(setup) };
    let server = Server::routes(config, routes());
    // 2 MiB are for heads.
    let mut clients: Vec<_> = (0..250)
        .map(|number| {
            let host = u8::try_from(2 + number % 100).expect("a host");
            let mut client = Http2Client::connect_from(host, server.address());
            let block = [b'x'; 15_000];
            let frame = gustnado_http::h2::frame::FrameHeader {
                len: 16_000,
                kind: kind::HEADERS,
                flags: 0,
                stream: 1,
            };
            client.try_send(&[&frame.bytes()[..], &block].concat());
            client
        })
        .collect();
    server.wait_until("some are cut", |stats| stats.heads_cut > 20);
    server.wait_until("the rest fits", |stats| stats.memory_heads <= 2 << 20);
    assert!(clients.len() == 250 && clients.pop().is_some());
    assert_eq!(Http2Client::connect_from(200, server.address()).ask("/").text(), "here");
}
