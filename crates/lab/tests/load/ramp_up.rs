//! The ramp-up: measuring begins once every connection had a response, and the outcome counts the
//! connections that were opened, served and held.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use gustnado_lab::outcome::ConnectionCounts;
use gustnado_lab::plan::{BackendChoice, LoadModel};

use crate::toy::{Reply, Toy, ok};
use crate::{counted, outcome_of, timed};

crate::through_both_doors!(
    every_connection_is_served_before_measuring,
    at_a_rate_each_connection_has_one_request_before,
    a_number_of_requests_reaches_every_connection,
    a_connection_for_each_of_a_number_of_requests_is_served,
    a_server_that_serves_a_part_is_found_out,
    a_server_that_responds_too_late_has_served_nothing,
    connections_that_are_lost_are_not_held,
    connections_that_are_closed_after_a_response_are_held,
    without_a_ramp_up_measuring_begins_at_once,
);

/// A toy that takes so long for each response.
fn slow(ms: u64) -> Toy {
    Toy::start(move |_| {
        thread::sleep(Duration::from_millis(ms));
        Reply::Bytes(ok("hello"))
    })
}

fn all_served(asked: u64) -> ConnectionCounts {
    ConnectionCounts { asked, due: asked, opened: asked, served: asked, held: Some(asked) }
}

fn every_connection_is_served_before_measuring(io: BackendChoice) {
    let toy = slow(20);
    let outcome = outcome_of(&timed(&toy.url("/"), 20, Duration::from_millis(500), io));
    assert_eq!(outcome.connections, Some(all_served(20)));
    assert!(outcome.requests_before >= 20, "{outcome:?}");
    assert!(outcome.ramp_up_s >= 0.02, "{}", outcome.ramp_up_s);
    assert_eq!(outcome.sent + outcome.requests_before, toy.seen());
    assert_eq!(outcome.requests, outcome.sent);
    // Each connection has a request under way at the begin as at the end, so none is missing.
    let ended = outcome.requests_in_window;
    assert!(ended.abs_diff(outcome.sent) <= 2, "{ended} of {}", outcome.sent);
}

fn at_a_rate_each_connection_has_one_request_before(io: BackendChoice) {
    let toy = slow(5);
    let mut plan = timed(&toy.url("/"), 40, Duration::from_millis(500), io);
    plan.load = LoadModel::Open { rate_per_s: 100.0 };
    let outcome = outcome_of(&plan);
    assert_eq!(outcome.requests_before, 40);
    let connections = outcome.connections.expect("they are counted");
    assert_eq!((connections.asked, connections.due, connections.held), (40, 40, Some(40)));
    plan.load = LoadModel::Open { rate_per_s: 20.0 };
    let outcome = outcome_of(&plan);
    let connections = outcome.connections.expect("they are counted");
    assert_eq!((connections.asked, connections.due), (40, 10), "no more have a request");
}

fn a_number_of_requests_reaches_every_connection(io: BackendChoice) {
    // Those that are served at once do not take the requests of the others.
    let toy = Toy::friendly();
    let outcome = outcome_of(&counted(&toy.url("/"), 64, 70, io));
    assert_eq!((outcome.requests, outcome.sent, toy.seen()), (70, 70, 70));
    assert_eq!((outcome.requests_before, outcome.ramp_up_s.to_bits()), (0, 0.0_f64.to_bits()));
    let connections = outcome.connections.expect("they are counted");
    assert_eq!((connections.due, connections.served), (64, 64));
}

fn a_connection_for_each_of_a_number_of_requests_is_served(io: BackendChoice) {
    // Many more than are opened before the first response comes.
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 600, 600, io);
    plan.keep_alive = false;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, toy.seen(), toy.opened()), (600, 600, 600));
    let connections = outcome.connections.expect("they are counted");
    assert_eq!((connections.due, connections.served), (600, 600));
}

fn a_server_that_serves_a_part_is_found_out(io: BackendChoice) {
    let toy = Toy::with_room(10, |_| {
        thread::sleep(Duration::from_millis(5));
        Reply::Bytes(ok("hello"))
    });
    let mut plan = timed(&toy.url("/"), 30, Duration::from_millis(300), io);
    plan.connect_timeout = Duration::from_millis(300);
    let began = Instant::now();
    let outcome = outcome_of(&plan);
    // The backlog takes the others.
    assert_eq!(outcome.connections, Some(ConnectionCounts { served: 10, ..all_served(30) }));
    assert!(outcome.requests > 0 && outcome.unanswered == 20, "{outcome:?}");
    assert!(outcome.ramp_up_s >= 0.3, "the others had time: {}", outcome.ramp_up_s);
    assert!(began.elapsed() < Duration::from_secs(8), "and no more than that");
    assert!(outcome.warnings[0].starts_with("20 of 30 connections never had a response"));
}

fn a_server_that_responds_too_late_has_served_nothing(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        if asked.number >= 4 {
            thread::sleep(Duration::from_millis(900));
        }
        Reply::Bytes(ok("hello"))
    });
    let mut plan = timed(&toy.url("/"), 4, Duration::from_millis(300), io);
    plan.load = LoadModel::Open { rate_per_s: 50.0 };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests_in_window, outcome.requests_late), (0, outcome.requests));
    assert!(outcome.requests_late >= 4, "{outcome:?}");
    let connections = outcome.connections.expect("they are counted");
    assert_eq!((connections.due, connections.served), (4, 0));
}

fn connections_that_are_lost_are_not_held(io: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let until = Instant::now() + Duration::from_millis(700);
    let server = thread::spawn(move || {
        let served = [(), ()].map(|()| {
            let (mut stream, _) = listener.accept().expect("it listens");
            stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a TCP socket");
            thread::spawn(move || {
                let mut bytes = [0; 1024];
                while Instant::now() < until {
                    if stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                        stream.write_all(&ok("hello")).expect("it reads");
                    }
                }
            })
        });
        for one in served {
            one.join().expect("it only responds");
        }
        drop(listener);
    });
    let outcome = outcome_of(&timed(&url, 2, Duration::from_millis(1_500), io));
    server.join().expect("it only waits");
    let connections = outcome.connections.expect("they are counted");
    assert_eq!(connections, ConnectionCounts { held: Some(0), ..all_served(2) });
}

fn connections_that_are_closed_after_a_response_are_held(io: BackendChoice) {
    let toy = Toy::start(|_| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n";
        Reply::Last(format!("{head}hello").into_bytes())
    });
    let outcome = outcome_of(&counted(&toy.url("/"), 3, 30, io));
    assert_eq!((outcome.requests, outcome.errors.total()), (30, 0), "{outcome:?}");
    assert!(outcome.connections_opened >= 30, "{outcome:?}");
    assert_eq!(outcome.connections, Some(all_served(3)));
}

fn without_a_ramp_up_measuring_begins_at_once(io: BackendChoice) {
    let toy = slow(5);
    let mut plan = timed(&toy.url("/"), 4, Duration::from_millis(300), io);
    plan.ramp_up_max = Duration::ZERO;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests_before, outcome.sent), (0, toy.seen()));
}
