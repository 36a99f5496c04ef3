//! Many clients at once: each gets its own answers, whoever else comes and goes.

use std::thread;

use gustnado::config::Config;

use crate::harness::client::{get, request};
use crate::harness::folder::{Dice, noise};
use crate::harness::{Client, Folder, Server, Setup, TransportKind};

on_every_server!(
    fifty_clients_get_their_own_answers,
    bodies_of_many_clients_are_not_mixed_up,
    connections_are_handed_over_where_slots_are_few,
    hundreds_of_half_requests_at_once_are_all_kept,
    descriptors_that_change_hands_carry_nothing_over,
    the_end_of_one_connection_is_not_the_end_of_the_next,
);

const FILES: usize = 10;

/// Files of all ways of sending, each with a content of its own.
fn files() -> (Folder, Vec<Vec<u8>>) {
    let folder = Folder::new();
    let sizes = [0, 1, 13, 500, 4_000, 4_500, 9_000, 20_000, 70_000, 200_000];
    let contents: Vec<_> = (1..).zip(sizes).map(|(seed, size)| noise(seed, size)).collect();
    for (index, content) in contents.iter().enumerate() {
        folder.file(&index.to_string(), content);
    }
    (folder, contents)
}

fn fifty_clients_get_their_own_answers(setup: Setup) {
    let (folder, contents) = files();
    let server = setup.files(&folder);
    let turns = TransportKind::chosen().of_connections(200);
    let visitor = |seed: u64| {
        let mut dice = Dice::new(seed);
        let mut client = server.connect();
        for turn in 0..turns {
            let which = dice.below(FILES);
            let closes = dice.below(8) == 0;
            let line = if closes { "Connection: close\r\n" } else { "" };
            let answer = client.ask(request("GET", &format!("/{which}"), line));
            assert!(answer.body == contents[which], "client {seed}, request {turn}");
            if closes {
                client.expect_end("a closed connection");
                client = server.connect();
            }
        }
    };
    thread::scope(|scope| {
        for seed in 1..=50 {
            let visitor = &visitor;
            scope.spawn(move || visitor(seed));
        }
    });
    server.wait_until_empty();
    let due = 50 * turns as u64;
    assert_eq!(server.stats().requests, due);
    assert_eq!(server.stats().answers_2xx, due);
}

fn bodies_of_many_clients_are_not_mixed_up(setup: Setup) {
    let server = setup.default_site();
    thread::scope(|scope| {
        for seed in 1..=20 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for turn in 0..30 {
                    let body =
                        noise(seed * 1_000 + turn, 1 + 977 * usize::try_from(turn).expect("30"));
                    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
                    bytes.extend_from_slice(&body);
                    bytes.extend_from_slice(b"\r\n0\r\n\r\n");
                    client.send(request("POST", "/echo", "Transfer-Encoding: chunked\r\n"));
                    let answer = client.ask(bytes);
                    assert!(answer.body == body, "client {seed}, request {turn}");
                }
            });
        }
    });
    server.wait_until_empty();
}

fn connections_are_handed_over_where_slots_are_few(setup: Setup) {
    let (folder, contents) = files();
    let server = Server::start(Config { slots: 4, ..setup.folder_config(&folder) });
    thread::scope(|scope| {
        for visitor in 0..60 {
            let (server, contents) = (&server, &contents);
            scope.spawn(move || {
                for turn in 0..4 {
                    let which = (visitor + turn) % FILES;
                    let answer = server.ask(get(&format!("/{which}")));
                    assert!(answer.body == contents[which], "client {visitor}, visit {turn}");
                }
            });
        }
    });
    server.wait_until_empty();
    assert_eq!(server.stats().connections_accepted, 240, "each was accepted once");
}

fn hundreds_of_half_requests_at_once_are_all_kept(setup: Setup) {
    // More connections with something unfinished than a worker has buffers to receive into. Their
    // handshakes may take longer than a head.
    let server = Server::start(setup.patient_config());
    let long = request("GET", "/", &format!("X: {}\r\n", "y".repeat(3_000)));
    let mut clients: Vec<Client> = (0..700).map(|_| server.connect()).collect();
    for end in [2_900, 3_000] {
        let start = if end == 3_000 { 2_900 } else { 0 };
        for client in &mut clients {
            client.send(&long[start..end]);
        }
    }
    for client in clients.iter_mut().rev() {
        client.send(&long[3_000..]);
    }
    for client in &mut clients {
        assert_eq!(client.read_answer().status, 200);
    }
    drop(clients);
    server.wait_until_empty();
}

fn descriptors_that_change_hands_carry_nothing_over(setup: Setup) {
    // An event of a connection that is gone must not run, or end, the one that has its number now.
    let (folder, contents) = files();
    let server = setup.files(&folder);
    let visitor = |seed: u64| {
        let mut dice = Dice::new(seed);
        for turn in 0..TransportKind::chosen().of_connections(80) {
            let which = dice.below(FILES);
            let mut client = server.connect();
            client.send(get(&format!("/{which}")));
            match dice.below(4) {
                0 => client.reset(),
                1 => client.shut_write(),
                2 => drop(client),
                _ => {
                    let answer = client.read_answer();
                    assert!(answer.body == contents[which], "client {seed}, visit {turn}");
                    let answer = client.get("/2");
                    assert!(answer.body == contents[2], "client {seed}, visit {turn}");
                }
            }
        }
    };
    thread::scope(|scope| {
        for seed in 1..=20 {
            let visitor = &visitor;
            scope.spawn(move || visitor(seed));
        }
    });
    server.wait_until_empty();
    assert!(server.get("/9").body == contents[9]);
}

fn the_end_of_one_connection_is_not_the_end_of_the_next(setup: Setup) {
    // What the server still does to a connection that is over (saying its end, cancelling a
    // receive) must not reach the one that has its place by then.
    let server = setup.default_site();
    for turn in 0..TransportKind::chosen().of_connections(400) {
        let bad = if Setup::is_http2() { "GET / HTTP/1.1\r\n\r\n" } else { "BAD\r\n\r\n" };
        let last = if turn % 2 == 0 { bad } else { "GET /missing HTTP/1.0\r\nHost: h\r\n\r\n" };
        let refused = server.ask(last);
        assert!(refused.closes(), "{refused:?}");
        let mut next = server.connect();
        for _ in 0..2 {
            assert_eq!(next.get("/").status, 200, "after {turn} ends");
        }
    }
    server.wait_until_empty();
}
