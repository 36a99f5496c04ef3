//! Descriptors that a server has open.

use std::thread;
use std::time::Duration;

use crate::harness::{Folder, Setup, process, wait_until};
use crate::limits::connected_clients;

on_every_server!(alone: a_connection_that_was_sent_files_takes_no_descriptor_for_them_later);

fn a_connection_that_was_sent_files_takes_no_descriptor_for_them_later(setup: Setup) {
    const FILE: usize = 100_000;
    let folder = Folder::new();
    folder.file("file.bin", vec![7; FILE]);
    folder.file("index.html", "<p>here");
    let server = setup.files(&folder);
    let mut clients = connected_clients(&server, 30);
    // The file that is kept open is none of a connection's.
    assert_eq!(server.get("/file.bin").body.len(), FILE);
    server.wait_until("it has gone", |stats| stats.connections_open == 30);
    thread::sleep(Duration::from_millis(700));
    let before = process::open_descriptors();
    for _ in 0..3 {
        for client in &mut clients {
            assert_eq!(client.get("/file.bin").body.len(), FILE);
        }
    }
    wait_until("as many are open as before", || process::open_descriptors() <= before);
    for client in &mut clients {
        assert_eq!(client.get("/file.bin").body.len(), FILE);
    }
}
