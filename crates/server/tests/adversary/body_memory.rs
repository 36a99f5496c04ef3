//! Bodies that hold the memory for bodies: honest clients are served all the same, and what nobody
//! reads is not kept.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::{BodyPolicy, Config};
use gustnado::forms::{FormError, FormLimits};
use gustnado::site::SiteFile;
use gustnado::{BodyError, Request, Routes, Server as Builder, blocking};

use crate::harness::client::{get, request};
use crate::harness::process::resident_bytes;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    slow_uploads_that_hold_all_memory_keep_no_honest_client_out,
    slow_uploads_go_to_the_disk_and_keep_no_honest_client_out,
    quick_uploads_beyond_the_budget_wait_for_each_other,
    a_body_that_trickles_after_a_fast_start_is_cut_within_the_window,
    a_body_that_is_read_is_charged_until_its_response,
    one_body_beyond_the_whole_budget_is_503,
    what_a_form_holds_is_charged_and_what_it_has_put_away_is_not,
    partial_heads_that_hold_all_memory_give_way,
    readers_that_take_nothing_hold_no_more_than_the_budget,
);

on_every_server!(alone: bodies_that_a_fixed_response_ignores_are_not_kept);

const MIB: usize = 1 << 20;
/// Bytes of each slow body that come with its head.
const FIRST: usize = 4_500;
/// Ten times the goal: the machine may be doing something else.
const SERVED_WITHIN: Duration = Duration::from_secs(1);

/// Handlers of each kind that read the body whole.
const KINDS: [&str; 3] = ["/inline", "/task", "/blocking"];

fn routes() -> Routes {
    let length = |request: &Request| request.bytes().len().to_string();
    let task = async |mut request: Request| -> Result<String, BodyError> {
        Ok(request.body_mut().bytes(4 * MIB).await?.len().to_string())
    };
    let call = blocking(|request: Request| request.bytes().len().to_string());
    Routes::new().post("/inline", length).post("/task", task).post("/blocking", call)
}

/// Memory for one mebibyte of bodies, which stay in memory.
fn short_of_memory(setup: Setup) -> Config {
    let (limit_body_memory, body_policy) = (MIB as u64, BodyPolicy::Memory);
    Config { limit_body_memory, body_policy, ..setup.patient_config() }
}

fn head(path: &str, length: usize) -> String {
    request("POST", path, &format!("Content-Length: {length}\r\n"))
}

/// Sends a body in two pieces, so that it has to be waited for. Returns the status and the time.
fn post_in_two(server: &Server, path: &str, bytes: usize) -> (u16, Duration) {
    let began = Instant::now();
    let mut client = server.connect();
    client.send(head(path, bytes) + &"h".repeat(bytes * 2 / 3));
    thread::sleep(Duration::from_millis(3));
    client.send("h".repeat(bytes - bytes * 2 / 3));
    let answer = client.read_answer();
    if answer.status == 200 {
        assert_eq!(answer.text(), bytes.to_string());
    }
    (answer.status, began.elapsed())
}

/// Posts a longer body. On a machine that stands still for seconds it may be told to try again.
fn post_patiently(server: &Server, path: &str) -> u16 {
    let mut statuses = (0..5).map(|_| post_in_two(server, path, 300_000).0);
    statuses.find(|status| *status != 503).unwrap_or(503)
}

/// Clients that have sent a fifth of a body each, in two pieces.
fn slow_uploads(server: &Server) -> Vec<Client> {
    let mut slow: Vec<Client> = Vec::new();
    for place in 0..200 {
        let mut client = server.connect();
        client.send(head(KINDS[place % KINDS.len()], 100_000) + &"s".repeat(FIRST));
        slow.push(client);
    }
    // What a first receive brings is held at any rate.
    thread::sleep(Duration::from_millis(100));
    for client in &mut slow {
        client.send("s".repeat(20_000 - FIRST));
    }
    slow
}

fn expect_honest_posts_served(server: &Server) {
    for place in 0..100 {
        let path = KINDS[place % KINDS.len()];
        let (status, took) = post_in_two(server, path, 10_000);
        assert_eq!(status, 200, "{path}, number {place}");
        assert!(took < SERVED_WITHIN, "{path}, number {place}: {took:?}");
    }
}

fn slow_uploads_that_hold_all_memory_keep_no_honest_client_out(setup: Setup) {
    let server = Server::routes(short_of_memory(setup), routes());
    let mut slow = slow_uploads(&server);
    server.wait_until("they hold it all", |stats| stats.memory_bodies > 800_000);
    // A quick client would have come to its end by now.
    thread::sleep(Duration::from_millis(1_500));
    expect_honest_posts_served(&server);
    let stats = server.stats();
    let most = MIB + 200 * FIRST;
    assert!(stats.memory_bodies <= most as u64, "{} held", stats.memory_bodies);
    // Fifty of them fit. Others wait for memory like honest ones, and so have the worst cut.
    assert!(stats.bodies_cut < 195, "{} cut", stats.bodies_cut);
    // Those that were cut are told so.
    for client in &mut slow {
        if client.has_bytes_within(Duration::from_millis(1)) {
            assert!([408, 503].contains(&client.read_answer().status));
        }
    }
    drop(slow);
    server.wait_until("all is released", |stats| stats.memory_bodies == 0);
}

/// As above, where bodies may go to the disk: then none is cut.
fn slow_uploads_go_to_the_disk_and_keep_no_honest_client_out(setup: Setup) {
    let config = Config { body_policy: BodyPolicy::Spool, ..short_of_memory(setup) };
    let server = Server::routes(config, routes());
    let slow = slow_uploads(&server);
    server.wait_until("much is on the disk", |stats| stats.spool_bytes > 2 * MIB as u64);
    expect_honest_posts_served(&server);
    let stats = server.stats();
    let most = MIB + 200 * FIRST;
    assert!(stats.memory_bodies <= most as u64, "{} held", stats.memory_bodies);
    assert_eq!(stats.bodies_cut, 0);
    drop(slow);
    server.wait_until("all is released", |stats| stats.memory_bodies + stats.spool_bytes == 0);
}

/// More than fits at once, but none of it slow: the kernel holds back what has to wait.
fn quick_uploads_beyond_the_budget_wait_for_each_other(setup: Setup) {
    let server = Server::routes(short_of_memory(setup), routes());
    for path in KINDS {
        thread::scope(|scope| {
            let uploads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| post_patiently(&server, path))).collect();
            for upload in uploads {
                assert_eq!(upload.join().expect("no panic"), 200, "{path}");
            }
        });
    }
    assert!(server.stats().bodies_cut <= 6, "{} cut", server.stats().bodies_cut);
    server.wait_until("all is released", |stats| stats.memory_bodies == 0);
}

fn a_body_that_trickles_after_a_fast_start_is_cut_within_the_window(setup: Setup) {
    let window = Duration::from_secs(1);
    let config = Config { body_timeout: window, body_rate_min: 240, ..setup.patient_config() };
    let server = Server::routes(config, routes());
    for path in KINDS {
        let mut client = server.connect();
        // At the least rate, these bytes would take six minutes.
        client.send(head(path, 200_000) + &"f".repeat(90_000));
        let began = Instant::now();
        while !client.has_bytes_within(Duration::from_millis(200)) {
            assert!(began.elapsed() < 10 * window, "{path}: it trickles on");
            client.send_unless_closed("t");
        }
        assert_eq!(client.read_answer().status, 408, "{path}");
    }
}

fn a_body_that_is_read_is_charged_until_its_response(setup: Setup) {
    let server = Server::routes(setup.patient_config(), routes());
    for path in KINDS {
        let mut client = server.connect();
        client.send(head(path, 300_000) + &"x".repeat(200_000));
        server.wait_until("it is charged", |stats| stats.memory_bodies >= 200_000);
        client.send("x".repeat(100_000));
        assert_eq!(client.read_answer().text(), "300000");
        server.wait_until("it is released", |stats| stats.memory_bodies == 0);
    }
}

fn one_body_beyond_the_whole_budget_is_503(setup: Setup) {
    let config = Config { limit_body_bytes: 4 * MIB as u64, ..short_of_memory(setup) };
    let server = Server::routes(config, routes());
    for path in KINDS {
        let mut client = server.connect();
        client.send(head(path, 3 * MIB));
        for _ in 0..48 {
            client.send_unless_closed("b".repeat(64 << 10));
        }
        let answer = client.read_answer();
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{path}");
        // Another one is served.
        assert_eq!(post_in_two(&server, path, 50_000).0, 200, "{path}");
    }
    assert_eq!(server.stats().bodies_cut, 3);
}

/// The beginning of a form: values of so many bytes each, and then a file.
fn form(values: &[usize], file_bytes: usize) -> String {
    let value = |bytes: &usize| {
        let head = "--x\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\n";
        format!("{head}{}\r\n", "v".repeat(*bytes))
    };
    let values: String = values.iter().map(value).collect();
    let file = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";
    format!("{values}{file}{}\r\n--x--\r\n", "f".repeat(file_bytes))
}

fn what_a_form_holds_is_charged_and_what_it_has_put_away_is_not(setup: Setup) {
    let read = async |mut request: Request| -> Result<String, FormError> {
        let limits = FormLimits { value_bytes_max: 4 * MIB, ..FormLimits::default() };
        let form = request.read_form_data(&limits).await?;
        let values: usize = form.values().map(|(_, value)| value.len()).sum();
        Ok(format!("{values} {}", form.files()[0].length()))
    };
    let fields = |length: usize| {
        let kind = "Content-Type: multipart/form-data; boundary=x";
        request("POST", "/form", &format!("{kind}\r\nContent-Length: {length}\r\n"))
    };
    let config = Config { limit_body_bytes: 16 * MIB as u64, ..short_of_memory(setup) };
    let server = Server::routes(config, Routes::new().post("/form", read));
    let body = form(&[90_000, 60_000], 5_000_000);
    let sent = fields(body.len()) + &body;
    let mut client = server.connect();
    client.send(&sent[..100_000]);
    server.wait_until("values are charged", |stats| stats.memory_bodies > 90_000);
    client.send(&sent[100_000..4_000_000]);
    server.wait_until("values and little else", |stats| {
        (150_000..700_000).contains(&stats.memory_bodies)
    });
    thread::sleep(Duration::from_millis(50));
    let held = server.stats().memory_bodies;
    assert!((150_000..700_000).contains(&held), "{held}");
    client.send(&sent[4_000_000..]);
    assert_eq!(client.read_answer().text(), "150000 5000000");
    server.wait_until("all is released", |stats| stats.memory_bodies == 0);
    // One that holds more than there is.
    let body = form(&[700_000, 700_000], 10);
    let mut client = server.connect();
    client.send_unless_closed(fields(body.len()) + &body);
    assert_eq!(client.read_answer().status, 503);
    assert_eq!(server.stats().bodies_cut, 1);
    server.wait_until("all is released", |stats| stats.memory_bodies == 0);
}

fn partial_heads_that_hold_all_memory_give_way(setup: Setup) {
    if Setup::http1_only("clients of these tests send heads of HTTP/2 whole") {
        return;
    }
    // Two mebibytes of these are for heads.
    let config = Config { max_memory: 16 << 20, ..setup.patient_config() };
    let server = Server::routes(config, routes());
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(12_000));
    let mut partial: Vec<Client> = Vec::new();
    for _ in 0..300 {
        let mut client = server.connect();
        client.send(&long);
        partial.push(client);
    }
    server.wait_until("they hold it all", |stats| stats.memory_heads > 2 << 20);
    thread::sleep(Duration::from_millis(700));
    for client in &mut partial {
        client.send_unless_closed("x");
    }
    server.wait_until("those who go on have given way", |stats| stats.memory_heads <= 2 << 20);
    let fields = format!("Content-Length: 3\r\nX: {}\r\n", "x".repeat(9_000));
    let whole = request("POST", "/inline", &fields) + "abc";
    let mut honest = server.connect();
    honest.send_cut(whole.as_bytes(), 8_000);
    assert_eq!(honest.read_answer().text(), "3");
    drop(partial);
    server.wait_until("all is released", |stats| stats.memory_heads == 0);
}

fn readers_that_take_nothing_hold_no_more_than_the_budget(setup: Setup) {
    const READERS: usize = 150;
    // Two mebibytes of these are for sends.
    let config =
        Config { max_memory: 16 << 20, send_buffer_bytes: 4_096, ..setup.patient_config() };
    let routes = Routes::new().get("/", |_: &Request| "r".repeat(3_000));
    let server = Server::routes(config, routes);
    let pipeline = get("/").repeat(200);
    let mut readers: Vec<Client> = Vec::new();
    for _ in 0..READERS {
        let mut client = Client::connect_narrow(server.address());
        client.send_unless_closed(&pipeline);
        readers.push(client);
    }
    server.wait_until("they hold some", |stats| stats.memory_sends > MIB as u64);
    thread::sleep(Duration::from_millis(300));
    let held = server.stats().memory_sends;
    assert!(held < 4 * MIB as u64, "{held} bytes of sends");
    assert_eq!(server.get("/").body.len(), 3_000);
    drop(readers);
    server.wait_until("all is released", |stats| stats.memory_sends == 0);
}

fn bodies_that_a_fixed_response_ignores_are_not_kept(setup: Setup) {
    if Setup::http1_only(
        "it counts memory, of which clients of HTTP/2 have much in the same process",
    ) {
        return;
    }
    let folder = Folder::new();
    let path = folder.outside().join("site.toml");
    let text = "[[route]]\npath = \"/fixed\"\nanswer = \"ok\"\nmethods = [\"POST\"]\n";
    let file = SiteFile::parse(&path, text).expect("nothing is wrong with it");
    let server: Builder = file.server_with(setup.patient_config());
    let server = Server::built(server);
    let before = resident_bytes();
    let body = vec![b'i'; MIB];
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = server.connect();
        client.send(head("/fixed", MIB));
        client.send_unless_closed(&body);
        clients.push(client);
    }
    wait_until("all have their response", || server.stats().answers_2xx == 300);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB as u64, "{} MiB for bodies that nobody reads", grown >> 20);
}
