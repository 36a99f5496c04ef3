//! Uploads to handlers that keep what they receive: the large buffers that bytes come in are
//! charged, and where their memory is short, bytes come in small ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{BodyError, Request, Routes};

use crate::harness::client::request;
use crate::harness::{Server, Setup};

on_every_server!(
    large_buffers_are_charged_and_none_is_taken_when_memory_is_short,
    receive_buffers_are_given_back_after_uploads,
);

const BODY: usize = 3 << 20;
const LARGE: u64 = 256 << 10;
/// Why tests of them are left out over TLS.
const NO_LARGE: &str = "sealed bytes come in no large buffers: they are opened into others";

/// A handler that keeps all pieces of a body, as they came, until `count` bodies are there.
fn keeping(count: usize) -> Routes {
    let whole = Arc::new(AtomicUsize::new(0));
    let keep = move |mut request: Request| {
        let whole = Arc::clone(&whole);
        async move {
            let mut pieces: Vec<Bytes> = Vec::new();
            while let Some(piece) = request.body_mut().next().await {
                pieces.push(piece?);
            }
            whole.fetch_add(1, Ordering::SeqCst);
            while whole.load(Ordering::SeqCst) < count {
                sleep(Duration::from_millis(5)).await;
            }
            let length: usize = pieces.iter().map(Bytes::len).sum();
            let is_right = pieces.iter().flatten().all(|byte| *byte == b'u');
            Ok::<_, BodyError>(format!("{length} {is_right}"))
        }
    };
    Routes::new().post("/", keep)
}

/// Uploads so many bodies at once. Returns the most that receive buffers held meanwhile.
fn upload(server: &Server, count: usize) -> u64 {
    let (address, expected) = (server.address(), format!("{BODY} true"));
    thread::scope(|scope| {
        let uploads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = crate::harness::Client::connect(address);
                    client.send(request("POST", "/", &format!("Content-Length: {BODY}\r\n")));
                    client.send(vec![b'u'; BODY]);
                    client.read_answer().text()
                })
            })
            .collect();
        let mut most = 0;
        while uploads.iter().any(|upload| !upload.is_finished()) {
            most = most.max(server.stats().memory_receives);
            thread::sleep(Duration::from_millis(2));
        }
        for upload in uploads {
            assert_eq!(upload.join().expect("no panic"), expected);
        }
        most
    })
}

fn large_buffers_are_charged_and_none_is_taken_when_memory_is_short(setup: Setup) {
    const COUNT: usize = 6;
    if Setup::plain_only(NO_LARGE) || Setup::http1_only(NO_LARGE) {
        return;
    }
    // A sixteenth is for receive buffers: four large ones, less what the workers always have.
    let config =
        Config { max_memory: 16 << 20, limit_body_bytes: 1 << 30, ..setup.patient_config() };
    let server = Server::routes(config, keeping(COUNT));
    let fixed = server.stats().memory_receives;
    assert!(fixed > 0, "the workers' own buffers are charged");
    let most = upload(&server, COUNT);
    assert!(most >= fixed + LARGE, "{most} bytes were held, {fixed} of them always");
    // Two workers may find room for the same last buffer.
    assert!(most <= (1 << 20) + LARGE, "{most} bytes were held");
}

fn receive_buffers_are_given_back_after_uploads(setup: Setup) {
    const COUNT: usize = 6;
    if Setup::plain_only(NO_LARGE) || Setup::http1_only(NO_LARGE) {
        return;
    }
    let config =
        Config { max_memory: 1 << 30, limit_body_bytes: 1 << 30, ..setup.patient_config() };
    let server = Server::routes(config, keeping(COUNT));
    let fixed = server.stats().memory_receives;
    let most = upload(&server, COUNT);
    assert!(most >= fixed + 4 * LARGE, "{most} bytes were held, {fixed} of them always");
    // Each worker keeps four that are unused, and a ring offers four.
    server
        .wait_until("the others are freed", |stats| stats.memory_receives <= fixed + 2 * 8 * LARGE);
}
