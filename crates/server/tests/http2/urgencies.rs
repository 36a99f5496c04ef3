//! Priorities (RFC 9218): what is more urgent comes first, what is incremental shares.

use gustnado_http::h2::frame::{kind, setting};

use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::{Folder, Server, Setup};
use crate::of_folder;

on_every_server!(
    an_urgent_answer_overtakes_others,
    incremental_answers_share_and_others_come_in_turn,
    short_answers_that_share_come_whole,
    an_update_changes_what_is_under_way,
    an_update_may_come_before_its_request,
);

/// A folder with a file of 300,000 bytes, and a client whose windows are closed.
fn of_large_files(setup: Setup) -> (Folder, Server, Http2Client) {
    let folder = Folder::new();
    folder.file("file.bin", noise(1, 300_000));
    folder.file("image.bin", noise(2, 30_000));
    let server = Server::start(of_folder(setup, &folder));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    client.gives_window = false;
    (folder, server, client)
}

fn asked(client: &mut Http2Client, priority: &str) -> u32 {
    client.request("GET", "/file.bin", &[("priority", priority)], true)
}

/// Fills the connection's window, so that what is asked for afterwards waits together.
fn blocked(client: &mut Http2Client, priority: &str) -> u32 {
    let id = asked(client, priority);
    client.wait_for(id, |answer| answer.body.len() == 65_535);
    id
}

fn an_urgent_answer_overtakes_others(setup: Setup) {
    let (_folder, _server, mut client) = of_large_files(setup);
    let first = blocked(&mut client, "u=7");
    let late = asked(&mut client, "u=6");
    let urgent = asked(&mut client, "u=0");
    let usual = asked(&mut client, "");
    client.ping();
    client.give(0, 2 << 20);
    client.answer(urgent);
    assert_eq!(client.so_far(usual).body.len(), 0, "the usual one comes behind it");
    client.answer(usual);
    assert_eq!(client.so_far(late).body.len(), 0);
    client.answer(late);
    assert_eq!(client.so_far(first).body.len(), 65_535);
    client.answer(first);
}

fn incremental_answers_share_and_others_come_in_turn(setup: Setup) {
    let (_folder, _server, mut client) = of_large_files(setup);
    let first = blocked(&mut client, "u=7");
    let whole = [asked(&mut client, "u=2"), asked(&mut client, "u=2")];
    let shared = [asked(&mut client, "u=3, i"), asked(&mut client, "u=3, i")];
    client.ping();
    client.give(0, 2 << 20);
    client.answer(whole[0]);
    assert_eq!(client.so_far(whole[1]).body.len(), 0, "one after the other");
    client.answer(whole[1]);
    client.answer(shared[0]);
    let other = client.so_far(shared[1]).body.len();
    assert!(other > 200_000, "it had its share: {other}");
    client.answer(shared[1]);
    client.answer(first);
}

/// An image of which one half is here is of no use, and its client would hold halves of all.
fn short_answers_that_share_come_whole(setup: Setup) {
    let (_folder, _server, mut client) = of_large_files(setup);
    let first = blocked(&mut client, "u=7");
    let image = [("priority", "u=3, i")];
    let images = [(); 3].map(|()| client.request("GET", "/image.bin", &image, true));
    client.ping();
    client.give(0, 2 << 20);
    for (place, id) in images.into_iter().enumerate() {
        assert_eq!(client.answer(id).body.len(), 30_000);
        let later: usize = images[place + 1..].iter().map(|id| client.so_far(*id).body.len()).sum();
        assert_eq!(later, 0, "none has begun behind {place}");
    }
    client.answer(first);
}

fn update(client: &mut Http2Client, id: u32, value: &str) {
    let payload = [&id.to_be_bytes()[..], value.as_bytes()].concat();
    client.send_frame(kind::PRIORITY_UPDATE, 0, 0, &payload);
}

fn an_update_changes_what_is_under_way(setup: Setup) {
    let (_folder, _server, mut client) = of_large_files(setup);
    let first = blocked(&mut client, "u=3");
    let other = asked(&mut client, "u=5");
    client.ping();
    update(&mut client, other, "u=0");
    client.give(0, 1 << 20);
    client.answer(other);
    assert_eq!(client.so_far(first).body.len(), 65_535);
    client.answer(first);
}

fn an_update_may_come_before_its_request(setup: Setup) {
    let (_folder, _server, mut client) = of_large_files(setup);
    let first = blocked(&mut client, "u=3");
    let other = client.next_stream();
    update(&mut client, other, "u=1");
    assert_eq!(asked(&mut client, "u=5"), other);
    client.ping();
    client.give(0, 1 << 20);
    client.answer(other);
    assert_eq!(client.so_far(first).body.len(), 65_535);
    client.answer(first);
}
