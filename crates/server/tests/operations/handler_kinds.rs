//! Limits of one kind of handler: of a route, of the blocking pool. Each has a bounded queue, from
//! which the oldest goes first, and none keeps handlers from the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gustnado::config::Config;
use gustnado::{BodyError, Request, Route, RouteError, Routes, blocking, route};

use crate::harness::client::{get, post, request};
use crate::harness::{Client, Server, Setup, wait_until};

on_every_server!(
    a_route_has_a_limit_of_its_own,
    all_paths_and_methods_of_a_route_share_its_limit,
    a_flooded_route_refuses_no_other_request,
    the_oldest_that_waits_for_a_thread_is_given_up,
    a_flooded_blocking_route_refuses_no_task,
    a_request_waits_for_a_thread_for_its_time_only,
    an_exempt_call_gets_the_next_thread,
    what_waits_is_charged_and_the_oldest_goes_when_memory_is_short,
    an_overload_of_three_times_costs_no_good_response,
);

/// What handlers wait at, in the order in which they come, until a ticket is handed out for each.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Tickets>, Condvar)>);

#[derive(Default)]
struct Tickets {
    asked: usize,
    handed_out: usize,
}

impl Gate {
    /// Waits for a ticket, on a thread of the pool.
    fn pass(&self) {
        let (tickets, change) = &*self.0;
        let mut tickets = tickets.lock().expect("no panic under it");
        let number = tickets.asked;
        tickets.asked += 1;
        let waits = |tickets: &mut Tickets| tickets.handed_out <= number;
        drop(change.wait_while(tickets, waits).expect("no panic under it"));
    }

    fn hand_out(&self, count: usize) {
        let (tickets, change) = &*self.0;
        tickets.lock().expect("no panic under it").handed_out += count;
        change.notify_all();
    }

    /// A handler on the pool that waits here.
    fn route(&self) -> Route {
        let gate = self.clone();
        let call = move |_: Request| {
            gate.pass();
            "through"
        };
        route().any(blocking(call))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // A test that fails must not leave threads behind that its server waits for.
        if thread::panicking() {
            self.hand_out(1 << 20);
        }
    }
}

async fn quick(_: Request) -> &'static str {
    "quick"
}

/// Clients that have sent a request, one after the other.
fn asking(server: &Server, path: &str, count: usize) -> Vec<Client> {
    let seen = |stats: &gustnado::Stats| {
        stats.handlers_running + stats.handlers_queued + stats.handlers_refused
    };
    let ask = |_| {
        let before = seen(&server.stats());
        let mut client = server.connect();
        client.send(get(path));
        server.wait_until("it runs, waits or is refused", |stats| seen(stats) > before);
        client
    };
    (0..count).map(ask).collect()
}

fn assert_refused(client: &mut Client) {
    let refused = client.read_answer();
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    assert!(!refused.closes());
}

fn one_thread(setup: Setup, blocking_queue: usize) -> Config {
    Config { blocking_threads: 1, blocking_queue, ..setup.patient_config() }
}

fn a_route_has_a_limit_of_its_own(setup: Setup) {
    let gate = Gate::default();
    let routes = Routes::new()
        .route("/narrow", gate.route().limit_concurrency(2))
        .route("/wide", gate.route());
    let server = Server::routes(Config { handler_queue: 1, ..setup.patient_config() }, routes);
    let mut narrow = asking(&server, "/narrow", 4);
    assert_refused(&mut narrow.remove(2));
    let mut wide = asking(&server, "/wide", 3);
    let stats = server.stats();
    assert_eq!((stats.handlers_running, stats.handlers_queued, stats.handlers_refused), (5, 1, 1));
    gate.hand_out(6);
    for client in narrow.iter_mut().chain(&mut wide) {
        assert_eq!(client.read_answer().text(), "through");
    }
    server.wait_until("all have ended", |stats| stats.handlers_running == 0);
}

fn all_paths_and_methods_of_a_route_share_its_limit(setup: Setup) {
    let gate = Gate::default();
    let routes = Routes::new().mount("/api", gate.route().limit_concurrency(1));
    let server = Server::routes(Config { handler_queue: 0, ..setup.patient_config() }, routes);
    let mut first = asking(&server, "/api/users", 1);
    assert_eq!(server.get("/api").status, 503);
    assert_eq!(server.ask(post("/api/", "body")).status, 503);
    gate.hand_out(1);
    assert_eq!(first[0].read_answer().text(), "through");
}

/// The server allows as many as two routes need, of which one is flooded.
fn a_flooded_route_refuses_no_other_request(setup: Setup) {
    let gate = Gate::default();
    let routes =
        Routes::new().route("/narrow", gate.route().limit_concurrency(2)).get("/quick", quick);
    let config = Config { limit_concurrency: 3, handler_queue: 2, ..setup.patient_config() };
    let server = Server::routes(config, routes);
    let mut flood = asking(&server, "/narrow", 20);
    for _ in 0..20 {
        assert_eq!(server.get("/quick").text(), "quick");
    }
    assert_eq!(server.stats().handlers_refused, 16);
    flood[2..18].iter_mut().for_each(assert_refused);
    gate.hand_out(4);
    for at in [0, 1, 18, 19] {
        assert_eq!(flood[at].read_answer().text(), "through", "client {at}");
    }
}

fn the_oldest_that_waits_for_a_thread_is_given_up(setup: Setup) {
    let gate = Gate::default();
    let server = Server::routes(one_thread(setup, 2), Routes::new().route("/", gate.route()));
    let mut clients = asking(&server, "/", 5);
    clients[1..3].iter_mut().for_each(assert_refused);
    assert_eq!(server.stats().handlers_refused, 2);
    gate.hand_out(3);
    for at in [0, 3, 4] {
        assert_eq!(clients[at].read_answer().text(), "through", "client {at}");
    }
}

fn a_flooded_blocking_route_refuses_no_task(setup: Setup) {
    let gate = Gate::default();
    let read = async |mut request: Request| -> Result<String, BodyError> {
        Ok(request.body_mut().bytes(1_000).await?.len().to_string())
    };
    let routes =
        Routes::new().route("/pool", gate.route()).get("/quick", quick).post("/read", read);
    let server = Server::routes(one_thread(setup, 2), routes);
    let mut flood = asking(&server, "/pool", 20);
    for _ in 0..20 {
        assert_eq!(server.get("/quick").text(), "quick");
        assert_eq!(server.ask(post("/read", "0123456789")).text(), "10");
    }
    assert_eq!(server.stats().handlers_refused, 17);
    gate.hand_out(3);
    assert_eq!(flood[0].read_answer().text(), "through");
}

fn a_request_waits_for_a_thread_for_its_time_only(setup: Setup) {
    let gate = Gate::default();
    let blocking_queue_timeout = Duration::from_millis(60);
    let config = Config { blocking_queue_timeout, ..one_thread(setup, 8) };
    let server = Server::routes(config, Routes::new().route("/", gate.route()));
    let mut clients = asking(&server, "/", 3);
    clients[1..].iter_mut().for_each(assert_refused);
    gate.hand_out(1);
    assert_eq!(clients[0].read_answer().text(), "through");
    assert_eq!(server.stats().handlers_refused, 2);
}

fn an_exempt_call_gets_the_next_thread(setup: Setup) {
    let (gate, order) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let noting = |name: &'static str| {
        let (gate, order) = (gate.clone(), Arc::clone(&order));
        blocking(move |_: Request| {
            gate.pass();
            order.lock().expect("no panic under it").push(name);
            name
        })
    };
    let routes = Routes::new()
        .get("/usual", noting("usual"))
        .route("/health", route().exempt(true).get(noting("health")));
    let server = Server::routes(one_thread(setup, 4), routes);
    let mut usual = asking(&server, "/usual", 3);
    let mut exempt = server.connect();
    exempt.send(get("/health"));
    // Nothing counts it: in this time it reaches the pool's queue.
    thread::sleep(Duration::from_millis(100));
    gate.hand_out(4);
    assert_eq!(exempt.read_answer().text(), "health");
    for client in &mut usual {
        assert_eq!(client.read_answer().text(), "usual");
    }
    let order = order.lock().expect("no panic under it");
    assert_eq!(*order, ["usual", "health", "usual", "usual"]);
    assert_eq!(server.stats().handlers_refused, 0);
}

fn what_waits_is_charged_and_the_oldest_goes_when_memory_is_short(setup: Setup) {
    const HEAD: usize = 30_000;
    const BUDGET: u64 = 1 << 20;
    // What both workers have not published yet.
    const UNPUBLISHED: u64 = 2 * (64 << 10);
    let gate = Gate::default();
    let config = Config {
        max_memory: 16 * BUDGET,
        limit_head_bytes: 65_535,
        blocking_queue_timeout: Duration::from_mins(10),
        ..one_thread(setup, 1_024)
    };
    let server = Server::routes(config, Routes::new().route("/", gate.route()));
    let large = request("GET", "/", &format!("X-Large: {}\r\n", "x".repeat(HEAD)));
    let mut clients: Vec<_> = (0..60)
        .map(|at| {
            let mut client = server.connect();
            client.send(&large);
            server.wait_until("it runs, waits or is refused", |stats| {
                stats.handlers_running + stats.handlers_queued + stats.handlers_refused > at
            });
            client
        })
        .collect();
    let stats = server.stats();
    assert!(stats.memory_queue > BUDGET / 2, "{} charged", stats.memory_queue);
    let most = BUDGET + UNPUBLISHED + 2 * HEAD as u64;
    assert!(stats.memory_queue <= most, "{} charged", stats.memory_queue);
    assert!((15..=40).contains(&stats.handlers_refused), "{} refused", stats.handlers_refused);
    // The first one runs; after it the oldest have gone.
    let refused = usize::try_from(stats.handlers_refused).expect("a few");
    clients[1..=refused].iter_mut().for_each(assert_refused);
    gate.hand_out(60);
    for client in clients.iter_mut().skip(1 + refused) {
        assert_eq!(client.read_answer().text(), "through");
    }
    server.wait_until("all is released", |stats| stats.memory_queue == 0);
}

/// Two threads and three times as many requests as they take. It is counted, not timed: in each
/// round two calls may end and six requests come.
fn an_overload_of_three_times_costs_no_good_response(setup: Setup) {
    const ROUNDS: usize = 12;
    const THREADS: usize = 2;
    let (gate, round) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (ended, oldest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let call = {
        let (gate, round) = (gate.clone(), Arc::clone(&round));
        let (ended, oldest) = (Arc::clone(&ended), Arc::clone(&oldest));
        move |request: Request| {
            gate.pass();
            let came: usize = request.param("round").parse().expect("a number");
            oldest.fetch_max(round.load(Ordering::SeqCst) - came, Ordering::SeqCst);
            ended.fetch_add(1, Ordering::SeqCst);
            "good"
        }
    };
    let config = Config {
        blocking_threads: THREADS,
        blocking_queue: 2 * THREADS,
        blocking_queue_timeout: Duration::from_mins(10),
        ..setup.patient_config()
    };
    let server = Server::routes(config, Routes::new().get("/{round}", blocking(call)));
    let mut clients = Vec::new();
    for at in 0..ROUNDS {
        round.store(at, Ordering::SeqCst);
        clients.extend(asking(&server, &format!("/{at}"), 3 * THREADS));
        gate.hand_out(THREADS);
        wait_until("the threads' calls end", || ended.load(Ordering::SeqCst) == (at + 1) * THREADS);
        // Those that waited for longest have taken their places.
        server.wait_until("the threads are taken again", |stats| {
            (stats.handlers_running, stats.handlers_queued) == (THREADS as u64, THREADS as u64)
        });
    }
    // No thread was ever idle, and no response came too late to be of use.
    assert_eq!(ended.load(Ordering::SeqCst), ROUNDS * THREADS);
    let oldest = oldest.load(Ordering::SeqCst);
    assert!(oldest <= 2, "a response came {oldest} rounds after its request");
    gate.hand_out(clients.len());
    let statuses: Vec<_> = clients.iter_mut().map(|client| client.read_answer().status).collect();
    let good = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(good, (ROUNDS + 2) * THREADS, "those that ran or waited are good as well");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
}

#[test]
fn two_limits_of_one_path_are_refused() {
    let refused = |one: Route, other: Route| {
        let routes = Routes::new().route("/", one).route("/", other);
        gustnado::test::TestClient::with_config(&routes, &Config::default()).err()
    };
    let limit = |number| route().limit_concurrency(number);
    let found = refused(limit(1).get(quick), limit(2).post(quick));
    assert!(matches!(found, Some(RouteError::LimitRepeated { path }) if path == "/"));
    let found = refused(route().any(quick), route().any(quick));
    assert!(matches!(found, Some(RouteError::Repeated { .. })), "{found:?}");
    assert!(refused(limit(1).get(quick), limit(1).post(quick)).is_none());
}
