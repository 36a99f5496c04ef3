//! Bodies as handlers read them: as text, with their progress, and cut off.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gustnado::config::Config;
use gustnado::task::yield_now;
use gustnado::{BodyError, IntoResponse, Request, Response, Routes, Status, blocking};

use crate::harness::client::{post_chunked, post_of, request};
use crate::harness::folder::noise;
use crate::harness::{Answer, Client, Server, Setup, wait_until};

on_every_server!(
    a_text_is_decoded_by_its_charset_in_each_kind,
    what_is_no_text_is_told,
    progress_is_told_to_the_last_byte,
    a_client_that_goes_while_its_body_is_read_drops_the_task,
    a_body_that_is_cut_off_is_told_to_the_task,
);

fn a_text_is_decoded_by_its_charset_in_each_kind(setup: Setup) {
    let read = |request: &Request| request.text().map(std::borrow::Cow::into_owned);
    let routes = Routes::new()
        .post("/inline", read)
        .post("/pool", blocking(move |request: Request| read(&request)))
        .post("/task", async |request: Request| request.into_body().text(100).await);
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/pool", "/task"] {
        for (kind, sent) in [
            ("text/plain", "\u{e4}\u{3042}".as_bytes()),
            ("text/plain; charset=Shift_JIS", b"\x83\xc0\x82\xa0"),
            ("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xa4\xe3\x81\x82"),
            ("application/json", b"\xff\xfe\xe4\0\x42\x30"),
        ] {
            let wanted = if kind.contains("JIS") { "\u{3b2}\u{3042}" } else { "\u{e4}\u{3042}" };
            for sent in [post_of(path, kind, sent), post_chunked(path, kind, sent)] {
                let answer = client.ask(sent);
                assert_eq!((answer.status, &*answer.text()), (200, wanted), "{path} {kind}");
            }
        }
    }
}

fn what_is_no_text_is_told(setup: Setup) {
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.text().map(std::borrow::Cow::into_owned))
        .post("/task", async |request: Request| request.into_body().text(100).await)
        .post("/unread", async |request: Request| match request.text() {
            Err(BodyError::Unread) => Status::CONFLICT,
            other => panic!("{other:?}"),
        });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/task"] {
        assert_eq!(client.ask(post_of(path, "text/plain", b"a\xffb")).status, 400, "{path}");
        let kind = "text/plain; charset=klingon";
        assert_eq!(client.ask(post_of(path, kind, b"x")).status, 415, "{path}");
    }
    assert_eq!(client.ask(post_of("/unread", "text/plain", b"x")).status, 409);
    assert_eq!(server.stats().connections_accepted, 1, "none of it ends the connection");
}

fn progress_is_told_to_the_last_byte(setup: Setup) {
    type Told = Arc<Mutex<Vec<(u64, Option<u64>)>>>;
    let told: Told = Arc::default();
    let noted = Arc::clone(&told);
    let routes = Routes::new().post("/", move |mut request: Request| {
        let noted = Arc::clone(&noted);
        async move {
            let body = request.body_mut();
            body.on_progress(move |received, total| {
                noted.lock().expect("nobody panics").push((received, total));
            });
            body.bytes(1 << 20).await.map(|bytes| bytes.len().to_string())
        }
    });
    let server = Server::routes(setup.config(), routes);
    let body = noise(8, 500_000);
    assert_eq!(server.ask(post_of("/", "a/b", &body)).text(), "500000");
    let steps = std::mem::take(&mut *told.lock().expect("nobody panics"));
    assert!(steps.len() > 1 && steps.is_sorted(), "{steps:?}");
    assert_eq!(steps.last(), Some(&(500_000, Some(500_000))));
    assert_eq!(server.ask(post_chunked("/", "a/b", b"0123456789")).text(), "10");
    let steps = std::mem::take(&mut *told.lock().expect("nobody panics"));
    assert_eq!(steps.last(), Some(&(10, None)));
}

/// Reads a body, and says how that ended: 0 not at all, 1 it was dropped, else an error.
fn watching(ended: &Arc<AtomicU64>) -> Routes {
    struct End(Arc<AtomicU64>);

    impl Drop for End {
        fn drop(&mut self) {
            _ = self.0.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    let ended = Arc::clone(ended);
    Routes::new().post("/", move |request: Request| {
        let end = End(Arc::clone(&ended));
        async move {
            yield_now().await;
            let outcome = request.into_body().bytes(usize::MAX).await;
            if let Err(error) = &outcome {
                end.0.store(if *error == BodyError::Gone { 2 } else { 3 }, Ordering::SeqCst);
            }
            outcome.map_or_else(IntoResponse::into_response, Response::bytes)
        }
    })
}

fn half_sent(server: &Server) -> Client {
    let mut client = server.connect();
    client.send(request("POST", "/", "Content-Length: 1000\r\n") + "the beginning");
    client
}

fn a_client_that_goes_while_its_body_is_read_drops_the_task(setup: Setup) {
    let ended = Arc::new(AtomicU64::new(0));
    let server = Server::routes(setup.config(), watching(&ended));
    let client = half_sent(&server);
    client.wait_until_read();
    client.reset();
    wait_until("the task is dropped", || ended.load(Ordering::SeqCst) == 1);
    server.wait_until_empty();
}

fn a_body_that_is_cut_off_is_told_to_the_task(setup: Setup) {
    let ended = Arc::new(AtomicU64::new(0));
    let config = Config { body_timeout: std::time::Duration::from_millis(100), ..setup.config() };
    let server = Server::routes(config, watching(&ended));
    let mut client = half_sent(&server);
    client.shut_write();
    if Setup::is_http2() {
        // It gets no response, as its stream is over.
        wait_until("the task is dropped", || ended.swap(0, Ordering::SeqCst) == 1);
    } else {
        let answer: Answer = client.read_answer();
        assert_eq!((answer.status, ended.swap(0, Ordering::SeqCst)), (400, 2));
    }
    let mut client = half_sent(&server);
    assert_eq!((client.read_answer().status, ended.load(Ordering::SeqCst)), (408, 3));
}
