//! Three thousand requests gone wrong, and thousands of connections that come and go: nothing
//! crashes, nothing grows, nobody else notices.

use gustnado::config::Config;

use crate::harness::client::{get, request};
use crate::harness::folder::Dice;
use crate::harness::{Folder, Server, Setup, TransportKind, process, wait_until};

on_every_server!(alone:
    mutated_requests_never_crash_it_nor_grow_it,
    noise_never_crashes_it,
    connections_that_come_and_go_leave_nothing_behind,
);

const SECRET: &str = "the secret";
const GROWTH_BYTES_MAX: u64 = 6 << 20;

/// Requests that a good client sends, one or several at a time.
fn good_requests() -> Vec<Vec<u8>> {
    let chunked = "Transfer-Encoding: chunked\r\nTrailer: T\r\n";
    let chunks = "5;e=\"v\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
    let mut requests = vec![
        get("/"),
        get("/a.txt"),
        get("/sub/../a.txt?query=%20"),
        request("HEAD", "/a.txt", "Connection: close\r\n"),
        request("GET", "/big.bin", "Range: bytes=0-4,10-20,-5\r\n"),
        request("GET", "/a.txt", "If-None-Match: \"a\", W/\"b\"\r\nIf-Match: *\r\n"),
        request("GET", "/a.txt", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        request("POST", "/echo", "Content-Length: 5\r\n") + "hello",
        request("POST", "/echo", chunked) + chunks,
        request("POST", "/echo", "Expect: 100-continue\r\nContent-Length: 2\r\n") + "hi",
        request("OPTIONS", "*", "Accept: */*;q=0.1, text/html\r\nUser-Agent: x (y; z)\r\n"),
        get("http://gust.example:8080/a.txt"),
        "GET /%61.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
    ];
    requests.push(requests.concat());
    requests.into_iter().map(String::into_bytes).collect()
}

/// One to five small damages.
fn mutate(good: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=dice.below(5) {
        let at = dice.below(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        let end = (at + 1 + dice.below(12)).min(bytes.len());
        match dice.below(6) {
            _ if bytes.is_empty() => bytes.push(b'G'),
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.insert(at, dice.roll().to_le_bytes()[3]),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.extend_from_within(at..end),
            4 => {
                let piece = [&b"\r\n"[..], b"\0", b"\n", b" ", b":", b"%", b"\xff", b"9999999999"];
                let piece = piece[dice.below(8)];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => bytes.truncate(end),
        }
    }
    bytes
}

/// Sends bytes, ends, and reads whatever comes back.
fn throw(server: &Server, bytes: &[u8]) {
    let mut client = server.connect();
    client.send_unless_closed(bytes);
    client.shut_write_unless_closed();
    let (answer, _) = client.read_until_ended();
    let text = String::from_utf8_lossy(&answer);
    let shown = bytes.escape_ascii();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "{text} for {shown}");
    assert!(!text.contains(SECRET) && !text.contains("HTTP/1.1 500"), "{text} for {shown}");
}

/// A folder and the default site, both small.
fn targets(setup: Setup) -> (Folder, [Server; 2]) {
    let folder = Folder::new();
    std::fs::write(folder.outside().join("a.txt"), SECRET).expect("a secret");
    folder.file("index.html", "front");
    folder.file("a.txt", "inside");
    folder.file("big.bin", "x".repeat(30_000));
    let workers = 1;
    let folder_server = Server::start(Config { workers, ..setup.folder_config(&folder) });
    let default_site = Server::start(Config { workers, ..setup.config() });
    (folder, [folder_server, default_site])
}

/// Throws `count` inputs; after a while for warming up, memory must stay as it is.
fn bombard(setup: Setup, count: usize, mut input: impl FnMut() -> Vec<u8>) {
    let (_folder, servers) = targets(setup);
    let mut warm = 0;
    let count = TransportKind::chosen().of_connections(count);
    for turn in 0..count {
        throw(&servers[turn % 2], &input());
        if turn % 100 == 99 {
            for server in &servers {
                assert_eq!(server.get("/").status, 200, "after {turn} inputs");
            }
        }
        if turn == count / 4 {
            warm = process::resident_bytes();
        }
    }
    let grown = process::resident_bytes().saturating_sub(warm);
    assert!(grown < GROWTH_BYTES_MAX, "grown by {grown} bytes");
    for server in &servers {
        server.wait_until_empty();
        assert!(server.stats().bad_requests > 0, "none of them was bad");
    }
}

fn mutated_requests_never_crash_it_nor_grow_it(setup: Setup) {
    if Setup::http1_only("HTTP/2 has a grammar of its own, which is fuzzed") {
        return;
    }
    let good = good_requests();
    let mut dice = Dice::new(2_024);
    bombard(setup, 3_000, || {
        let which = dice.below(good.len());
        mutate(&good[which], &mut dice)
    });
}

fn noise_never_crashes_it(setup: Setup) {
    if Setup::http1_only("HTTP/2 has a grammar of its own, which is fuzzed") {
        return;
    }
    let mut dice = Dice::new(7);
    bombard(setup, 1_000, || {
        let count = dice.below(400);
        let head =
            [&b""[..], b"GET ", b"GET / HTTP/1.1\r\n", b"POST /echo HTTP/1.1\r\nHost: x\r\n"];
        let mut bytes = head[dice.below(4)].to_vec();
        bytes.extend((0..count).map(|_| dice.roll().to_le_bytes()[5]));
        bytes
    });
}

fn connections_that_come_and_go_leave_nothing_behind(setup: Setup) {
    let (_folder, servers) = targets(setup);
    let mut warm = (0, 0);
    let connections = TransportKind::chosen().of_connections(50);
    for round in 0..40 {
        for server in &servers {
            for turn in 0..connections {
                let mut client = server.connect();
                match turn % 5 {
                    0 => client.reset(),
                    1 => client.send("GET / HT"),
                    2 => {
                        client.send(get("/").repeat(3));
                        client.reset();
                    }
                    3 => drop(client.ask(request("GET", "/", "Connection: close\r\n"))),
                    _ => assert_eq!(client.get("/").status, 200),
                }
            }
            server.wait_until_empty();
        }
        if round == 9 {
            warm = (process::resident_bytes(), process::open_descriptors());
        }
    }
    let grown = process::resident_bytes().saturating_sub(warm.0);
    assert!(grown < GROWTH_BYTES_MAX, "grown by {grown} bytes");
    wait_until("descriptors are closed", || process::open_descriptors() <= warm.1);
}
