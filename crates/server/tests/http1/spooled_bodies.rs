//! Whole bodies that are long, or for which memory is short: they go to the disk, and handlers see
//! them as others.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use gustnado::config::{BodyPolicy, Config};
use gustnado::{Body, BodyError, Request, Routes, Server as Builder, StartError, blocking, route};

use crate::harness::client::get;
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup};
use crate::posts::{chunked, head, sized};

on_every_server!(
    long_bodies_arrive_whole_from_the_disk_while_little_is_in_memory,
    a_handler_s_body_takes_disk_until_it_is_dropped,
    a_body_that_dies_midway_leaves_nothing_behind,
    slow_bodies_give_their_memory_up_and_none_is_cut,
    bodies_share_the_disk_that_there_is,
    a_folder_that_is_gone_leaves_bodies_in_memory,
    a_reload_changes_folder_and_bound,
    a_route_keeps_its_bodies_in_memory,
    a_route_that_keeps_no_bodies_is_for_handlers_that_read_pieces,
);

const MIB: usize = 1 << 20;
/// Handlers of each kind that read the body whole.
const KINDS: [&str; 3] = ["/inline", "/task", "/blocking"];

/// The length of a body and a number that depends on each of its bytes.
fn digest(bytes: &[u8]) -> String {
    let step = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
    format!("{} {}", bytes.len(), bytes.iter().fold(0, step))
}

fn whole(request: &Request) -> String {
    digest(request.bytes())
}

async fn collected(mut request: Request) -> Result<String, BodyError> {
    Ok(digest(&request.body_mut().bytes(100 * MIB).await?))
}

async fn pieces(mut request: Request) -> Result<String, BodyError> {
    let mut body = std::mem::replace(request.body_mut(), Body::from_whole(Bytes::new()));
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(digest(&all))
}

fn routes() -> Routes {
    Routes::new()
        .get("/small", |_: &Request| "small")
        .post("/inline", whole)
        .post("/task", collected)
        .post("/blocking", blocking(|request: Request| whole(&request)))
}

/// Memory for one mebibyte of bodies.
fn config(setup: Setup, folder: &Folder) -> Config {
    Config {
        limit_body_memory: MIB as u64,
        limit_body_bytes: 100 * MIB as u64,
        body_spool: Some(folder.root()),
        ..setup.patient_config()
    }
}

fn wait_until_released(server: &Server) {
    server.wait_until("all is released", |stats| stats.spool_bytes + stats.memory_bodies == 0);
}

fn long_bodies_arrive_whole_from_the_disk_while_little_is_in_memory(setup: Setup) {
    let folder = Folder::new();
    let server = Server::routes(config(setup, &folder), routes());
    let body = noise(1, 5_000_003);
    let wanted = digest(&body);
    for target in KINDS {
        let mut client = server.connect();
        for sent in
            [sized(target, &body), chunked(target, &body, 1_000_000), chunked(target, &body, 7_777)]
        {
            client.send(&sent[..4_000_000]);
            server.wait_until("most is on the disk", |stats| stats.spool_bytes > 3_000_000);
            let held = server.stats().memory_bodies;
            assert!(held <= MIB as u64, "{target}: {held} bytes in memory");
            assert_eq!(fs::read_dir(folder.root()).expect("it is there").count(), 0);
            client.send(&sent[4_000_000..]);
            let answer = client.read_answer();
            assert_eq!((answer.status, answer.text()), (200, wanted.clone()), "{target}");
        }
        assert_eq!(client.get("/small").text(), "small");
    }
    let stats = server.stats();
    assert_eq!((stats.bodies_spooled, stats.bodies_cut, stats.spool_failed), (9, 0, 0));
    wait_until_released(&server);
}

fn a_handler_s_body_takes_disk_until_it_is_dropped(setup: Setup) {
    let folder = Folder::new();
    let kept: Arc<Mutex<Vec<Bytes>>> = Arc::default();
    let keeper = Arc::clone(&kept);
    let keep = move |mut request: Request| {
        let keeper = Arc::clone(&keeper);
        async move {
            let body = request.body_mut().bytes(100 * MIB).await?;
            keeper.lock().expect("no panic").push(body);
            Ok::<_, BodyError>("kept")
        }
    };
    let server = Server::routes(config(setup, &folder), Routes::new().post("/keep", keep));
    let body = noise(2, 2_000_000);
    assert_eq!(server.ask(sized("/keep", &body)).text(), "kept");
    server.wait_until("no memory is held", |stats| stats.memory_bodies == 0);
    assert_eq!(server.stats().spool_bytes, 2_000_000);
    let bodies = std::mem::take(&mut *kept.lock().expect("no panic"));
    assert!(bodies[0] == body);
    drop(bodies);
    wait_until_released(&server);
    // A short one needs no disk.
    assert_eq!(server.ask(sized("/keep", &body[..900_000])).text(), "kept");
    assert_eq!((server.stats().spool_bytes, server.stats().bodies_spooled), (0, 1));
}

fn a_body_that_dies_midway_leaves_nothing_behind(setup: Setup) {
    let folder = Folder::new();
    let server = Server::routes(config(setup, &folder), routes());
    let body = noise(3, 5_000_000);
    for target in KINDS {
        for leave in [drop::<Client>, Client::reset] {
            let mut client = server.connect();
            client.send(&sized(target, &body)[..3_000_000]);
            server.wait_until("some is on the disk", |stats| stats.spool_bytes > 2_000_000);
            leave(client);
            wait_until_released(&server);
        }
    }
    server.wait_until_empty();
    assert_eq!(server.ask(sized("/inline", &body)).text(), digest(&body));
}

fn slow_bodies_give_their_memory_up_and_none_is_cut(setup: Setup) {
    const SLOW: usize = 60;
    const FIRST: usize = 4_500;
    let folder = Folder::new();
    let server = Server::routes(config(setup, &folder), routes());
    let body = noise(4, 100_000);
    let wanted = digest(&body);
    let mut slow: Vec<Client> = (0..SLOW).map(|_| server.connect()).collect();
    for (place, client) in slow.iter_mut().enumerate() {
        client.send(head(KINDS[place % KINDS.len()], body.len()));
        client.send(&body[..FIRST]);
    }
    for client in &mut slow {
        client.send(&body[FIRST..60_000]);
    }
    let all = SLOW * 60_000;
    // What one receive brings is in memory until it is written, whatever was granted.
    server.wait_until("what does not fit is on the disk", |stats| {
        let has_come = stats.spool_bytes + stats.memory_bodies >= (all - SLOW * FIRST) as u64;
        has_come && stats.spool_bytes > MIB as u64 && stats.memory_bodies <= (MIB + MIB / 8) as u64
    });
    for target in KINDS {
        let mut honest = server.connect();
        honest.send_cut(&sized(target, &body[..10_000]), 8_000);
        assert_eq!(honest.read_answer().text(), digest(&body[..10_000]), "{target}");
    }
    for client in &mut slow {
        client.send(&body[60_000..]);
        assert_eq!(client.read_answer().text(), wanted);
    }
    assert_eq!(server.stats().bodies_cut, 0);
    wait_until_released(&server);
}

fn bodies_share_the_disk_that_there_is(setup: Setup) {
    let folder = Folder::new();
    let config = Config { body_spool_bytes: 2 * MIB as u64, ..config(setup, &folder) };
    let server = Server::routes(config, routes());
    let (body, server) = (noise(5, 5_000_000), &server);
    thread::scope(|scope| {
        for target in KINDS {
            let body = &body;
            scope.spawn(move || {
                let mut client = server.connect();
                client.send_unless_closed(sized(target, body));
                let answer = client.read_answer();
                let found = (answer.status, answer.field("retry-after"));
                assert_eq!(found, (503, Some("1")), "{target}");
            });
        }
    });
    wait_until_released(server);
    for target in KINDS {
        // What fits does, and what is short needs none.
        for length in [1_900_000, 300_000] {
            let answer = server.ask(sized(target, &body[..length]));
            assert_eq!(answer.text(), digest(&body[..length]), "{target}");
        }
    }
}

fn a_folder_that_is_gone_leaves_bodies_in_memory(setup: Setup) {
    let folder = Folder::new();
    let plenty = Config { limit_body_memory: 64 << 20, ..config(setup, &folder) };
    let server = Server::routes(plenty, routes());
    fs::remove_dir(folder.root()).expect("nothing is in it");
    let body = noise(6, 3_000_000);
    for target in KINDS {
        assert_eq!(server.ask(sized(target, &body)).text(), digest(&body), "{target}");
    }
    let stats = server.stats();
    assert_eq!((stats.spool_failed, stats.bodies_spooled, stats.spool_bytes), (3, 0, 0));
    drop(server);
    // A server does not start with it.
    let refused = Builder::new().config(config(setup, &folder)).routes(routes()).start();
    let Err(StartError::BodySpool { path, .. }) = &refused else {
        panic!("{:?}", refused.err());
    };
    assert_eq!(*path, folder.root());
    let line = refused.expect_err("no folder").to_string();
    assert!(line.starts_with("--body-spool ") && line.contains("choose a folder"), "{line}");
    // Where memory is short as well, the rules are those of memory.
    let second = Folder::new();
    let server = Server::routes(config(setup, &second), routes());
    fs::remove_dir(second.root()).expect("nothing is in it");
    let mut client = server.connect();
    client.send_unless_closed(sized("/inline", &body));
    assert_eq!(client.read_answer().status, 503);
    assert_eq!((server.stats().bodies_cut, server.stats().spool_failed), (1, 1));
}

fn a_reload_changes_folder_and_bound(setup: Setup) {
    let (folder, other) = (Folder::new(), Folder::new());
    let server = Server::routes(config(setup, &folder), routes());
    let body = noise(7, 1_500_000);
    let mut before = server.connect();
    before.send(&sized("/task", &body)[..1_000_000]);
    server.wait_until("it is on the disk", |stats| stats.spool_bytes > 500_000);
    let to = |config: Config| Builder::new().config(config).routes(routes());
    server.running().reload(to(config(setup, &other))).expect("it is valid");
    fs::remove_dir(folder.root()).expect("nothing is in it");
    before.send(&sized("/task", &body)[1_000_000..]);
    assert_eq!(before.read_answer().text(), digest(&body), "its file stays where it is");
    assert_eq!(server.ask(sized("/inline", &body)).text(), digest(&body));
    assert_eq!((server.stats().bodies_spooled, server.stats().spool_failed), (2, 0));
    let gone = server.running().reload(to(config(setup, &folder)));
    assert!(matches!(gone, Err(StartError::BodySpool { .. })), "{gone:?}");
    let none = Config { body_spool_bytes: 0, ..config(setup, &other) };
    server.running().reload(to(none)).expect("it is valid");
    let mut client = server.connect();
    client.send_unless_closed(sized("/inline", &noise(7, 3_000_000)));
    assert_eq!(client.read_answer().status, 503, "it has to stay in memory, which is short");
}

fn a_route_keeps_its_bodies_in_memory(setup: Setup) {
    let folder = Folder::new();
    let config = Config { limit_body_memory: 64 << 20, ..config(setup, &folder) };
    let own = |policy| route().body_policy(policy);
    let routes = Routes::new()
        .route("/memory", own(BodyPolicy::Memory).post(whole))
        .route("/spool", own(BodyPolicy::Spool).post(collected));
    let body = noise(8, 2_000_000);
    for (policy, target, spooled) in [
        (BodyPolicy::Spool, "/memory", 0),
        (BodyPolicy::Spool, "/spool", 1),
        (BodyPolicy::Memory, "/memory", 0),
        (BodyPolicy::Memory, "/spool", 1),
    ] {
        let config = Config { body_policy: policy, ..config.clone() };
        let server = Server::routes(config, routes.clone());
        assert_eq!(server.ask(sized(target, &body)).text(), digest(&body), "{target}");
        assert_eq!(server.stats().bodies_spooled, spooled, "{target} of {policy:?}");
    }
}

fn a_route_that_keeps_no_bodies_is_for_handlers_that_read_pieces(setup: Setup) {
    let folder = Folder::new();
    let config = Config { body_policy: BodyPolicy::Stream, ..config(setup, &folder) };
    let start = |routes: Routes| Builder::new().config(config.clone()).routes(routes).start();
    for routes in [
        Routes::new().post("/x", whole),
        Routes::new().any("/x", whole),
        Routes::new().post("/x", blocking(|_: Request| "x")),
        Routes::new().fallback(whole),
        Routes::new().matching(|_| true, whole),
    ] {
        let line = start(routes).map(|_| ()).expect_err("it needs bodies whole").to_string();
        assert!(line.contains("body policy stream") && line.contains("choose memory"), "{line}");
    }
    let own = route().post(whole).body_policy(BodyPolicy::Spool);
    let routes = Routes::new()
        .get("/small", |_: &Request| "small")
        .post("/pieces", pieces)
        .route("/whole", own);
    let server = Server::routes(config, routes);
    let body = noise(9, 2_000_000);
    assert_eq!(server.ask(sized("/pieces", &body)).text(), digest(&body));
    assert_eq!(server.stats().bodies_spooled, 0);
    assert_eq!(server.ask(sized("/whole", &body)).text(), digest(&body));
    let mut client = server.connect();
    // A request that has no use for its body gets its response all the same.
    client.send(get("/small").replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\n12345"));
    assert_eq!(client.read_answer().text(), "small");
    assert_eq!(client.get("/small").text(), "small");
}
