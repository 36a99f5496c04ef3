//! Floods of wrong passwords: bounded, counted, and no harm to others.

use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::{Request, Routes, route};

use super::access::USERS;
use crate::harness::client::request;
use crate::harness::{Client, Folder, Server, Setup};

on_every_server!(a_flood_of_wrong_passwords_leaves_other_routes_alone);

/// Clients that guess at a time: more than may wait for one thread.
const CLIENTS: usize = 48;

fn a_flood_of_wrong_passwords_leaves_other_routes_alone(setup: Setup) {
    let folder = Folder::new();
    let users = folder.outside().join("users");
    // Some hundredths of a second for each check.
    std::fs::write(&users, USERS.replace("$05$", "$09$")).expect("a file");
    let private = route().any(|_: &Request| "in").tune(move |settings| {
        settings.access.basic_auth = Some(users.clone());
        settings.access.basic_auth_threads = 1;
    });
    let routes = Routes::new().route("/private", private).get("/", |_: &Request| "open");
    let config = Config { connections_max: 1_000, ..setup.patient_config() };
    let server = Server::routes(config, routes);
    // `eve:gu` and three bytes more.
    let guess = |number: usize| {
        let fields = format!("Authorization: Basic ZXZlOmd1{number:04}\r\n");
        request("GET", "/private", &fields)
    };
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(guess(number));
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
