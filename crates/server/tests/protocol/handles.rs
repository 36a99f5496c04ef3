//! Connections used from outside their callbacks.

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use gustnado::protocol::{
    Engine, Port, Transport, TransportHandle, WriteError, WriteFlow, WriteLimits,
};

use crate::harness::client::End;
use crate::harness::{Client, Setup};
use crate::tape::{Tape, address, connect, echo, engine, taped};

/// A listener whose connections hand out their handles.
fn handing_out(engine: &Engine, tape: &Tape) -> (Port, mpsc::Receiver<TransportHandle>) {
    let (give, handles) = mpsc::channel();
    let tape = tape.clone();
    let factory = move |_| {
        let give = give.clone();
        taped(&tape, move |transport: &mut Transport, data: &[u8]| {
            if data.is_empty() {
                give.send(transport.handle()).expect("the test waits for it");
            } else {
                echo(transport, data);
            }
        })
    };
    (engine.listen_tcp("127.0.0.1:0", factory).expect("a port"), handles)
}

pub(crate) fn any_thread_may_write_through_a_handle(setup: Setup) {
    let engine = engine(setup);
    let (port, handles) = handing_out(&engine, &Tape::default());
    let mut client = connect(&port);
    let handle = handles.recv().expect("a handle");
    assert_eq!(handle.peer().to_string(), own_address(&client));
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let handle = handle.clone();
            scope.spawn(move || {
                for _ in 0..250 {
                    handle.write(&[b'a' + thread; 10]).expect("there is room");
                    thread::yield_now();
                }
            });
        }
    });
    let mut counts = [0; 4];
    for piece in client.take(10_000).expect("all that was written").chunks(10) {
        assert!(piece.iter().all(|byte| *byte == piece[0]), "a write in pieces: {piece:?}");
        counts[usize::from(piece[0] - b'a')] += 1;
    }
    assert_eq!(counts, [250; 4]);
}

fn own_address(client: &Client) -> String {
    let stream = client.second_handle().into_stream();
    stream.local_addr().expect("an address").to_string()
}

/// A connection whose peer reads nothing, with small limits, filled until it takes no more.
fn filled(port: &Port, handles: &mpsc::Receiver<TransportHandle>) -> (Client, TransportHandle) {
    let client = Client::connect_narrow(address(port));
    let handle = handles.recv().expect("a handle");
    let piece = [b'z'; 16 << 10];
    let mut tries = 0;
    while tries < 20 {
        match handle.write(&piece) {
            Ok(_) => tries = 0,
            // The kernel may take some more in a moment.
            Err(WriteError::Full { pending_bytes, limit_bytes }) => {
                assert!(pending_bytes + piece.len() > limit_bytes);
                tries += 1;
                thread::sleep(Duration::from_millis(2));
            }
            Err(other) => panic!("{other}"),
        }
    }
    (client, handle)
}

pub(crate) fn a_handle_takes_all_of_a_write_or_nothing(setup: Setup) {
    let engine = engine(setup);
    let (port, handles) = handing_out(&engine, &Tape::default());
    let (mut client, handle) = filled(&port, &handles);
    let limit_bytes = WriteLimits::default().max_bytes;
    assert!(matches!(handle.write(&vec![0; limit_bytes + 1]), Err(WriteError::Full { .. })));
    handle.lose_connection();
    assert_eq!(handle.write(b"x"), Err(WriteError::Closed));
    let received = client.read_to_end();
    assert_eq!(received.len() % (16 << 10), 0, "whole pieces, and all of those taken");
    assert!(received.len() >= limit_bytes - (16 << 10));
}

pub(crate) fn a_thread_and_a_task_can_wait_for_room(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (port, handles) = handing_out(&engine, &tape);
    let (mut client, handle) = filled(&port, &handles);
    assert_eq!(handle.wait_for_room(Duration::from_millis(20)), WriteFlow::Wait);
    let noted = tape.clone();
    let waiting = handle.clone();
    let task = thread::spawn(move || noted.note(format!("{:?}", run(waiting.room()))));
    let thread = thread::spawn(move || handle.wait_for_room(Duration::from_secs(9)));
    thread::sleep(Duration::from_millis(20));
    assert!(!tape.has("Go"));
    client.send("a while yet");
    // The last bytes are those that were sent back.
    while !client.read_some(1 << 16).expect("more").ends_with(b"a while yet") {}
    assert_eq!(thread.join().expect("no panic"), WriteFlow::Go);
    tape.wait_for("Go");
    task.join().expect("no panic");
}

/// Runs a future on this thread.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn bytes_leave_in_the_order_they_were_written(setup: Setup) {
    let engine = engine(setup);
    let alternate = |transport: &mut Transport, data: &[u8]| {
        if data.is_empty() {
            return;
        }
        let handle = transport.handle();
        for turn in 0..100_u8 {
            handle.write(&[turn]).expect("there is room");
            transport.write(&[turn]);
        }
        // Asked for last, so everything goes before it.
        handle.lose_connection();
        assert_eq!(handle.write(b"!"), Err(WriteError::Closed));
    };
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| taped(&Tape::default(), alternate))
        .expect("a port");
    let mut client = connect(&port);
    client.send("go");
    let expected: Vec<u8> = (0..100).flat_map(|turn| [turn; 2]).collect();
    assert_eq!(client.read_to_end(), expected);
}

pub(crate) fn a_handle_pauses_resumes_and_ends(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (port, handles) = handing_out(&engine, &tape);
    let mut client = connect(&port);
    let handle = handles.recv().expect("a handle");
    client.send("a");
    assert_eq!(client.take(1).expect("an echo"), b"a");
    handle.pause_reading();
    thread::sleep(Duration::from_millis(20));
    client.send("b");
    client.expect_silence(Duration::from_millis(50));
    handle.resume_reading();
    assert_eq!(client.take(1).expect("an echo"), b"b");
    handle.abort_connection();
    let (_, end) = client.read_until_ended();
    assert_eq!(end, End::Reset(0));
    tape.wait_for("lost: Aborted");
}

pub(crate) fn a_handle_outlives_its_connection(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let (port, handles) = handing_out(&engine, &tape);
    let client = connect(&port);
    let handle = handles.recv().expect("a handle");
    assert!(!handle.is_closed() && handle.is_same(&handle.clone()));
    drop(client);
    tape.wait_for("lost: Done");
    assert!(handle.is_closed());
    assert_eq!(handle.write(b"x"), Err(WriteError::Closed));
    assert_eq!(handle.wait_for_room(Duration::from_secs(9)), WriteFlow::Closed);
    handle.abort_connection();
    // The task's number may be another connection's now: which is none the worse for it.
    let mut next = connect(&port);
    let other = handles.recv().expect("a handle");
    assert!(!other.is_same(&handle));
    handle.resume_reading();
    next.send("still there");
    assert_eq!(next.take(11).expect("an echo"), b"still there");
}
