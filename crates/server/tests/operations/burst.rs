//! After a burst of connections the process is as small as before.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;

use crate::harness::client::get;
use crate::harness::{Folder, Setup, process};

on_every_server!(alone: memory_comes_back_after_a_burst);

const CONNECTIONS: usize = 500;
/// The share of the growth that may stay, in hundredths. After so small a burst many pages are
/// still in use in part: up to half of it stayed in some runs, and all of it without the trim.
const LEFT_MAX_PERCENT: u64 = 70;
/// It looks every two seconds whether connections still go.
const BACK_WITHIN: Duration = Duration::from_secs(20);

fn memory_comes_back_after_a_burst(setup: Setup) {
    if Setup::plain_only("it counts memory, of which clients of TLS have much in the same process")
    {
        return;
    }
    let folder = Folder::new();
    folder.file("small.bin", vec![7; 4_000]);
    let server =
        crate::harness::Server::start(Config { workers: 1, ..setup.folder_config(&folder) });
    let burst = |count| {
        let request = get("/small.bin").repeat(60);
        let open = |_| {
            // Nothing is read, so that the responses wait in the server.
            let mut silent = TcpStream::connect(server.address()).expect("it listens");
            rustix::net::sockopt::set_socket_recv_buffer_size(&silent, 4_096).expect("a size");
            silent.write_all(request.as_bytes()).expect("sent");
            silent
        };
        (0..count).map(open).collect::<Vec<TcpStream>>()
    };
    drop(burst(4));
    server.wait_until_empty();
    let before = process::resident_bytes();
    let open = burst(CONNECTIONS);
    server.wait_until("all are open", |stats| stats.connections_open == CONNECTIONS as u64);
    thread::sleep(Duration::from_millis(500));
    let peak = process::resident_bytes();
    drop(open);
    server.wait_until_empty();
    let gone = Instant::now();
    let mut left = process::resident_bytes();
    let enough = before + peak.saturating_sub(before) * LEFT_MAX_PERCENT / 100;
    while left > enough && gone.elapsed() < BACK_WITHIN {
        thread::sleep(Duration::from_millis(100));
        left = process::resident_bytes();
    }
    let is_back = left <= enough;
    let (before, peak, left) = (before >> 10, peak >> 10, left >> 10);
    assert!(peak > before + 4_000, "{peak} KB of {before} KB: it was no burst");
    assert!(is_back, "{left} KB stay of {peak} KB, from {before} KB");
    assert_eq!(server.get("/small.bin").status, 200);
}
