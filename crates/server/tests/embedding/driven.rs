//! A server whose worker runs on the thread of somebody else's loop.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/driven.rs"]
mod example;

mod bodies;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::{Config, Io, SchedulerKind};
use gustnado::driven::{Driven, Wants};
use gustnado::{Replier, Request, Response, Running, Server, reply_later, stats_page};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::harness::client::{End, get};
use crate::harness::{Client, Folder, PATIENCE, Setup, TransportKind};

const SETUP: Setup = Setup { io: Io::Auto, scheduler: SchedulerKind::Pool };

fn config() -> Config {
    Config { workers: 1, ..SETUP.patient_config() }
}

/// A server, what drives it, and what looks whether its thread is done.
struct Run {
    running: Running,
    driven: Driven,
}

impl Run {
    fn start(server: Server) -> Self {
        let (running, driven) = server.config(config()).start_driven().expect("the server starts");
        Self { running, driven }
    }

    fn address(&self) -> SocketAddr {
        self.running.addresses()[0].to_string().parse().expect("it listens on TCP")
    }

    fn turn(&self) {
        let timeout = Some(Duration::from_millis(5));
        let mut around = |sleep: &mut dyn FnMut()| sleep();
        self.driven.turn(timeout, &mut Vec::new(), &mut around).expect("the kernel polls");
    }

    fn turn_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < PATIENCE, "turned for {PATIENCE:?} in vain: {what}");
            self.turn();
        }
    }

    /// Drives while another thread talks to the server.
    fn while_asked<T: Send + 'static>(
        &self,
        ask: impl FnOnce(SocketAddr) -> T + Send + 'static,
    ) -> T {
        let address = self.address();
        let asking = thread::spawn(move || ask(address));
        self.turn_until("the client is done", || asking.is_finished());
        asking.join().expect("the client has got what it wanted")
    }
}

fn hello() -> Server {
    Server::new().get("/hello", |_: &Request| "hello")
}

/// Waits until a descriptor can be read, for so long at most. Returns whether it can.
fn can_read(descriptor: &OwnedFd, for_at_most: Duration) -> bool {
    let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
    let timeout = Timespec::try_from(for_at_most).expect("it is short");
    poll(&mut asked, Some(&timeout)).expect("the kernel polls") > 0
}

#[test]
fn a_loop_that_sleeps_itself_sees_by_the_descriptor_when_to_look() {
    let kept: Arc<Mutex<Option<Replier>>> = Arc::default();
    let given = Arc::clone(&kept);
    let run = Run::start(hello().get("/later", move |_: Request| {
        let (replier, reply) = reply_later();
        *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(replier);
        reply
    }));
    let (address, descriptor) = (run.address(), run.driven.descriptor().expect("there is one"));
    let look = || run.driven.look().expect("the kernel polls");
    let asking = thread::spawn(move || {
        let mut client = Client::connect(address);
        (client.get("/hello").text(), client.get("/later").text())
    });
    let began = Instant::now();
    let mut due = look();
    while !asking.is_finished() {
        assert!(began.elapsed() < PATIENCE, "the descriptor has not told of something");
        let patience = due.unwrap_or(PATIENCE).min(Duration::from_millis(100));
        if can_read(&descriptor, patience) || due == Some(Duration::ZERO) {
            due = look();
        } else if let Some(replier) = kept.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Between two looks, on this thread: the descriptor says that there is something to do.
            replier.respond(Response::text("later"));
            assert!(can_read(&descriptor, PATIENCE), "a task of this thread was woken");
        }
    }
    let (first, second) = asking.join().expect("the client has got what it wanted");
    assert_eq!((&*first, &*second), ("hello", "later"));
}

#[test]
fn requests_are_answered_in_turns_and_connections_are_kept() {
    let run = Run::start(hello().get("/stats", stats_page()));
    run.while_asked(|address| {
        let mut client = Client::connect(address);
        for _ in 0..100 {
            assert_eq!(client.get("/hello").body, b"hello");
        }
        assert_eq!(client.get("/nothing").status, 404);
        assert_eq!(client.get("/stats").status, 200);
        client.send(format!("{0}{0}{0}", get("/hello")));
        for _ in 0..3 {
            assert_eq!(client.read_answer().status, 200);
        }
    });
    assert_eq!(run.running.stats().requests, 105);
    assert_eq!((run.running.workers(), run.running.backend()), (1, "epoll"));
}

#[test]
fn a_thousand_connections_are_answered() {
    let count = TransportKind::chosen().of_connections(1_000);
    let run = Run::start(hello());
    let statuses = run.while_asked(move |address| {
        let mut clients: Vec<_> = (0..count).map(|_| Client::connect(address)).collect();
        for client in &mut clients {
            client.send(get("/hello"));
        }
        clients.iter_mut().map(|client| client.read_answer().status).collect::<Vec<_>>()
    });
    assert_eq!(statuses, vec![200; count]);
    run.turn_until("all have gone", || run.running.stats().connections_open == 0);
}

#[test]
fn files_are_served() {
    let folder = Folder::new();
    let bytes = crate::harness::folder::noise(3, 3_000_000);
    folder.file("big.bin", &bytes);
    let run = Run::start(Server::new().files("/", folder.root()));
    let body = run.while_asked(|address| Client::connect(address).get("/big.bin").body);
    assert!(body == bytes);
}

#[test]
fn a_panic_in_a_handler_is_contained() {
    let server = hello()
        .get("/bad", |_: &Request| -> &str { panic!("on purpose") })
        .get("/worse", async |_: Request| -> &str { panic!("on purpose") });
    let run = Run::start(server);
    run.while_asked(|address| {
        let mut client = Client::connect(address);
        for target in ["/bad", "/worse"] {
            assert_eq!(client.get(target).status, 500);
        }
        assert_eq!(client.get("/hello").status, 200);
    });
    assert_eq!(run.running.stats().panics, 2);
}

/// How a connection ends.
fn end_of(client: &mut Client) -> End {
    client.try_answer().expect_err("nothing more comes")
}

/// What the loop is to answer, from its own thread.
type Line = Arc<Mutex<Vec<Replier>>>;

fn answering_later(line: &Line) -> Server {
    let line = Arc::clone(line);
    hello().get("/later", move |_: Request| {
        let (replier, reply) = reply_later();
        line.lock().unwrap_or_else(PoisonError::into_inner).push(replier);
        reply
    })
}

fn take(line: &Line) -> Vec<Replier> {
    std::mem::take(&mut *line.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn the_loop_answers_later_from_its_own_thread_or_another() {
    let line = Line::default();
    let run = Run::start(answering_later(&line));
    let address = run.address();
    let asking = thread::spawn(move || {
        let mut client = Client::connect(address);
        (0..10).map(|_| client.get("/later").text()).collect::<Vec<_>>()
    });
    let mut count = 0;
    run.turn_until("ten answers", || {
        for replier in take(&line) {
            count += 1;
            if count % 2 == 0 {
                thread::spawn(move || assert!(replier.respond("thread")));
            } else {
                assert!(replier.respond("loop"));
            }
        }
        asking.is_finished()
    });
    assert_eq!(asking.join().expect("all have come"), ["loop", "thread"].repeat(5));
}

#[test]
fn whoever_goes_before_the_answer_is_told_of() {
    if Setup::plain_only("the thread that turns the server cannot shake hands with it") {
        return;
    }
    let line = Line::default();
    let run = Run::start(answering_later(&line));
    let client = TcpStream::connect(run.address()).expect("it listens");
    (&client).write_all(get("/later").as_bytes()).expect("it listens");
    let mut repliers = Vec::new();
    run.turn_until("the request is here", || {
        repliers.append(&mut take(&line));
        !repliers.is_empty()
    });
    let (replier, lost) = (repliers.remove(0), Arc::new(AtomicBool::new(false)));
    let tell = Arc::clone(&lost);
    replier.on_lost(move || tell.store(true, Ordering::SeqCst));
    assert!(!replier.is_lost());
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("it can");
    drop(client);
    run.turn_until("it is told", || lost.load(Ordering::SeqCst));
    assert!(replier.is_lost() && !replier.respond("too late"));
}

#[test]
fn the_thread_that_drives_drains_step_by_step() {
    let line = Line::default();
    let run = Run::start(answering_later(&line));
    let address = run.address();
    let asking = thread::spawn(move || {
        let mut idle = Client::connect(address);
        assert_eq!(idle.get("/hello").status, 200);
        let mut client = Client::connect(address);
        let answer = client.get("/later");
        (answer.text(), answer.closes(), end_of(&mut client), end_of(&mut idle))
    });
    let mut repliers = Vec::new();
    run.turn_until("the request is here", || {
        repliers.append(&mut take(&line));
        !repliers.is_empty()
    });
    let mut drain = run.running.begin_drain(PATIENCE);
    for _ in 0..20 {
        run.turn();
        assert_eq!(drain.step(&run.running), None, "an answer is under way");
    }
    assert!(repliers.remove(0).respond("in time"));
    let mut report = None;
    run.turn_until("it has ended", || {
        report = drain.step(&run.running);
        report.is_some()
    });
    assert_eq!(report.map(|report| report.cut), Some(0));
    run.turn();
    assert!(run.driven.has_ended());
    let (text, closes, end, idle) = asking.join().expect("it was answered");
    assert_eq!((&*text, closes, end), ("in time", true, End::Closed(0)));
    assert_eq!(idle, End::Closed(0));
}

#[test]
fn a_drain_cuts_what_is_left_at_its_deadline() {
    let line = Line::default();
    let run = Run::start(answering_later(&line));
    let address = run.address();
    let asking = thread::spawn(move || {
        let mut client = Client::connect(address);
        client.send(get("/later"));
        end_of(&mut client)
    });
    let mut repliers = Vec::new();
    run.turn_until("the request is here", || {
        repliers.append(&mut take(&line));
        !repliers.is_empty()
    });
    let mut drain = run.running.begin_drain(Duration::from_millis(30));
    let mut report = None;
    run.turn_until("it has ended", || {
        report = drain.step(&run.running);
        report.is_some()
    });
    assert_eq!(report.map(|report| report.cut), Some(1));
    assert!(repliers.remove(0).is_lost());
    assert_eq!(asking.join().expect("cut").received(), 0);
}

#[test]
fn another_thread_drains_as_ever() {
    let run = Run::start(hello());
    run.while_asked(|address| assert_eq!(Client::connect(address).get("/hello").status, 200));
    let Run { running, driven } = run;
    let draining = thread::spawn(move || running.drain(PATIENCE));
    let began = Instant::now();
    while !driven.has_ended() {
        assert!(began.elapsed() < PATIENCE, "it is not told of the end");
        driven.turn(None, &mut Vec::new(), &mut |sleep| sleep()).expect("the kernel polls");
    }
    let report = draining.join().expect("drained");
    assert!(report.cut == 0 && report.took < PATIENCE);
}

#[test]
fn what_waits_in_the_backlog_when_a_drain_begins_is_served() {
    if Setup::plain_only("the thread that turns the server cannot shake hands with it") {
        return;
    }
    let run = Run::start(hello());
    run.turn();
    run.turn();
    let address = run.address();
    let mut clients: Vec<_> = (0..10).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.send(get("/hello"));
    }
    let mut drain = run.running.begin_drain(PATIENCE);
    let mut report = drain.step(&run.running);
    run.turn_until("it has ended", || {
        report = report.or_else(|| drain.step(&run.running));
        report.is_some()
    });
    for client in &mut clients {
        assert_eq!(client.read_answer().status, 200);
    }
}

#[test]
fn stopping_and_dropping_end_in_any_order() {
    for order in 0..4 {
        let run = Run::start(hello());
        run.while_asked(|address| assert_eq!(Client::connect(address).get("/hello").status, 200));
        let address = run.address();
        let Run { running, driven } = run;
        let began = Instant::now();
        match order {
            0 => running.stop(),
            1 => drop(running),
            2 => drop(driven),
            _ => {
                running.stop();
                driven.end();
            }
        }
        assert!(began.elapsed() < Duration::from_secs(5), "order {order}");
        if order > 1 {
            assert!(TcpStream::connect(address).is_err(), "order {order}: it listens still");
        }
    }
}

#[test]
fn threads_answer_beside_the_driven_worker() {
    let server = hello().config(Config { workers: 3, ..config() });
    let (running, driven) = server.start_driven().expect("the server starts");
    let run = Run { running, driven };
    assert_eq!(run.running.workers(), 3);
    run.while_asked(|address| {
        for _ in 0..60 {
            assert_eq!(Client::connect(address).get("/hello").status, 200);
        }
    });
    let by_worker: Vec<_> = run.running.stats_by_worker();
    assert_eq!(by_worker.len(), 3);
    let Run { running, driven } = run;
    drop(driven);
    running.stop();
}

#[test]
fn a_reload_takes_effect_while_it_is_driven() {
    let run = Run::start(hello());
    let other = Server::new().get("/hello", |_: &Request| "other").config(config());
    run.while_asked(|address| assert_eq!(Client::connect(address).get("/hello").body, b"hello"));
    run.running.reload(other).expect("it takes the other one");
    run.while_asked(|address| assert_eq!(Client::connect(address).get("/hello").body, b"other"));
}

#[test]
fn a_stream_is_appended_to_from_the_loop() {
    let (sender, appenders) = mpsc::channel();
    let server = Server::new().get("/stream", move |_: &Request| {
        let (appender, response) = Response::append(4);
        sender.send(appender).expect("the loop is there");
        response
    });
    let run = Run::start(server);
    let address = run.address();
    let asking = thread::spawn(move || Client::connect(address).get("/stream").text());
    let (mut appender, mut count) = (None, 0);
    run.turn_until("the stream has ended", || {
        appender = appender.take().or_else(|| appenders.try_recv().ok());
        if let Some(open) = &appender {
            while count < 1_000 && open.try_append("piece ").is_ok() {
                count += 1;
            }
            if count == 1_000 {
                appender = None;
            }
        }
        asking.is_finished()
    });
    assert_eq!(asking.join().expect("it has come"), "piece ".repeat(1_000));
}

#[test]
fn the_example_serves_beside_its_own_descriptors() {
    let (running, driven) =
        example::server().config(config()).start_driven().expect("the server starts");
    let run = Run { running, driven };
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    let wants = Wants { read: true, write: false };
    run.driven.watch(reader.as_raw_fd(), wants, 7).expect("a pipe can be watched");
    let address = run.address();
    let asking = thread::spawn(move || {
        rustix::io::write(&writer, b"a line\n").expect("there is room");
        let text = Client::connect(address).get("/").text();
        drop(writer);
        text
    });
    let began = Instant::now();
    let mut ready = Vec::new();
    while !ready.iter().any(|found: &gustnado::driven::WatchEvent| found.key == 7 && found.hang_up)
    {
        assert!(began.elapsed() < PATIENCE, "the pipe does not end");
        ready.clear();
        let timeout = Some(Duration::from_millis(5));
        run.driven.turn(timeout, &mut ready, &mut |sleep| sleep()).expect("the kernel polls");
    }
    let text = asking.join().expect("it was answered");
    assert!(text.contains("turns"), "{text}");
}
