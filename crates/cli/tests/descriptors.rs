//! A server under a limit of descriptors does what its start line says: it takes so many clients,
//! serves files to all of them, and goes on to serve newcomers.

mod gustnado;

use gustnado::{PATIENCE, Server};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// More than the kernel takes for a client that does not read.
const LARGE: u64 = 64 << 20;
const FILE_BYTES: usize = 16 << 10;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let large = fs::File::create(folder.path().join("big.bin")).expect("a file");
    large.set_len(LARGE).expect("a sparse file");
    for at in 0..8 {
        fs::write(folder.path().join(format!("cold{at}")), vec![b'c'; FILE_BYTES]).expect("a file");
    }
    for at in 0..4 {
        let name = |kind: &str| folder.path().join(format!("{kind}{at}.bin"));
        fs::hard_link(folder.path().join("big.bin"), name("hard")).expect("a link");
        std::os::unix::fs::symlink("big.bin", name("soft")).expect("a link");
    }
    folder
}

/// The ways to name one file.
fn spellings() -> Vec<String> {
    let mut all: Vec<_> = ["/big.bin", "//big.bin", "/%62ig.bin", "/./big.bin", "/b%69g.bin"]
        .map(str::to_owned)
        .to_vec();
    all.extend((0..4).flat_map(|at| [format!("/hard{at}.bin"), format!("/soft{at}.bin")]));
    all
}

fn start(folder: &Path, io: &str) -> Server {
    let root = folder.to_str().expect("UTF-8");
    let args = [root, "--workers", "2", "--io", io, "--access-log="];
    Server::start_by(&mut gustnado::limited("-n 1024", &args))
}

fn request(client: &mut TcpStream, target: &str) {
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.write_all(text.as_bytes()).expect("the server takes it");
}

/// The first line of a response, and as much as comes with it.
fn first_line(client: &mut TcpStream) -> String {
    client.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let mut piece = [0; 512];
    let read = client.read(&mut piece).expect("a response");
    let text = String::from_utf8_lossy(&piece[..read]);
    text.lines().next().unwrap_or_default().to_owned()
}

/// A whole small response.
fn read_whole(client: &mut TcpStream) {
    client.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let (mut received, mut piece) = (Vec::new(), [0; 8 << 10]);
    while !received.ends_with(&[b'c'; FILE_BYTES]) {
        let read = client.read(&mut piece).expect("a response");
        assert!(read > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..read]);
    }
}

/// Newcomers are served, with files that nobody has fetched before.
fn assert_serves_newcomers(server: &Server) {
    for at in 0..8 {
        let begun = Instant::now();
        let mut client = server.connect();
        request(&mut client, &format!("/cold{at}"));
        assert_eq!(first_line(&mut client), "HTTP/1.1 200 OK", "cold file {at}");
        assert!(begun.elapsed() < Duration::from_secs(1), "waited {:?}", begun.elapsed());
    }
}

#[test]
fn slow_readers_of_one_file_under_many_names_leave_room_for_others() {
    let (folder, names) = (folder(), spellings());
    let server = start(folder.path(), "epoll");
    let mut readers: Vec<_> = (0..850).map(|_| server.connect()).collect();
    for (at, reader) in readers.iter_mut().enumerate() {
        request(reader, &names[at % names.len()]);
    }
    for (at, reader) in readers.iter_mut().enumerate() {
        assert_eq!(first_line(reader), "HTTP/1.1 200 OK", "reader {at}");
    }
    assert_serves_newcomers(&server);
}

#[test]
fn idle_clients_of_a_ring_that_fetched_files_leave_room_for_others() {
    let folder = folder();
    let server = start(folder.path(), "uring");
    if !server.seen.iter().any(|line| line.contains("io_uring")) {
        println!("skipped: io_uring cannot be used here");
        return;
    }
    let mut clients: Vec<_> = (0..1_300).map(|_| server.connect()).collect();
    for client in &mut clients {
        request(client, "/cold0");
        read_whole(client);
    }
    assert_serves_newcomers(&server);
}

#[test]
fn slow_readers_of_different_files_are_served_or_wait() {
    let folder = folder();
    for at in 0..850 {
        let file = fs::File::create(folder.path().join(format!("{at}.bin"))).expect("a file");
        file.set_len(LARGE).expect("a sparse file");
    }
    let server = start(folder.path(), "epoll");
    let mut readers = Vec::new();
    for at in 0..850 {
        let mut reader = server.connect();
        request(&mut reader, &format!("/{at}.bin"));
        readers.push(reader);
        if at < 400 {
            // One after the other: each takes two descriptors.
            assert_eq!(first_line(&mut readers[at]), "HTTP/1.1 200 OK", "reader {at}");
        }
    }
    // The others are served or wait, but for those that were accepted all at once.
    let mut refused = 0;
    for reader in &mut readers[400..] {
        reader.set_read_timeout(Some(Duration::from_millis(2))).expect("a time limit");
        let mut piece = [0; 12];
        refused += u32::from(reader.read(&mut piece).is_ok() && &piece == b"HTTP/1.1 503");
    }
    assert!(refused < 150, "{refused} of 450 are refused");
    drop(readers);
    assert_serves_newcomers(&server);
}
