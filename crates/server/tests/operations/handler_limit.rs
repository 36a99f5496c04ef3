//! Handlers at a time: further requests wait in a bounded queue, the oldest is given up when it is
//! full, and the rate of good responses holds under overload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::config::Config;
use gustnado::task::sleep;
use gustnado::{Request, Routes, blocking, route};

use crate::harness::client::{get, post};
use crate::harness::{Client, Server, Setup};

on_every_server!(
    as_many_handlers_run_as_may_and_the_others_wait,
    the_oldest_is_given_up_when_the_queue_is_full,
    a_request_waits_for_a_handler_for_its_time_only,
    without_a_queue_none_waits,
    an_exempt_route_responds_whatever_waits,
    a_client_that_goes_leaves_the_queue,
    a_slow_body_keeps_no_thread_from_others,
    what_runs_no_handler_is_not_counted,
    good_responses_hold_at_three_times_the_load,
);

const WORK: Duration = Duration::from_millis(300);

/// Routes whose handlers take [`WORK`], with the largest number that ran at once.
fn routes() -> (Routes, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let enter = {
        let (most, running) = (Arc::clone(&most), Arc::clone(&running));
        move || _ = most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst)
    };
    let (enter_task, left) = (enter.clone(), Arc::clone(&running));
    let task = move |_: Request| {
        let (enter, left) = (enter_task.clone(), Arc::clone(&left));
        async move {
            enter();
            sleep(WORK).await;
            left.fetch_sub(1, Ordering::SeqCst);
            "done"
        }
    };
    let call = move |_: Request| {
        enter();
        thread::sleep(WORK);
        running.fetch_sub(1, Ordering::SeqCst);
        "done"
    };
    let routes = Routes::new()
        .get("/task", task)
        .any("/pool", blocking(call))
        .route("/health", route().exempt(true).get(async |_: Request| "healthy"))
        .get("/inline", |_: &Request| "inline");
    (routes, most)
}

fn config(setup: Setup, queue: usize) -> Config {
    Config { limit_concurrency: 2, handler_queue: queue, ..setup.patient_config() }
}

/// Clients that have sent a request, one after the other.
fn asking(server: &Server, path: &str, count: usize) -> Vec<Client> {
    let ask = |at: usize| {
        let mut client = server.connect();
        client.send(get(path));
        let due = at as u64 + 1;
        server.wait_until("it runs or waits", |stats| {
            stats.handlers_running + stats.handlers_queued + stats.handlers_refused >= due
        });
        client
    };
    (0..count).map(ask).collect()
}

fn as_many_handlers_run_as_may_and_the_others_wait(setup: Setup) {
    for path in ["/task", "/pool"] {
        let (routes, most) = routes();
        let server = Server::routes(config(setup, 8), routes);
        let clients = asking(&server, path, 6);
        assert_eq!((server.stats().handlers_running, server.stats().handlers_queued), (2, 4));
        for mut client in clients {
            assert_eq!(client.read_answer().text(), "done", "{path}");
        }
        assert_eq!(most.load(Ordering::SeqCst), 2, "{path}");
        server.wait_until("all have ended", |stats| stats.handlers_running == 0);
        assert_eq!(server.stats().handlers_refused, 0);
    }
}

fn the_oldest_is_given_up_when_the_queue_is_full(setup: Setup) {
    let server = Server::routes(config(setup, 2), routes().0);
    let mut clients = asking(&server, "/task", 5);
    // Two run, two wait, and the first of those that waited has made room for the last.
    let refused = clients[2].read_answer();
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    assert!(!refused.closes());
    for at in [0, 1, 3, 4] {
        assert_eq!(clients[at].read_answer().text(), "done", "client {at}");
    }
    assert_eq!(server.stats().handlers_refused, 1);
}

fn a_request_waits_for_a_handler_for_its_time_only(setup: Setup) {
    let handler_queue_timeout = Duration::from_millis(60);
    let server = Server::routes(Config { handler_queue_timeout, ..config(setup, 8) }, routes().0);
    let mut clients = asking(&server, "/task", 4);
    let statuses: Vec<_> = clients.iter_mut().map(|client| client.read_answer().status).collect();
    assert_eq!(statuses, [200, 200, 503, 503]);
}

fn without_a_queue_none_waits(setup: Setup) {
    let server = Server::routes(config(setup, 0), routes().0);
    let mut clients = asking(&server, "/task", 3);
    assert_eq!(clients[2].read_answer().status, 503);
    assert_eq!(clients[0].read_answer().status, 200);
}

fn an_exempt_route_responds_whatever_waits(setup: Setup) {
    let server = Server::routes(config(setup, 8), routes().0);
    let _busy = asking(&server, "/task", 6);
    assert_eq!(server.get("/health").text(), "healthy");
    assert_eq!(server.get("/inline").text(), "inline");
    assert!(server.stats().handlers_queued > 0);
}

fn a_client_that_goes_leaves_the_queue(setup: Setup) {
    let server = Server::routes(config(setup, 8), routes().0);
    let mut clients = asking(&server, "/task", 6);
    clients.drain(2..5).for_each(Client::reset);
    server.wait_until("they have left", |stats| stats.handlers_queued <= 1);
    for client in &mut clients {
        assert_eq!(client.read_answer().text(), "done");
    }
    server.wait_until("all have ended", |stats| stats.handlers_running == 0);
}

fn a_slow_body_keeps_no_thread_from_others(setup: Setup) {
    let server = Server::routes(config(setup, 8), routes().0);
    let request = post("/pool", "0123456789");
    let mut slow: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send(&request[..request.len() - 1]);
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!(server.stats().handlers_running, 0);
    assert_eq!(server.get("/pool").text(), "done");
    for client in &mut slow {
        client.send("9");
        assert_eq!(client.read_answer().text(), "done");
    }
}

fn what_runs_no_handler_is_not_counted(setup: Setup) {
    let server = Server::routes(config(setup, 0), routes().0);
    let _busy = asking(&server, "/task", 2);
    assert_eq!(server.get("/nothing").status, 404);
    assert_eq!(server.ask(post("/task", "")).status, 405);
}

/// Good responses per second of so many clients, each of which asks again and again. A response is
/// good within a quarter of a second.
fn goodput(server: &Server, clients: usize) -> f64 {
    const TIME: Duration = Duration::from_secs(2);
    let address = server.address();
    let begun = Instant::now();
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            thread::spawn(move || {
                let (mut client, mut good) = (Client::connect(address), 0);
                while begun.elapsed() < TIME {
                    let asked = Instant::now();
                    let answer = client.get("/job");
                    if answer.status == 200 && asked.elapsed() < Duration::from_millis(250) {
                        good += 1;
                    } else if answer.status == 503 {
                        thread::sleep(Duration::from_millis(100));
                    }
                }
                good
            })
        })
        .collect();
    let good: u32 = clients.into_iter().map(|it| it.join().expect("it counts")).sum();
    f64::from(good) / begun.elapsed().as_secs_f64()
}

fn good_responses_hold_at_three_times_the_load(setup: Setup) {
    let work = |_: Request| {
        thread::sleep(Duration::from_millis(10));
        "done"
    };
    let routes = || Routes::new().get("/job", blocking(work));
    let unlimited = Config { blocking_threads: 2, ..setup.patient_config() };
    let limited = Config { limit_concurrency: 2, handler_queue: 16, ..unlimited.clone() };
    let server = Server::routes(limited, routes());
    let before = goodput(&Server::routes(unlimited, routes()), 90);
    // Other programs on this machine can only lower a figure, so one run in three is enough.
    let holds = (0..3).any(|_| {
        let (peak, overloaded) = (goodput(&server, 8), goodput(&server, 90));
        println!("peak {peak:.0}/s, overloaded {overloaded:.0}/s, without a limit {before:.0}/s");
        overloaded > 0.8 * peak
    });
    assert!(holds, "the responses in time are fewer in three runs of three");
}
