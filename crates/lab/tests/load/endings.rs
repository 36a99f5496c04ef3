//! When a run ends, and what it has by then.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use gustnado_lab::load::{LoadPhase, LoadProgress, ProgressObserver, StopHandle, run};
use gustnado_lab::plan::{BackendChoice, LoadModel};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

use crate::toy::{Reply, Toy, ok};
use crate::{Seen, counted, outcome_of, timed};

crate::through_both_doors!(
    a_number_of_requests_is_exact,
    fewer_requests_than_connections_are_exact_too,
    a_warm_up_is_not_counted,
    a_run_that_is_stopped_reports_what_it_has,
    a_server_that_hangs_does_not_keep_a_run_from_stopping,
    waiting_for_the_last_responses_is_no_time_of_the_generator,
    connections_stay_open_until_the_last_response,
    a_connection_without_requests_left_makes_room,
    a_server_that_lets_few_in_is_not_waited_for,
    few_held_connections_are_not_waited_for,
);

fn a_number_of_requests_is_exact(io: BackendChoice) {
    let toy = Toy::friendly();
    let outcome = outcome_of(&counted(&toy.url("/"), 7, 1001, io));
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (1001, 1001, 1001));
    assert_eq!((outcome.errors.total(), outcome.statuses[&200]), (0, 1001));
    assert_eq!(outcome.connections_opened, 7);
    let answer = ok("hello").len() as u64;
    assert_eq!(outcome.bytes_received, 1001 * answer);
    assert!(outcome.warnings.iter().all(|word| !word.contains("early")), "{outcome:?}");
}

fn fewer_requests_than_connections_are_exact_too(io: BackendChoice) {
    let toy = Toy::friendly();
    let outcome = outcome_of(&counted(&toy.url("/"), 20, 3, io));
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (3, 3, 3));
}

fn a_warm_up_is_not_counted(io: BackendChoice) {
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 2, 50, io);
    plan.warm_up = Duration::from_millis(200);
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.sent), (50, 50));
    assert!(toy.seen() > 50, "{} requests were seen", toy.seen());
}

/// Stops a run once it has measured something.
struct Stopping {
    seen: Seen,
    stop: StopHandle,
    stopped: OnceLock<Instant>,
}

impl ProgressObserver for Stopping {
    fn progress(&self, progress: &LoadProgress) {
        self.seen.progress(progress);
        if progress.phase == LoadPhase::Measuring && progress.p99_us > 0.0 {
            self.stop.now();
            self.stopped.get_or_init(Instant::now);
        }
    }
}

fn a_run_that_is_stopped_reports_what_it_has(io: BackendChoice) {
    let toy = Toy::friendly();
    let plan = timed(&toy.url("/"), 3, Duration::from_mins(1), io);
    let (stop, seen) = (StopHandle::default(), Seen::default());
    let watch = Stopping { seen, stop: stop.clone(), stopped: OnceLock::new() };
    let outcome = run(&plan, &watch, &stop).expect("the plan is good");
    let took = watch.stopped.get().expect("it was stopped").elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(outcome.requests > 0);
    assert!(outcome.warnings.iter().any(|word| word.contains("stopped early")), "{outcome:?}");
    let seen = watch.seen.0.into_inner().expect("nobody panicked with it");
    assert!(seen.iter().any(|seen| seen.phase == LoadPhase::Measuring && seen.p99_us > 0.0));
    assert!(seen.windows(2).all(|two| two[0].requests <= two[1].requests));
}

fn a_server_that_hangs_does_not_keep_a_run_from_stopping(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Silence);
    let mut plan = timed(&toy.url("/"), 3, Duration::from_millis(300), io);
    plan.connect_timeout = Duration::from_millis(400);
    let outcome = outcome_of(&plan);
    // They were sent before measuring began, and are under way from then on.
    assert_eq!((outcome.requests, outcome.sent, outcome.unanswered), (0, 0, 3));
    assert!(outcome.duration_s < 10.0, "{}", outcome.duration_s);
}

fn waiting_for_the_last_responses_is_no_time_of_the_generator(io: BackendChoice) {
    let toy = Toy::start(
        |asked| {
            if asked.number < 4 { Reply::Bytes(ok("hello")) } else { Reply::Silence }
        },
    );
    let outcome = outcome_of(&timed(&toy.url("/"), 4, Duration::from_millis(500), io));
    assert_eq!(outcome.unanswered, 4);
    let generator = &outcome.generator;
    // That of two threads.
    let time_s = generator.cpu_s / generator.cpu_share;
    assert!((0.9..2.0).contains(&time_s), "{time_s}: {generator:?}");
}

/// The kernel knows what was sent again on them only while they are open.
fn connections_stay_open_until_the_last_response(io: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    // One responds at once, the other after the end; each says when it was closed.
    let server = thread::spawn(move || {
        let ends = [Duration::ZERO, Duration::from_secs(1)].map(|pause| {
            let (mut stream, _) = listener.accept().expect("it listens");
            thread::spawn(move || {
                let (mut bytes, mut number, mut responded) = ([0; 1024], 0, Instant::now());
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    thread::sleep(if number == 0 { Duration::from_millis(5) } else { pause });
                    stream.write_all(&ok("hello")).expect("it reads");
                    (number, responded) = (number + 1, Instant::now());
                }
                (responded, Instant::now())
            })
        });
        ends.map(|end| end.join().expect("it only responds"))
    });
    let outcome = outcome_of(&timed(&url, 2, Duration::from_millis(500), io));
    let [(_, early_closed), (late_responded, _)] = server.join().expect("it only waits");
    assert!(outcome.requests > 0);
    assert!(early_closed >= late_responded);
}

fn a_connection_without_requests_left_makes_room(io: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    // It serves one connection after the other.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 1024];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                stream.write_all(&ok("hello")).expect("it reads");
            }
        }
    });
    let outcome = outcome_of(&counted(&url, 4, 20, io));
    assert_eq!((outcome.requests, outcome.errors.total()), (20, 0), "{outcome:?}");
    assert_eq!(outcome.connections.as_ref().map(|all| all.served), Some(4));
    assert_eq!(outcome.retransmits, None);
}

/// A socket that listens and never accepts: so many connections stand as its backlog holds.
fn aloof() -> (OwnedFd, String) {
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("it can be made");
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listen(&listener, 8).expect("it is bound");
    let name = getsockname(&listener).expect("it is bound");
    let address = SocketAddrV4::try_from(name).expect("it was bound to such a one");
    (listener, format!("http://{address}/"))
}

fn a_server_that_lets_few_in_is_not_waited_for(io: BackendChoice) {
    let (_listener, url) = aloof();
    let mut plan = timed(&url, 1000, Duration::from_secs(2), io);
    plan.connect_timeout = Duration::from_millis(400);
    let began = Instant::now();
    let outcome = outcome_of(&plan);
    let took = began.elapsed();
    // Opening and the ramp-up until no more come, the two seconds, and three for what is under way.
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_eq!(outcome.requests, 0);
    let connections = outcome.connections.as_ref().expect("they are counted");
    assert!((1..200).contains(&connections.opened), "{connections:?}");
    assert_eq!(connections.served, 0);
    // Each that was not let in has tried more than once, and says so.
    assert!(outcome.errors.timed_out > 800, "{outcome:?}");
    let word = outcome.warnings.iter().find(|word| word.contains("were not open"));
    assert!(word.is_some_and(|word| word.contains(" s of opening")), "{outcome:?}");
}

fn few_held_connections_are_not_waited_for(io: BackendChoice) {
    let (_listener, url) = aloof();
    let mut plan = timed(&url, 4, Duration::from_secs(1), io);
    plan.load = LoadModel::Hold { idle: 1000, rate_per_s: Some(50.0) };
    plan.connect_timeout = Duration::from_millis(400);
    let began = Instant::now();
    let outcome = outcome_of(&plan);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    let held = outcome.held.clone().expect("that is what it was about");
    assert_eq!((held.asked, held.opened), (1000, 0));
    assert!(outcome.warnings.iter().any(|word| word.contains("Only 0 of 1,000")), "{outcome:?}");
}
