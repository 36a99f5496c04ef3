//! The limit of a route's bodies holds for every action, also for those that read none.

use crate::harness::client::{post, post_chunked, request};
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    the_limit_of_a_route_is_for_every_action,
    the_limit_of_a_site_is_for_its_folder,
    a_body_in_chunks_is_refused_where_it_is_read,
);

const ACTIONS: &str = "
    limit-body-bytes = \"1000\"
    [[route]]
    path = \"/text\"
    answer = \"x\"
    methods = [\"GET\", \"POST\"]
    [[route]]
    path = \"/small/text\"
    answer = \"x\"
    methods = [\"GET\", \"POST\"]
    limit-body-bytes = \"10\"
    [[route]]
    path = \"/small/away\"
    redirect = \"/x\"
    limit-body-bytes = \"10\"
    [[route]]
    path = \"/small/files\"
    folder = \"root\"
    limit-body-bytes = \"10\"
    [[route]]
    path = \"/small/gated\"
    folder = \"root\"
    limit-body-bytes = \"10\"
    allow = [\"127.0.0.1\"]
    [[route]]
    path = \"/large/text\"
    answer = \"x\"
    methods = [\"GET\", \"POST\"]
    limit-body-bytes = \"10m\"
    [[route]]
    path = \"/large/files\"
    folder = \"root\"
    limit-body-bytes = \"10m\"
";

fn with_length(method: &str, target: &str, length: usize) -> String {
    request(method, target, &format!("Content-Length: {length}\r\n")) + &"x".repeat(length)
}

fn the_limit_of_a_route_is_for_every_action(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "x");
    let server = Server::built(setup.described(&folder, ACTIONS));
    for (method, target, status) in [
        ("POST", "/small/text", 200),
        ("GET", "/small/text", 200),
        ("POST", "/small/away", 308),
        ("GET", "/small/files/a.txt", 200),
        ("GET", "/small/files/none", 404),
        ("GET", "/small/gated/a.txt", 200),
    ] {
        for (length, wanted) in [(0, status), (10, status), (11, 413), (1_000, 413), (1_001, 413)] {
            let answer = server.ask(with_length(method, target, length));
            assert_eq!(answer.status, wanted, "{method} {target} {length}");
        }
    }
    for (length, wanted) in [(1_000, 200), (1_001, 413), (2_000_000, 413)] {
        assert_eq!(server.ask(with_length("POST", "/text", length)).status, wanted, "{length}");
    }
    for (method, target) in [("POST", "/large/text"), ("GET", "/large/files/a.txt")] {
        for length in [1_001, 300_000, 2_000_000] {
            let answer = server.ask(with_length(method, target, length));
            assert_eq!(answer.status, 200, "{method} {target} {length}");
        }
    }
    // A client that waits for 100 is told at once.
    let waits = "Content-Length: 11\r\nExpect: 100-continue\r\n";
    assert_eq!(server.ask(request("POST", "/small/text", waits)).status, 413);
}

fn the_limit_of_a_site_is_for_its_folder(setup: Setup) {
    let folder = Folder::new();
    folder.file("a.txt", "x");
    let text = "root = \"root\"\n[[site]]\nhosts = \"gust.example\"\nroot = \"root\"\n\
                limit-body-bytes = \"10\"\n";
    let server = Server::built(setup.described(&folder, text));
    let mut client = server.connect();
    for length in [0, 10, 10] {
        client.send(with_length("GET", "/a.txt", length));
        assert_eq!(client.read_answer().status, 200, "{length}: the connection goes on");
    }
    assert_eq!(server.ask(with_length("GET", "/a.txt", 11)).status, 413);
}

fn a_body_in_chunks_is_refused_where_it_is_read(setup: Setup) {
    if Setup::http1_only("the response comes before such a body") {
        return;
    }
    let folder = Folder::new();
    folder.file("a.txt", "x");
    let server = Server::built(setup.described(&folder, ACTIONS));
    let chunked = |target, length| {
        let posted = post_chunked(target, "text/plain", &vec![b'x'; length]);
        [b"GET", &posted["POST".len()..]].concat()
    };
    for (target, status) in
        [("/small/text", 200), ("/small/away", 308), ("/small/files/a.txt", 200)]
    {
        let mut client = server.connect();
        for (length, wanted) in [(10, status), (11, 413)] {
            client.send(chunked(target, length));
            assert_eq!(client.read_answer().status, wanted, "{target} {length}");
        }
        client.expect_end(target);
    }
    let mut client = server.connect();
    client.send(chunked("/large/text", 100_000));
    assert_eq!(client.read_answer().status, 200);
    client.send(post("/small/text", "next"));
    assert_eq!(client.read_answer().status, 200, "the connection goes on");
}
