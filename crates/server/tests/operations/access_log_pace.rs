//! The access log of responses that have a pace, or that it refuses.

use gustnado::config::Config;

use crate::access_log::Log;
use crate::harness::client::get;
use crate::harness::{Folder, Server, Setup};

on_every_server!(paced_answers_are_written_too, a_client_that_asks_too_often_is_written_too);

fn paced_answers_are_written_too(setup: Setup) {
    let (log, folder) = (Log::new(), Folder::new());
    folder.file("small", "0123456789");
    folder.file("large", vec![b'x'; 200_000]);
    let mut config = Config { root: Some(folder.root()), ..log.config(setup, "%(U)s %(s)s %(B)s") };
    config.pace.write_rate = 2_000_000;
    let server = Server::start(config);
    let mut client = server.connect();
    client.send([get("/small"), get("/large"), get("/small")].concat());
    for bytes in [10, 200_000, 10] {
        assert_eq!(client.read_answer().body.len(), bytes);
    }
    let mut lines = log.wait_for(3);
    // (By HTTP/2 the small ones are through first.)
    lines.sort();
    assert_eq!(lines, ["/large 200 200000", "/small 200 10", "/small 200 10"]);
}

fn a_client_that_asks_too_often_is_written_too(setup: Setup) {
    let log = Log::new();
    let mut config = log.config(setup, "%(U)s %(s)s");
    config.pace.requests_per_second = 1;
    config.pace.requests_burst = 1;
    let server = Server::start(config);
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/more").status, 429);
    assert_eq!(log.wait_for(2), ["/ 200", "/more 429"]);
}
