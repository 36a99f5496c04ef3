//! What the kernel holds for clients that read nothing, or slowly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;

use crate::harness::client::get;
use crate::harness::tcp_table::queues;
use crate::harness::{Folder, PATIENCE, Server, Setup};

on_every_server!(
    a_client_that_reads_nothing_holds_little_in_the_kernel,
    a_client_that_reads_slowly_holds_no_more_in_the_kernel,
    a_reader_gets_all_of_a_large_file_whatever_the_kernel_takes_at_once,
);

const LARGE: usize = 16 << 20;

fn a_client_that_reads_nothing_holds_little_in_the_kernel(setup: Setup) {
    if Setup::plain_only("it looks at sockets, whatever they carry") {
        return;
    }
    let folder = Folder::new();
    folder.file("large.bin", vec![7; LARGE]);
    let held = |notsent_lowat| {
        let server = Server::start(Config { notsent_lowat, ..setup.folder_config(&folder) });
        let mut silent = TcpStream::connect(server.address()).expect("it listens");
        silent.write_all(get("/large.bin").as_bytes()).expect("sent");
        let own = silent.local_addr().expect("it is connected");
        // It is stuck once nothing more is taken for a while.
        let (began, mut last, mut since) = (Instant::now(), 0, Instant::now());
        while began.elapsed() < PATIENCE && since.elapsed() < Duration::from_millis(300) {
            let now = queues(server.address(), own).unacknowledged;
            if now != last || now == 0 {
                (last, since) = (now, Instant::now());
            }
            thread::sleep(Duration::from_millis(10));
        }
        last
    };
    let bounded = held(Config::default().notsent_lowat);
    assert!((1..400_000).contains(&bounded), "{bounded} bytes");
    let unbounded = held(0);
    assert!(unbounded > 2 * bounded, "{unbounded} bytes without a bound, {bounded} with one");
}

fn a_client_that_reads_slowly_holds_no_more_in_the_kernel(setup: Setup) {
    if Setup::plain_only("it looks at sockets, whatever they carry") {
        return;
    }
    let folder = Folder::new();
    folder.file("large.bin", vec![7; LARGE]);
    let server = setup.files(&folder);
    let mut slow = TcpStream::connect(server.address()).expect("it listens");
    slow.write_all(get("/large.bin").as_bytes()).expect("sent");
    let own = slow.local_addr().expect("it is connected");
    let (began, mut piece, mut most) = (Instant::now(), vec![0; 20_000], 0);
    while began.elapsed() < Duration::from_secs(2) {
        slow.read_exact(&mut piece).expect("more comes");
        thread::sleep(Duration::from_millis(50));
        most = most.max(queues(server.address(), own).unacknowledged);
    }
    assert!((1..400_000).contains(&most), "{most} bytes");
}

fn a_reader_gets_all_of_a_large_file_whatever_the_kernel_takes_at_once(setup: Setup) {
    let folder = Folder::new();
    folder.file("large.bin", vec![7; LARGE]);
    for notsent_lowat in [4_096, 128 << 10] {
        let server = Server::start(Config { notsent_lowat, ..setup.folder_config(&folder) });
        let answer = server.get("/large.bin");
        assert_eq!((answer.status, answer.body.len()), (200, LARGE));
    }
}
