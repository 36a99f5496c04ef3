//! Loads by HTTP/2, against a peer that is made of the server's side of the codec: it does what a
//! test sets, also what no server should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_http::h2::{
    ErrorCode, H2Connection, H2Error, H2Event, H2Limits, H2Scratch, Step, StreamId, frame,
};
use gustnado_http::limits::Limits;
use gustnado_lab::outcome::Outcome;
use gustnado_lab::plan::{BackendChoice, HttpVersion, LoadModel, LoadPlan};

use crate::{counted, outcome_of, timed};

crate::through_both_doors!(
    responses_are_counted_on_every_stream,
    a_body_goes_out_within_the_windows,
    no_more_streams_are_open_than_the_server_allows,
    requests_that_were_not_looked_at_are_sent_again,
    the_last_requests_are_sent_again_too,
    requests_that_cannot_be_sent_again_fail,
    a_request_without_a_response_is_timed_out,
    what_is_wrong_with_responses_is_found,
    a_connection_for_each_request,
    idle_connections_are_held,
    a_large_response_is_read_whole,
);

/// The peer's reaction to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reaction {
    /// 200 with `hello`; after a body, with its length in place of that.
    Hello,
    /// 200 with that many bytes.
    Bytes(usize),
    /// A status alone.
    Status(u16),
    /// A length that the body does not have.
    Misframed,
    /// The end of the stream, with a code.
    Reset(ErrorCode),
    /// GOAWAY, after which requests that are newer are not looked at.
    Goodbye,
    /// Never responds.
    Silence,
}

struct Peer {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    /// The most streams that were open at once.
    most: Arc<AtomicUsize>,
}

impl Peer {
    /// Serves until the test process ends.
    ///
    /// - `react`: to a request, by its number among all.
    fn start(h2: H2Limits, react: impl Fn(usize) -> Reaction + Send + Sync + 'static) -> Self {
        Self::with_room(usize::MAX, h2, react)
    }

    /// One that accepts so many connections, and refuses all others.
    fn with_room(
        room: usize,
        h2: H2Limits,
        react: impl Fn(usize) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let counters: [Arc<AtomicUsize>; 3] = Default::default();
        let [requests, connections, most] = counters.clone();
        let react = Arc::new(react);
        thread::spawn(move || {
            for stream in listener.incoming().flatten().take(room) {
                counters[1].fetch_add(1, Ordering::Relaxed);
                let (react, counters) = (Arc::clone(&react), counters.clone());
                thread::spawn(move || serve(stream, h2, &*react, &counters));
            }
        });
        Self { address, requests, connections, most }
    }

    fn friendly() -> Self {
        Self::start(H2Limits::default(), |_| Reaction::Hello)
    }

    fn plan(&self, connections: u64, streams: u32, requests: u64, io: BackendChoice) -> LoadPlan {
        let mut plan = counted(&format!("http://{}/page", self.address), connections, requests, io);
        (plan.http, plan.pipeline) = (HttpVersion::Http2, streams);
        plan
    }

    fn seen(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn opened(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A request whose body has not ended: what was received of it.
type Unanswered = (Reaction, usize);

fn serve(
    mut socket: TcpStream,
    h2: H2Limits,
    react: &dyn Fn(usize) -> Reaction,
    [requests, _, most]: &[Arc<AtomicUsize>; 3],
) {
    socket.set_nodelay(true).expect("it is a TCP socket");
    let limits = Limits::default();
    let (mut scratch, mut out, mut unread) = (H2Scratch::default(), Vec::new(), Vec::new());
    let mut step =
        Step { scratch: &mut scratch, h2: &h2, limits: &limits, now_ms: 0, out: &mut out };
    let mut core = H2Connection::<Unanswered>::new(&mut step);
    let mut rests: Vec<(StreamId, usize)> = Vec::new();
    let mut bytes = [0; 16_384];
    loop {
        if socket.write_all(&out).is_err() {
            return;
        }
        out.clear();
        match socket.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => unread.extend_from_slice(&bytes[..count]),
        }
        let mut used = 0;
        let mut ready = Vec::new();
        loop {
            let mut step =
                Step { scratch: &mut scratch, h2: &h2, limits: &limits, now_ms: 0, out: &mut out };
            let Ok((more, event)) = core.next(&unread[used..], &mut step) else { return };
            used += more;
            match event {
                None => break,
                Some(H2Event::Request { id, head, is_end }) => {
                    let head_bytes = step.scratch.head_bytes().to_vec();
                    assert_eq!(
                        head.on(&head_bytes).field("host").map(<[u8]>::is_empty),
                        Some(false)
                    );
                    let reaction = react(requests.fetch_add(1, Ordering::Relaxed));
                    core.open(id, (Some((&head, &head_bytes)), is_end), (reaction, 0));
                    most.fetch_max(core.open_streams(), Ordering::Relaxed);
                    if is_end {
                        ready.push((id, reaction, None));
                    }
                }
                Some(H2Event::Data { id, bytes, is_end }) => {
                    core.take(id, bytes.len(), 0, &mut step);
                    let stream = core.stream(id).expect("it is open");
                    stream.state.1 += bytes.len();
                    if is_end {
                        ready.push((id, stream.state.0, Some(stream.state.1)));
                    }
                }
                Some(H2Event::Trailers { id }) => {
                    let stream = core.stream(id).expect("it is open");
                    ready.push((id, stream.state.0, Some(stream.state.1)));
                }
                Some(_) => {}
            }
        }
        unread.drain(..used);
        for (id, reaction, received) in ready {
            if let Some(left) = respond(&mut core, (id, reaction, received), &mut out) {
                rests.push((id, left));
            }
        }
        rests.retain_mut(|(id, left)| send_rest(&mut core, *id, left, &mut out));
    }
}

/// Sends of a long body what the windows allow. Returns whether some is left.
fn send_rest(
    core: &mut H2Connection<Unanswered>,
    id: StreamId,
    left: &mut usize,
    out: &mut Vec<u8>,
) -> bool {
    while *left > 0 {
        let window = core.stream(id).map_or(0, |stream| stream.window());
        let len = (*left).min(16_384).min(window).min(core.room());
        if len == 0 {
            return true;
        }
        *left -= len;
        core.write_data_header(id, len, *left == 0, out);
        out.resize(out.len() + len, b'x');
    }
    core.finish(id, out);
    false
}

/// Responds to a whole request. Returns what is left to be sent of a long body.
fn respond(
    core: &mut H2Connection<Unanswered>,
    (id, reaction, received): (StreamId, Reaction, Option<usize>),
    out: &mut Vec<u8>,
) -> Option<usize> {
    let body = received.map_or_else(|| "hello".to_owned(), |bytes| format!("{bytes:05}"));
    let (status, length, sent) = match reaction {
        Reaction::Hello | Reaction::Goodbye => (200, Some(body.len()), Some(body.as_str())),
        Reaction::Status(status) => (status, None, None),
        Reaction::Misframed => (200, Some(body.len() + 1), Some(body.as_str())),
        Reaction::Bytes(bytes) => (200, Some(bytes), None),
        Reaction::Reset(why) => {
            core.reset(id, why, out);
            return None;
        }
        Reaction::Silence => return None,
    };
    if reaction == Reaction::Goodbye {
        // It says so before it responds, so that what comes behind is not looked at.
        let error = H2Error::new(ErrorCode::NoError, "enough");
        core.go_away(error, out);
    }
    let is_end = sent.is_none() && !matches!(reaction, Reaction::Bytes(_));
    core.write_head(id, is_end, out, |encoder, out| {
        encoder.status(status, out);
        if let Some(length) = length {
            encoder.content_length(length as u64, out);
        }
    });
    if let Some(body) = sent {
        core.write_data_header(id, body.len(), true, out);
        out.extend_from_slice(body.as_bytes());
    }
    if let Reaction::Bytes(bytes) = reaction {
        return Some(bytes);
    }
    core.finish(id, out);
    None
}

fn assert_clean(outcome: &Outcome) {
    assert_eq!(outcome.errors.total(), 0, "{:?}", outcome.errors);
    assert_eq!(outcome.model.protocol, "HTTP/2");
}

fn responses_are_counted_on_every_stream(io: BackendChoice) {
    let peer = Peer::friendly();
    let mut plan = peer.plan(3, 8, 600, io);
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_clean(&outcome);
    assert_eq!((outcome.requests, peer.seen(), peer.opened()), (600, 600, 3));
    assert_eq!(outcome.statuses[&200], 600);
    assert!(peer.most.load(Ordering::Relaxed) > 1, "several streams are open at once");
    assert!(outcome.model.sentence.contains("up to 8 streams"), "{}", outcome.model.sentence);
    assert!(!outcome.warnings.iter().any(|word| word.contains("pipelined")), "{outcome:?}");
    let first = outcome.first_byte_us.expect("there were some").max;
    assert!(first <= outcome.latency_us.max, "{first}");
}

fn a_body_goes_out_within_the_windows(io: BackendChoice) {
    // A body begins before the server's settings have come, so that a first window below the
    // protocol's would be passed.
    let window_bytes = 64 << 10;
    let h2 = H2Limits { window_bytes, window_bytes_max: window_bytes, ..H2Limits::default() };
    let peer = Peer::start(h2, |_| Reaction::Hello);
    let mut plan = peer.plan(2, 4, 40, io);
    "POST".clone_into(&mut plan.requests[0].method);
    plan.requests[0].body = vec![b'x'; 300_000];
    // The peer responds with the length that it has received.
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_clean(&outcome);
    assert_eq!((outcome.requests, peer.seen()), (40, 40));
}

fn no_more_streams_are_open_than_the_server_allows(io: BackendChoice) {
    let peer = Peer::start(H2Limits { streams_max: 2, ..H2Limits::default() }, |_| Reaction::Hello);
    // The first ones come before the client knows, and are refused: they are sent again.
    let outcome = outcome_of(&peer.plan(1, 16, 200, io));
    assert_clean(&outcome);
    assert_eq!((outcome.requests, peer.seen()), (200, 200));
    assert_eq!(peer.most.load(Ordering::Relaxed), 2);
}

fn requests_that_were_not_looked_at_are_sent_again(io: BackendChoice) {
    let peer = Peer::start(H2Limits::default(), |number| match number % 10 {
        9 => Reaction::Goodbye,
        4 => Reaction::Reset(ErrorCode::RefusedStream),
        _ => Reaction::Hello,
    });
    let outcome = outcome_of(&peer.plan(1, 4, 100, io));
    assert_clean(&outcome);
    assert_eq!(outcome.requests, 100);
    assert!(peer.opened() >= 10, "{}", peer.opened());
}

/// Of the last four of eight requests, one is refused, and no further one comes on the connection.
fn ends_early(number: usize) -> Reaction {
    match number {
        6 => Reaction::Reset(ErrorCode::RefusedStream),
        7 => Reaction::Goodbye,
        _ => Reaction::Hello,
    }
}

fn the_last_requests_are_sent_again_too(io: BackendChoice) {
    let peer = Peer::start(H2Limits::default(), ends_early);
    let outcome = outcome_of(&peer.plan(1, 4, 8, io));
    assert_clean(&outcome);
    assert_eq!((outcome.requests, peer.seen(), peer.opened()), (8, 9, 2));
    assert!(outcome.duration_s < 5.0, "{}", outcome.duration_s);
}

fn requests_that_cannot_be_sent_again_fail(io: BackendChoice) {
    let peer = Peer::with_room(1, H2Limits::default(), ends_early);
    let outcome = outcome_of(&peer.plan(1, 4, 8, io));
    assert_eq!((outcome.requests, outcome.errors.refused), (7, 1), "{:?}", outcome.errors);
    assert!(outcome.duration_s < 5.0, "{}", outcome.duration_s);
}

fn a_request_without_a_response_is_timed_out(io: BackendChoice) {
    let peer = Peer::start(H2Limits::default(), |number| match number {
        1 => Reaction::Silence,
        _ => Reaction::Hello,
    });
    let url = format!("http://{}/", peer.address);
    let mut plan = timed(&url, 1, Duration::from_secs(2), io);
    (plan.http, plan.pipeline) = (HttpVersion::Http2, 4);
    plan.threads = Some(1);
    plan.response_timeout = Duration::from_millis(500);
    let began = Instant::now();
    let outcome = outcome_of(&plan);
    // The others go on meanwhile, and end with their connection.
    assert!(outcome.errors.timed_out >= 1, "{:?}", outcome.errors);
    assert!(outcome.requests > 100, "{}", outcome.requests);
    assert_eq!(peer.opened(), 2);
    assert!(began.elapsed() < Duration::from_secs(8));
}

fn what_is_wrong_with_responses_is_found(io: BackendChoice) {
    let peer = Peer::start(H2Limits::default(), |number| match number {
        10 => Reaction::Status(500),
        11 => Reaction::Misframed,
        12 => Reaction::Reset(ErrorCode::InternalError),
        13 => Reaction::Bytes(7),
        _ => Reaction::Hello,
    });
    let outcome = outcome_of(&peer.plan(1, 1, 50, io));
    let errors = &outcome.errors;
    assert_eq!((errors.status, errors.unreadable, errors.reset, errors.length), (1, 1, 1, 1));
    assert_eq!((outcome.requests, errors.total(), peer.opened()), (46, 4, 1));
}

fn a_connection_for_each_request(io: BackendChoice) {
    let peer = Peer::friendly();
    let mut plan = peer.plan(2, 1, 30, io);
    plan.keep_alive = false;
    let outcome = outcome_of(&plan);
    assert_clean(&outcome);
    assert_eq!((outcome.requests, peer.seen(), peer.opened()), (30, 30, 30));
}

fn idle_connections_are_held(io: BackendChoice) {
    let peer = Peer::friendly();
    let mut plan = peer.plan(1, 1, 20, io);
    plan.load = LoadModel::Hold { idle: 20, rate_per_s: None };
    let outcome = outcome_of(&plan);
    assert_clean(&outcome);
    let held = outcome.held.expect("that is what it was about");
    assert_eq!((held.opened, held.lost, peer.opened()), (20, 0, 21));
}

fn a_large_response_is_read_whole(io: BackendChoice) {
    let peer = Peer::start(H2Limits::default(), |_| Reaction::Bytes(3_000_000));
    let mut plan = peer.plan(1, 3, 12, io);
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_clean(&outcome);
    assert_eq!(outcome.requests, 12);
    assert!(outcome.bytes_received >= 36_000_000, "{}", outcome.bytes_received);
}

#[test]
fn a_server_of_http_1_alone_has_no_readable_responses() {
    let toy = crate::toy::Toy::friendly();
    let mut plan = counted(&toy.url("/"), 1, 3, BackendChoice::Epoll);
    plan.http = HttpVersion::Http2;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (0, 3), "{:?}", outcome.errors);
}

#[test]
fn the_preface_and_the_settings_come_first() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let load = thread::spawn(move || {
        let mut plan = timed(&url, 1, Duration::from_millis(300), BackendChoice::Epoll);
        (plan.http, plan.threads) = (HttpVersion::Http2, Some(1));
        outcome_of(&plan)
    });
    let (mut socket, _) = listener.accept().expect("it connects");
    let mut bytes = [0; 24 + 9];
    socket.read_exact(&mut bytes).expect("it speaks first");
    assert_eq!(&bytes[..24], frame::PREFACE);
    assert_eq!(bytes[24 + 3], frame::kind::SETTINGS);
    drop(socket);
    drop(listener);
    load.join().expect("it ends");
}
