//! Bodies of requests that are read outside of tasks.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use gustnado::{Body, Replier, Request, Server, reply_later};

use super::Run;
use crate::harness::client::{post, request};
use crate::harness::{Client, Setup};

/// Bodies that the loop reads, and whom it answers.
type Bodies = Arc<Mutex<Vec<(Body, Replier)>>>;

fn reading_elsewhere(bodies: &Bodies) -> Server {
    let bodies = Arc::clone(bodies);
    Server::new().post("/body", move |request: Request| {
        let (replier, reply) = reply_later();
        let body = request.into_body();
        bodies.lock().unwrap_or_else(PoisonError::into_inner).push((body, replier));
        reply
    })
}

/// Reads what is there of a body. Returns whether it has ended, and how.
fn read(body: &mut Body, bytes: &mut usize, calls: &Arc<AtomicUsize>) -> Option<bool> {
    loop {
        let called = Arc::clone(calls);
        match body.next_or_call(move || _ = called.fetch_add(1, Ordering::SeqCst)) {
            Poll::Ready(Some(Ok(piece))) => *bytes += piece.len(),
            Poll::Ready(Some(Err(_))) => return Some(false),
            Poll::Ready(None) => return Some(true),
            Poll::Pending => return None,
        }
    }
}

#[test]
fn a_body_is_read_by_calls_outside_of_tasks() {
    let bodies = Bodies::default();
    let run = Run::start(reading_elsewhere(&bodies));
    let address = run.address();
    let asking = thread::spawn(move || {
        let mut client = Client::connect(address);
        client.send(request("POST", "/body", "Content-Length: 500000\r\n"));
        for _ in 0..5 {
            client.send(vec![b'x'; 100_000]);
            thread::sleep(Duration::from_millis(5));
        }
        let first = client.read_answer().text();
        client.send(post("/body", "short"));
        (first, client.read_answer().text())
    });
    let calls = Arc::new(AtomicUsize::new(0));
    let (mut reading, mut bytes, mut heard) = (None, 0, 0);
    run.turn_until("both bodies are read", || {
        if reading.is_none() {
            reading = bodies.lock().unwrap_or_else(PoisonError::into_inner).pop();
            heard = calls.load(Ordering::SeqCst);
        } else if calls.load(Ordering::SeqCst) == heard {
            return asking.is_finished();
        }
        heard = calls.load(Ordering::SeqCst);
        if let Some((body, _)) = &mut reading
            && let Some(is_whole) = read(body, &mut bytes, &calls)
        {
            let (_, replier) = reading.take().expect("it is there");
            assert!(is_whole && replier.respond(std::mem::take(&mut bytes).to_string()));
        }
        asking.is_finished()
    });
    let answers = asking.join().expect("both have come");
    assert_eq!(answers, ("500000".to_owned(), "5".to_owned()));
    assert!(calls.load(Ordering::SeqCst) > 0);
}

#[test]
fn whoever_reads_a_body_is_called_when_its_client_goes() {
    if Setup::plain_only("the thread that turns the server cannot shake hands with it") {
        return;
    }
    let bodies = Bodies::default();
    let run = Run::start(reading_elsewhere(&bodies));
    let client = TcpStream::connect(run.address()).expect("it listens");
    let head = request("POST", "/body", "Content-Length: 500\r\n");
    (&client).write_all(head.as_bytes()).expect("it listens");
    let mut reading = None;
    run.turn_until("the request is here", || {
        reading = bodies.lock().unwrap_or_else(PoisonError::into_inner).pop();
        reading.is_some()
    });
    let (mut body, replier) = reading.expect("just seen");
    let calls = Arc::new(AtomicUsize::new(0));
    assert_eq!(read(&mut body, &mut 0, &calls), None);
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("it can");
    drop(client);
    run.turn_until("it is called", || calls.load(Ordering::SeqCst) == 1);
    assert_eq!(read(&mut body, &mut 0, &calls), Some(false));
    run.turn_until("the answer is nobody's", || replier.is_lost());
}
