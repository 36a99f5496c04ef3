//! Responses in all their forms, and requests in theirs.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gustnado_lab::plan::{BackendChoice, RequestSpec};

use crate::toy::{Reply, Toy, ok};
use crate::{counted, outcome_of};

crate::through_both_doors!(
    chunked_answers_are_read,
    answers_until_close_are_read,
    a_long_body_in_many_pieces_is_read,
    an_answer_to_head_has_no_body,
    an_old_request_says_so,
    bodies_and_fields_are_sent,
    weights_decide_how_often_a_url_is_asked,
    a_server_that_closes_politely_makes_no_errors,
    sources_and_targets_are_taken_in_turn,
    each_host_has_a_connection,
    a_unix_socket_is_loaded,
    every_request_is_in_the_trace,
);

fn chunked_answers_are_read(io: BackendChoice) {
    let toy = Toy::start(|_| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Reply::Bytes(format!("{head}2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n").into_bytes())
    });
    let mut plan = counted(&toy.url("/"), 3, 100, io);
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.connections_opened), (100, 3));
}

fn answers_until_close_are_read(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Last(b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec()));
    let mut plan = counted(&toy.url("/"), 3, 30, io);
    plan.check_every = 1;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (30, 0), "{:?}", outcome.errors);
    assert!(outcome.connections_opened >= 30, "{}", outcome.connections_opened);
}

fn a_long_body_in_many_pieces_is_read(io: BackendChoice) {
    let body = "0123456789abcdef".repeat(40_000);
    let answer = ok(&body);
    let length = answer.len() as u64;
    let toy = Toy::start(move |_| Reply::Bytes(answer.clone()));
    let mut plan = counted(&toy.url("/"), 4, 40, io);
    plan.check_every = 2;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.bytes_received), (40, 40 * length));
}

fn an_answer_to_head_has_no_body(io: BackendChoice) {
    let toy = Toy::start(|_| Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".into()));
    let mut plan = counted(&toy.url("/"), 2, 20, io);
    plan.requests[0].method = "HEAD".into();
    assert_eq!(outcome_of(&plan).requests, 20);
}

fn an_old_request_says_so(io: BackendChoice) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let toy = Toy::start(move |asked| {
        seen.lock().expect("nobody panics with it").push(asked.head.clone());
        let fields = "Content-Length: 2\r\nConnection: keep-alive";
        Reply::Bytes(format!("HTTP/1.0 200 OK\r\n{fields}\r\n\r\nok").into_bytes())
    });
    let mut plan = counted(&toy.url("/old"), 1, 3, io);
    plan.http = gustnado_lab::plan::HttpVersion::Http10;
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.connections_opened), (3, 1));
    for head in &*heads.lock().expect("nobody panicked with it") {
        assert!(head.starts_with("GET /old HTTP/1.0\r\n"), "{head}");
        assert!(head.contains("Connection: keep-alive\r\n"), "{head}");
    }
}

fn bodies_and_fields_are_sent(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        let right = asked.head.contains("X-Test: yes\r\n") && asked.body == b"a body";
        Reply::Bytes(if right { ok("fine") } else { b"HTTP/1.1 400 No\r\n\r\n".to_vec() })
    });
    let mut plan = counted(&toy.url("/"), 2, 20, io);
    plan.requests[0].method = "POST".into();
    plan.requests[0].fields.push(("X-Test".to_owned(), "yes".to_owned()));
    plan.requests[0].body = b"a body".to_vec();
    assert_eq!(outcome_of(&plan).requests, 20);
}

fn weights_decide_how_often_a_url_is_asked(io: BackendChoice) {
    let often = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&often);
    let toy = Toy::start(move |asked| {
        if asked.path() == "/often" {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Reply::Bytes(ok(asked.path()))
    });
    let mut plan = counted(&toy.url("/often"), 2, 400, io);
    plan.requests[0].weight = 3;
    let mut seldom = plan.requests[0].clone();
    (seldom.url, seldom.weight) = (toy.url("/seldom"), 1);
    plan.requests.push(seldom);
    plan.check_every = 1;
    assert_eq!(outcome_of(&plan).requests, 400);
    assert_eq!(often.load(Ordering::Relaxed), 300);
}

fn a_server_that_closes_politely_makes_no_errors(io: BackendChoice) {
    let toy = Toy::start(|asked| {
        if asked.number % 5 == 4 {
            let fields = "Content-Length: 5\r\nConnection: close";
            return Reply::Last(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhello").into_bytes());
        }
        Reply::Bytes(ok("hello"))
    });
    let outcome = outcome_of(&counted(&toy.url("/"), 2, 50, io));
    assert_eq!((outcome.requests, outcome.errors.total()), (50, 0), "{:?}", outcome.errors);
    assert!(outcome.connections_opened >= 10);
}

fn sources_and_targets_are_taken_in_turn(io: BackendChoice) {
    let (one, two) = (Toy::friendly(), Toy::friendly());
    let mut plan = counted(&one.url("/"), 8, 80, io);
    plan.sources = (2..=3_u8).map(|last| [127, 0, 0, last].into()).collect();
    plan.requests[0].targets = vec![one.address, two.address];
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (80, 0), "{:?}", outcome.errors);
    assert_eq!((one.opened(), two.opened()), (4, 4));
}

fn each_host_has_a_connection(io: BackendChoice) {
    // Three connections on two threads.
    let toys = [Toy::friendly(), Toy::friendly(), Toy::friendly()];
    let mut plan = counted(&toys[0].url("/"), 3, 30, io);
    let request = plan.requests.remove(0);
    plan.requests =
        toys.iter().map(|toy| RequestSpec { url: toy.url("/"), ..request.clone() }).collect();
    assert_eq!(outcome_of(&plan).requests, 30);
    assert_eq!(toys.each_ref().map(Toy::opened), [1, 1, 1]);
}

fn a_unix_socket_is_loaded(io: BackendChoice) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).expect("nothing is there");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut bytes = [0; 512];
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    // (Requests of this test come whole, one at a time.)
                    if stream.write_all(&ok("hello")).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut plan = counted("http://localhost/", 3, 60, io);
    plan.unix_socket = Some(path);
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.requests, outcome.errors.total()), (60, 0), "{:?}", outcome.errors);
}

fn every_request_is_in_the_trace(io: BackendChoice) {
    let toy = Toy::start(|_| {
        std::thread::sleep(Duration::from_millis(2));
        Reply::Bytes(ok("hello"))
    });
    let name = format!("trace-{}-{io:?}.tsv", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut plan = counted(&toy.url("/"), 3, 60, io);
    plan.trace = Some(path.clone());
    assert_eq!(outcome_of(&plan).requests, 60);
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it was written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("starttime\tseconds\tctime\tdtime\tttime\twait"));
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split('\t').skip(1).map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), 60);
    assert!(rows.windows(2).all(|two| two[0][3] <= two[1][3]), "sorted by ttime");
    assert!(rows.iter().all(|row| row[3] >= 2.0 && row[4] >= 2.0), "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row[1] > 0.0).count(), 3, "one connect each");
}
