//! Flow control (RFC 9113 §5.2): nothing is sent that the client has no room for, and a full window
//! holds up its own stream only.

use gustnado::config::Config;
use gustnado::{Request, Response, Routes, Server as Builder, Tunnel};
use gustnado_http::h2::frame::setting;

use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::{Folder, Server, Setup};
use crate::tunnels::open;
use crate::{in_clear, of_folder};

on_every_server!(
    a_full_window_stops_its_stream_only,
    a_full_connection_stops_content_and_no_heads,
    a_window_of_a_byte_is_enough,
    settings_change_the_windows_of_open_streams,
    a_stream_of_pieces_keeps_to_its_window,
    a_reload_changes_no_window_that_a_client_was_told,
);

fn a_full_window_stops_its_stream_only(setup: Setup) {
    let folder = Folder::new();
    let body = noise(1, 200_000);
    folder.file("large.bin", &body);
    folder.file("small.txt", "small");
    let server = Server::start(of_folder(setup, &folder));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 10_000)]);
    client.gives_window = false;
    let large = client.get("/large.bin");
    client.wait_for(large, |answer| answer.body.len() == 10_000);
    for _ in 0..20 {
        assert_eq!(client.ask("/small.txt").text(), "small");
    }
    assert_eq!(client.so_far(large).body.len(), 10_000, "not a byte more than it may");
    client.give(0, 1 << 20);
    client.give(large, 1 << 20);
    assert!(client.answer(large).body == body);
}

fn a_full_connection_stops_content_and_no_heads(setup: Setup) {
    let folder = Folder::new();
    let body = noise(2, 200_000);
    folder.file("large.bin", &body);
    let server = Server::start(of_folder(setup, &folder));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    client.gives_window = false;
    let large = client.get("/large.bin");
    client.wait_for(large, |answer| answer.body.len() == 65_535);
    let head = client.request("HEAD", "/large.bin", &[], true);
    assert_eq!(client.answer(head).status, 200, "a head needs no window");
    let other = client.get("/large.bin");
    client.wait_for(other, |answer| answer.status == 200);
    assert_eq!(client.so_far(other).body.len(), 0);
    client.give(0, 1 << 20);
    for id in [large, other] {
        assert!(client.answer(id).body == body);
    }
}

fn a_window_of_a_byte_is_enough(setup: Setup) {
    let server = Server::routes(in_clear(setup), Routes::new().get("/", |_: &Request| "hello"));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.gives_window = false;
    let id = client.get("/");
    for count in 0..5 {
        client.ping();
        client.ping();
        assert_eq!(client.so_far(id).body.len(), count);
        client.give(id, 1);
    }
    assert_eq!(client.answer(id).text(), "hello");
}

fn settings_change_the_windows_of_open_streams(setup: Setup) {
    let folder = Folder::new();
    let body = noise(3, 50_000);
    folder.file("file.bin", &body);
    let server = Server::start(of_folder(setup, &folder));
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 1_000)]);
    client.gives_window = false;
    let id = client.get("/file.bin");
    client.wait_for(id, |answer| answer.body.len() == 1_000);
    // Smaller: the window is below zero now (RFC 9113 §6.9.2).
    client.send_settings(&[(setting::INITIAL_WINDOW_SIZE, 500)]);
    client.give(id, 400);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 1_000);
    client.send_settings(&[(setting::INITIAL_WINDOW_SIZE, 60_000)]);
    assert!(client.answer(id).body == body);
}

fn a_stream_of_pieces_keeps_to_its_window(setup: Setup) {
    let routes = Routes::new().get("/", async |_: Request| {
        let (appender, response) = Response::append(2);
        let task = gustnado::task::spawn(async move {
            for number in 0..1_000_u32 {
                if appender.append(number.to_string().repeat(50)).await.is_err() {
                    return;
                }
            }
        });
        drop(task.expect("a slot"));
        response
    });
    let server = Server::routes(in_clear(setup), routes);
    let mut client =
        Http2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 7_000)]);
    client.gives_window = false;
    let id = client.get("/");
    client.wait_for(id, |answer| answer.body.len() == 7_000);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 7_000);
    client.give(0, 1 << 20);
    client.give(id, 1 << 20);
    let wanted: String = (0..1_000_u32).map(|number| number.to_string().repeat(50)).collect();
    assert!(client.answer(id).text() == wanted);
}

fn a_reload_changes_no_window_that_a_client_was_told(setup: Setup) {
    let counted = async |mut tunnel: Tunnel| {
        let mut count = 0;
        while let Ok(bytes) = tunnel.recv().await
            && !bytes.is_empty()
        {
            count += bytes.len();
        }
        tunnel.send(count.to_string()).await.expect("the client reads");
    };
    let task = async |request: Request| {
        let body = request.into_body().bytes(1 << 20).await?;
        Ok::<_, gustnado::BodyError>(body.len().to_string())
    };
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.bytes().len().to_string())
        .post("/task", task)
        .get("/tunnel", move |_: &Request| Response::upgrade("echo", counted));
    let of = |h2_window_bytes| {
        let config = Config { h2_window_bytes, ..in_clear(setup) };
        Builder::new().config(config).routes(routes.clone())
    };
    for (before, after) in [(64 << 10, 1 << 20), (1 << 20, 64 << 10)] {
        let server = Server::built(of(before));
        let mut client = Http2Client::connect(server.address());
        // The second time it has acknowledged the settings.
        (0..2).for_each(|_| client.ping());
        server.running().reload(of(after)).expect("it is valid");
        let body = noise(4, 600_000);
        for target in ["/inline", "/task"] {
            assert_eq!(client.post_within_windows(target, &body).text(), "600000", "{target}");
        }
        let tunnel = open(&mut client, "/tunnel");
        assert_eq!(client.upload(tunnel, &body).text(), "600000");
        let mut next = Http2Client::connect(server.address());
        next.ping();
        assert_eq!(next.setting(setting::INITIAL_WINDOW_SIZE), Some(after));
    }
}
