//! Floods of wrong passwords: bounded, counted, and no harm to others.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Route, Routes, route};

use super::access::USERS;
use crate::harness::client::request;
use crate::harness::{Client, Folder, Server, Setup, wait_until};

on_every_server!(
    a_flood_of_wrong_passwords_leaves_other_routes_alone,
    a_flood_leaves_places_to_other_clients,
    routes_with_passwords_share_one_limit,
);

/// Clients that guess at a time: more than may wait for one thread.
const CLIENTS: usize = 48;

/// `bob:password`, which is right.
const BOB: &str = "Authorization: Basic Ym9iOnBhc3N3b3Jk\r\n";

fn config(setup: Setup) -> Config {
    Config { connections_max: 1_000, ..setup.patient_config() }
}

/// A route whose passwords take some hundredths of a second each, one at a time.
fn private(folder: &Folder) -> Route {
    let users = folder.outside().join("users");
    let others = "bob:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe";
    let text = format!("{}{others}\n", USERS.replace("$05$", "$09$"));
    std::fs::write(&users, text).expect("a file");
    route().any(|_: &Request| "in").tune(move |settings| {
        settings.access.basic_auth = Some(users.clone());
        settings.access.basic_auth_threads = 1;
    })
}

/// `ann:gu` and three bytes more.
fn guess(path: &str, number: usize) -> String {
    request("GET", path, &format!("Authorization: Basic YW5uOmd1{number:04}\r\n"))
}

fn a_flood_of_wrong_passwords_leaves_other_routes_alone(setup: Setup) {
    let folder = Folder::new();
    let routes = Routes::new().route("/private", private(&folder)).get("/", |_: &Request| "open");
    let server = Server::routes(config(setup), routes);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(guess("/private", number));
    }
    let mut other = server.connect();
    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(other.get("/").text(), "open");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
    let answers: Vec<_> = clients.iter_mut().map(Client::read_answer).collect();
    let count = |status| answers.iter().filter(|answer| answer.status == status).count() as u64;
    let (wrong, busy) = (count(401), count(503));
    assert!(wrong > 0 && busy > 0 && wrong + busy == CLIENTS as u64, "{wrong} {busy}");
    for answer in answers.iter().filter(|answer| answer.status == 503) {
        assert_eq!(answer.field("retry-after"), Some("1"));
    }
    let stats = server.stats();
    assert_eq!((stats.access_refused_password, stats.access_refused_busy), (wrong, busy));
    assert_eq!(stats.password_checks, wrong);
}

/// Clients of one address have half of the places, however many they are.
fn a_flood_leaves_places_to_other_clients(setup: Setup) {
    let folder = Folder::new();
    let server = Server::routes(config(setup), Routes::new().route("/private", private(&folder)));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(guess("/private", number));
    }
    wait_until("its places are taken", || server.stats().access_refused_busy > 0);
    let mut other = Client::connect_from(2, server.address());
    other.send(request("GET", "/private", BOB));
    assert_eq!(other.read_answer().text(), "in");
    let answers: Vec<_> = clients.iter_mut().map(|client| client.read_answer().status).collect();
    let busy = answers.iter().filter(|status| **status == 503).count();
    // 17 of them had a place at a time.
    assert!(busy >= CLIENTS / 3, "{busy} of {answers:?}");
}

/// However many routes ask, so many are checked at a time, and what one has checked all know.
fn routes_with_passwords_share_one_limit(setup: Setup) {
    let folder = Folder::new();
    let paths: Vec<String> = (0..8).map(|number| format!("/private/{number}")).collect();
    let route = |routes: Routes, path: &String| routes.route(path, private(&folder));
    let server = Server::routes(config(setup), paths.iter().fold(Routes::new(), route));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(guess(&paths[number % paths.len()], number));
    }
    let answers: Vec<_> = clients.iter_mut().map(|client| client.read_answer().status).collect();
    assert!(answers.contains(&401) && answers.contains(&503), "{answers:?}");
    let before = server.stats().password_checks;
    for path in &paths {
        assert_eq!(server.ask(request("GET", path, BOB)).text(), "in", "{path}");
    }
    assert_eq!(server.stats().password_checks, before + 1);
}
