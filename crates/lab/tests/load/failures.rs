//! Everything that can go wrong with a request, each counted for what it is.

use std::net::{IpAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_lab::load::{StopHandle, run};
use gustnado_lab::outcome::Errors;
use gustnado_lab::plan::{BackendChoice, LoadPlan};

use crate::toy::{Reply, Toy, ok};
use crate::{Seen, counted, outcome_of, timed};

crate::through_both_doors!(
    a_server_that_is_not_there_refuses,
    a_server_that_goes_away_is_counted,
    all_addresses_of_a_name_are_tried,
    other_statuses_can_be_right,
    a_status_beyond_2xx_is_a_failure,
    a_reset_is_counted,
    an_end_before_the_answer_is_a_reset,
    an_answer_that_is_cut_is_short,
    an_answer_that_does_not_come_is_timed_out,
    an_answer_of_another_length_is_counted,
    another_body_of_the_same_length_is_found,
    what_is_no_http_is_unreadable,
    an_address_that_is_not_ours_leaves_no_port,
);

/// Runs a plan of so many requests, and returns what went wrong.
fn errors_of(plan: &LoadPlan, right: u64) -> Errors {
    let outcome = outcome_of(plan);
    assert_eq!(outcome.requests, right, "{:?}", outcome.errors);
    let all = plan.end.requests.expect("these plans count");
    assert_eq!(outcome.requests + outcome.errors.total(), all, "{:?}", outcome.errors);
    outcome.errors
}

fn a_server_that_is_not_there_refuses(io: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    drop(listener);
    let began = Instant::now();
    let refused = run(&counted(&url, 4, 12, io), &Seen::default(), &StopHandle::default());
    let said = refused.expect_err("there is nothing to measure").to_string();
    assert!(said.contains("refused the connection; does a server listen there?"), "{said}");
    assert!(url.contains(said.split(' ').nth(3).expect("an address")), "{said}");
    let churn = LoadPlan { keep_alive: false, ..timed(&url, 4, Duration::from_mins(1), io) };
    assert!(run(&churn, &Seen::default(), &StopHandle::default()).is_err());
    assert!(began.elapsed() < Duration::from_secs(5), "at once");
}

/// One that was there and is gone is counted, and waited for.
fn a_server_that_goes_away_is_counted(io: BackendChoice) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let going = thread::spawn(move || drop(listener.accept().expect("it listens")));
    let errors = errors_of(&counted(&url, 1, 5, io), 0);
    going.join().expect("it only accepts");
    assert_eq!(errors.refused + errors.reset, 5, "{errors:?}");
    assert!(errors.refused >= 4, "{errors:?}");
}

/// A name is served at one of its addresses, which need not be the first.
fn all_addresses_of_a_name_are_tried(io: BackendChoice) {
    let toy = Toy::friendly();
    // localhost is ::1 as well where the machine says so; else there is one address only.
    let url = format!("http://localhost:{}/", toy.address.port());
    let mut plan = counted(&url, 4, 20, io);
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (20, 0), "{:?}", outcome.errors);
    assert_eq!((toy.seen(), toy.opened()), (20, 4));
}

fn other_statuses_can_be_right(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        Reply::Bytes(if asked.number % 2 == 0 {
            ok("hello")
        } else {
            b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone".to_vec()
        })
    });
    let mut plan = counted(&toy.url("/"), 1, 10, io);
    plan.statuses = vec![(200, 200), (400, 404)];
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (10, 0), "{:?}", outcome.errors);
    assert_eq!((outcome.statuses[&200], outcome.statuses[&404]), (5, 5));
}

fn a_status_beyond_2xx_is_a_failure(io: BackendChoice) {
    let bad = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    let toy = Toy::start(|asked| {
        Reply::Bytes(if asked.number % 2 == 0 { ok("hello") } else { bad.to_vec() })
    });
    let outcome = outcome_of(&counted(&toy.url("/"), 1, 10, io));
    assert_eq!((outcome.requests, outcome.errors.status), (5, 5));
    assert_eq!((outcome.statuses[&200], outcome.statuses[&503]), (5, 5));
}

fn a_reset_is_counted(io: BackendChoice) {
    let toy =
        Toy::start(
            |asked| {
                if asked.number % 3 == 2 { Reply::Reset } else { Reply::Bytes(ok("hello")) }
            },
        );
    let errors = errors_of(&counted(&toy.url("/"), 1, 9, io), 6);
    assert_eq!(errors, Errors { reset: 3, ..Errors::default() });
    assert_eq!(toy.seen(), 9, "a failed request is not sent again");
}

fn an_end_before_the_answer_is_a_reset(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Last(Vec::new()));
    let errors = errors_of(&counted(&toy.url("/"), 2, 6, io), 0);
    assert_eq!(errors, Errors { reset: 6, ..Errors::default() });
}

fn an_answer_that_is_cut_is_short(io: BackendChoice) {
    let toy =
        Toy::start(|_| Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".into()));
    let errors = errors_of(&counted(&toy.url("/"), 2, 6, io), 0);
    assert_eq!(errors, Errors { short: 6, ..Errors::default() });
}

fn an_answer_that_does_not_come_is_timed_out(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Silence);
    let mut plan = counted(&toy.url("/"), 4, 8, io);
    plan.response_timeout = Duration::from_millis(150);
    assert_eq!(errors_of(&plan, 0), Errors { timed_out: 8, ..Errors::default() });
}

fn an_answer_of_another_length_is_counted(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        Reply::Bytes(ok(if asked.number == 4 { "hello, world" } else { "hello" }))
    });
    let errors = errors_of(&counted(&toy.url("/"), 1, 10, io), 9);
    assert_eq!(errors, Errors { length: 1, ..Errors::default() });
}

fn another_body_of_the_same_length_is_found(io: BackendChoice) {
    let toy =
        Toy::start(|asked| Reply::Bytes(ok(if asked.number == 4 { "jello" } else { "hello" })));
    let mut plan = counted(&toy.url("/"), 1, 10, io);
    plan.check_every = 1;
    assert_eq!(errors_of(&plan, 9), Errors { body: 1, ..Errors::default() });
    // Who looks at none of them does not find it.
    let toy =
        Toy::start(|asked| Reply::Bytes(ok(if asked.number == 4 { "jello" } else { "hello" })));
    let mut plan = counted(&toy.url("/"), 1, 10, io);
    plan.check_every = 0;
    assert_eq!(errors_of(&plan, 10), Errors::default());
}

fn what_is_no_http_is_unreadable(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Bytes(b"SSH-2.0-toy\r\n".to_vec()));
    let errors = errors_of(&counted(&toy.url("/"), 2, 4, io), 0);
    assert_eq!(errors, Errors { unreadable: 4, ..Errors::default() });
}

fn an_address_that_is_not_ours_leaves_no_port(io: BackendChoice) {
    let toy = Toy::friendly();
    let mut plan = counted(&toy.url("/"), 1, 3, io);
    // TEST-NET-1 (RFC 5737): no machine has it.
    plan.sources = vec![IpAddr::from([192, 0, 2, 1])];
    let outcome = outcome_of(&plan);
    assert_eq!(outcome.errors, Errors { no_port: 3, ..Errors::default() });
    assert!(outcome.warnings.iter().any(|word| word.contains("--source")), "{outcome:?}");
}
