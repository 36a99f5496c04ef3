//! Workers that come when all are held or full, and go when they are not needed.
//!
//! A gate stands in for a handler that blocks: it holds its worker until the test opens it.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use gustnado_tasks::{Acceptor, Connection, Growth, Phase, WorkerPlan};

use crate::setup::{PATIENCE, Served, Setup, anywhere, connect, echo, echo_once, is_ended, start};
use crate::setup::{read_some, wait_until};

on_every_setup!(
    a_worker_is_added_whenever_all_are_held_until_the_ceiling,
    without_a_ceiling_none_is_added,
    workers_that_are_not_needed_go_and_come_back,
    a_worker_that_is_held_from_its_first_moment_is_noticed,
    no_more_than_a_sixth_and_one_go_at_a_time,
    nothing_is_lost_while_workers_come_and_go,
    the_end_may_come_while_workers_come_and_go,
    tasks_from_elsewhere_find_the_workers_that_are_there,
);
on_every_setup!(pinned:
    a_worker_is_added_when_all_slots_are_taken,
    a_dismissed_worker_serves_what_it_has_to_the_end,
    who_stands_in_line_at_a_held_worker_is_served_by_another,
    a_listener_of_later_is_shared_too_and_ends_when_it_is_stopped,
);

const FLOOR: usize = 2;
const CEILING: usize = 4;

/// Holds threads while it is shut.
#[derive(Default)]
struct CloseFlag {
    open: Mutex<bool>,
    bell: Condvar,
    held: AtomicUsize,
    threads: Mutex<HashSet<ThreadId>>,
}

impl CloseFlag {
    fn pass(&self) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(thread::current().id());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.held.fetch_add(1, Ordering::SeqCst);
        while !*open {
            open = self.bell.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        self.held.fetch_sub(1, Ordering::SeqCst);
    }

    fn set(&self, open: bool) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
        self.bell.notify_all();
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// Threads that were ever held.
    fn threads(&self) -> usize {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Opens the gate whichever way a test ends, or its workers would never end.
struct Opener(Arc<CloseFlag>);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn growing(setup: Setup, shrink_ms: u64) -> WorkerPlan {
    let mut plan = setup.plan(FLOOR);
    plan.growth = Growth {
        workers_max: CEILING,
        shrink_period: Duration::from_millis(shrink_ms),
        ..Growth::default()
    };
    plan
}

/// Answers each byte with the number of its worker; a `!` first waits at the gate, with its thread.
async fn visit(mut connection: Connection, close_flag: Arc<CloseFlag>) {
    loop {
        let holds = match connection.recv(true).await {
            Ok(piece) if !piece.bytes().is_empty() => piece.bytes().contains(&b'!'),
            _ => return,
        };
        if holds {
            close_flag.pass();
        }
        let mut out = Connection::outgoing();
        let worker = gustnado_tasks::worker().expect("a task runs on a worker");
        out.bytes.push(u8::try_from(worker).expect("workers are few"));
        if connection.send(out).await.is_err() {
            return;
        }
    }
}

fn gated(plan: &WorkerPlan) -> (Served, Opener) {
    let close_flag = Arc::new(CloseFlag::default());
    let inner = Arc::clone(&close_flag);
    let workers = start(plan, move |connection| visit(connection, Arc::clone(&inner)));
    (workers, Opener(close_flag))
}

/// Asks for the worker that runs the connection.
fn ask(client: &mut TcpStream) -> usize {
    client.write_all(b"?").expect("the server is there");
    answer(client)
}

fn answer(client: &mut TcpStream) -> usize {
    let mut byte = [0];
    client.read_exact(&mut byte).expect("an answer comes");
    usize::from(byte[0])
}

fn answer_all(clients: &mut [TcpStream]) {
    for client in clients {
        answer(client);
    }
}

/// Connects and holds one more worker.
fn hold(workers: &Served, close_flag: &CloseFlag) -> TcpStream {
    let before = close_flag.held();
    let mut client = connect(workers);
    client.write_all(b"!").expect("the server is there");
    wait_until("one more worker is held", || close_flag.held() > before);
    client
}

/// Whether nothing comes for a while in which it would have.
fn is_silent(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(Duration::from_millis(60))).expect("60 ms are valid");
    let silent = read_some(client, &mut [0]).is_err();
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
    silent
}

fn a_worker_is_added_whenever_all_are_held_until_the_ceiling(setup: Setup) {
    for acceptor in Acceptor::ALL {
        let mut plan = growing(setup, 0);
        plan.acceptor = acceptor;
        let (workers, close_flag) = gated(&plan);
        assert_eq!(workers.workers(), FLOOR);
        let mut clients: Vec<_> = (0..CEILING).map(|_| hold(&workers, &close_flag.0)).collect();
        assert_eq!(
            (close_flag.0.held(), close_flag.0.threads()),
            (CEILING, CEILING),
            "{acceptor:?}"
        );
        assert_eq!(workers.workers(), CEILING);
        let mut late = connect(&workers);
        late.write_all(b"?").expect("the kernel takes it");
        assert!(is_silent(&mut late), "{acceptor:?}: the ceiling is the ceiling");
        assert_eq!(workers.workers(), CEILING);
        close_flag.0.set(true);
        answer(&mut late);
        for client in &mut clients {
            answer(client);
            ask(client);
        }
        let grown = workers.counts().workers_grown.load(Ordering::SeqCst);
        assert_eq!(grown, (CEILING - FLOOR) as u64);
    }
}

fn without_a_ceiling_none_is_added(setup: Setup) {
    for max in [0, FLOOR] {
        let mut plan = growing(setup, 0);
        plan.growth.workers_max = max;
        let (workers, close_flag) = gated(&plan);
        // (Where they land is the kernel's choice, so it may take some until both are held.)
        let mut clients = Vec::new();
        while close_flag.0.held() < FLOOR {
            let mut client = connect(&workers);
            client.write_all(b"!").expect("the server is there");
            clients.push(client);
            thread::sleep(Duration::from_millis(5));
        }
        assert!(is_silent(&mut clients[0]));
        assert_eq!((workers.workers(), close_flag.0.threads()), (FLOOR, FLOOR));
        close_flag.0.set(true);
        answer_all(&mut clients);
    }
}

fn workers_that_are_not_needed_go_and_come_back(setup: Setup) {
    for cache in [true, false] {
        let mut plan = growing(setup, 10);
        plan.growth.cache_workers = cache;
        let (workers, close_flag) = gated(&plan);
        for _ in 0..3 {
            close_flag.0.set(false);
            let mut clients: Vec<_> = (0..CEILING).map(|_| hold(&workers, &close_flag.0)).collect();
            assert_eq!(workers.workers(), CEILING);
            close_flag.0.set(true);
            answer_all(&mut clients);
            drop(clients);
            wait_until("the floor is left", || workers.workers() == FLOOR);
            thread::sleep(Duration::from_millis(30));
            assert_eq!(workers.workers(), FLOOR, "those of the start stay");
        }
        let [grown, shrunk] = [&workers.counts().workers_grown, &workers.counts().workers_shrunk]
            .map(|count| count.load(Ordering::SeqCst));
        assert!(grown >= 6 && grown == shrunk, "{grown} came and {shrunk} went");
        let threads = close_flag.0.threads();
        assert_eq!(threads == CEILING, cache, "{threads} threads");
    }
}

fn a_worker_that_is_held_from_its_first_moment_is_noticed(setup: Setup) {
    let mut plan = growing(setup, 0);
    plan.workers = 1;
    for _ in 0..20 {
        // Whoever connects at once may be served before the worker has polled.
        let (workers, close_flag) = gated(&plan);
        let clients = [(); 2].map(|()| hold(&workers, &close_flag.0));
        close_flag.0.set(true);
        drop(clients);
        workers.stop(PATIENCE);
    }
}

fn no_more_than_a_sixth_and_one_go_at_a_time(setup: Setup) {
    const PERIOD: Duration = Duration::from_millis(60);
    let mut plan = growing(setup, 60);
    plan.workers = 1;
    plan.growth.workers_max = 8;
    let (workers, close_flag) = gated(&plan);
    let clients: Vec<_> = (0..8).map(|_| hold(&workers, &close_flag.0)).collect();
    assert_eq!(workers.workers(), 8);
    close_flag.0.set(true);
    drop(clients);
    let mut all_seen = Instant::now();
    wait_until("the floor is left", || {
        let looked = Instant::now();
        let now = workers.workers();
        if now == 8 {
            all_seen = looked;
        }
        now == 1
    });
    // 8, 6, 4, 3, 2, 1: four periods lie between the first step and the last. (Whoever is to go may
    // be slow to hear of it.)
    assert!(all_seen.elapsed() >= PERIOD * 3, "{:?}", all_seen.elapsed());
}

/// Comes and goes, asks several times, and counts what it was told.
fn keep_visiting(workers: &Served, ends: &AtomicBool, visits: &AtomicUsize) {
    while !ends.load(Ordering::SeqCst) {
        let mut client = connect(workers);
        for _ in 0..5 {
            ask(&mut client);
            visits.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn nothing_is_lost_while_workers_come_and_go(setup: Setup) {
    for (cache, acceptor) in [(true, Acceptor::PerWorker), (false, Acceptor::Dedicated)] {
        let mut plan = growing(setup, 5);
        plan.growth.cache_workers = cache;
        plan.growth.grow_after = Duration::from_millis(1);
        plan.acceptor = acceptor;
        let (workers, close_flag) = gated(&plan);
        let (ends, visits) = (AtomicBool::new(false), AtomicUsize::new(0));
        let holds = thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| keep_visiting(&workers, &ends, &visits));
            }
            let mut holds = 0;
            for _ in 0..12 {
                close_flag.0.set(false);
                // Some of them share a worker with a visitor, who then waits for the gate.
                let mut clients: Vec<_> =
                    (0..CEILING).map(|_| hold(&workers, &close_flag.0)).collect();
                close_flag.0.set(true);
                answer_all(&mut clients);
                holds += clients.len();
                drop(clients);
                thread::sleep(Duration::from_millis(25));
            }
            ends.store(true, Ordering::SeqCst);
            holds
        });
        wait_until("all have gone", || workers.connections_open() == 0);
        let [grown, shrunk] = [&workers.counts().workers_grown, &workers.counts().workers_shrunk]
            .map(|count| count.load(Ordering::SeqCst));
        assert!(grown >= 3 && shrunk >= 3, "{grown} came and {shrunk} went");
        let accepted = workers.counts().accepted.load(Ordering::SeqCst);
        let visitors = visits.load(Ordering::SeqCst) / 5;
        assert_eq!(accepted, (holds + visitors) as u64, "each was accepted once");
        assert_eq!(workers.counts().accept_failed.load(Ordering::SeqCst), 0);
    }
}

fn the_end_may_come_while_workers_come_and_go(setup: Setup) {
    for round in 0..12 {
        let mut plan = growing(setup, 10);
        plan.growth.cache_workers = round % 2 == 0;
        let (workers, close_flag) = gated(&plan);
        let mut clients: Vec<_> = (0..FLOOR).map(|_| hold(&workers, &close_flag.0)).collect();
        let mut next = connect(&workers);
        next.write_all(b"!").expect("the server is there");
        clients.push(next);
        match round % 3 {
            // While one is about to come.
            0 => thread::sleep(Duration::from_millis(round)),
            1 => wait_until("one has come", || workers.workers() > FLOOR),
            // While it goes.
            _ => {
                wait_until("one has come", || workers.workers() > FLOOR);
                close_flag.0.set(true);
                drop(clients.drain(..));
                wait_until("one goes", || workers.workers() == FLOOR);
            }
        }
        workers.advance(Phase::Draining);
        close_flag.0.set(true);
        // Whoever came before the end is answered, and then it is over for all.
        for client in &mut clients {
            // (It may be over already.)
            let _ = client.shutdown(std::net::Shutdown::Write);
            let _ = read_some(client, &mut [0]);
            assert!(is_ended(client), "round {round}");
        }
        let began = Instant::now();
        workers.stop(PATIENCE);
        assert!(began.elapsed() < PATIENCE / 2, "round {round}: threads stay");
    }
}

fn tasks_from_elsewhere_find_the_workers_that_are_there(setup: Setup) {
    let (workers, close_flag) = gated(&growing(setup, 10));
    let spawner = workers.spawner();
    let run_some = || {
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..40 {
            let done = Arc::clone(&done);
            let task = async move { _ = done.fetch_add(1, Ordering::SeqCst) };
            spawner.spawn(task).expect("there is room");
        }
        wait_until("all have run", || done.load(Ordering::SeqCst) == 40);
        let dump = workers.dump(PATIENCE);
        assert!(dump.silent.is_empty(), "{dump}");
    };
    run_some();
    let clients: Vec<_> = (0..CEILING).map(|_| hold(&workers, &close_flag.0)).collect();
    close_flag.0.set(true);
    drop(clients);
    run_some();
    wait_until("the floor is left", || workers.workers() == FLOOR);
    run_some();
}

fn a_worker_is_added_when_all_slots_are_taken(setup: Setup) {
    let mut plan = growing(setup, 20);
    plan.slots = 3;
    if !setup.scheduler.as_str().starts_with("pool") {
        // A queue has no slots: the total is the only limit, and more workers would not move it.
        plan.connections_max = 6;
    }
    let has_slots = plan.connections_max > 6;
    let (workers, _gate) = gated(&plan);
    let mut clients: Vec<_> = (0..20).map(|_| connect(&workers)).collect();
    for client in &mut clients {
        client.write_all(b"?").expect("the kernel takes it");
    }
    let wanted = if has_slots { CEILING * 3 } else { 6 };
    wait_until("all places are taken", || workers.connections_open() == wanted);
    thread::sleep(Duration::from_millis(80));
    assert_eq!(workers.connections_open(), wanted);
    assert_eq!(workers.workers(), if has_slots { CEILING } else { FLOOR });
    // Each that goes makes room for one that waits, until all have been served.
    while !clients.is_empty() {
        let count = clients.len();
        clients.retain_mut(is_silent);
        assert!(clients.len() < count, "{count} clients wait in vain");
    }
    wait_until("the floor is left", || workers.workers() == FLOOR);
}

fn a_dismissed_worker_serves_what_it_has_to_the_end(setup: Setup) {
    let (workers, close_flag) = gated(&growing(setup, 10));
    let mut clients: Vec<_> = (0..CEILING).map(|_| hold(&workers, &close_flag.0)).collect();
    close_flag.0.set(true);
    let connection_slots: Vec<_> = clients.iter_mut().map(answer).collect();
    thread::sleep(Duration::from_millis(60));
    assert_eq!(workers.workers(), CEILING, "two are retired, and stay for their connections");
    let mut others: Vec<_> = (0..8).map(|_| connect(&workers)).collect();
    for other in &mut others {
        assert!(ask(other) < FLOOR, "one that was retired takes no more");
    }
    for (client, place) in clients.iter_mut().zip(&connection_slots) {
        assert_eq!(ask(client), *place, "a connection stays where it is");
    }
    drop(clients);
    wait_until("the floor is left", || workers.workers() == FLOOR);
    for other in &mut others {
        ask(other);
    }
}

fn who_stands_in_line_at_a_held_worker_is_served_by_another(setup: Setup) {
    for acceptor in Acceptor::ALL {
        let mut plan = growing(setup, 0);
        plan.acceptor = acceptor;
        let (workers, close_flag) = gated(&plan);
        let _held: Vec<_> = (0..FLOOR).map(|_| hold(&workers, &close_flag.0)).collect();
        for _ in 0..20 {
            let mut client = connect(&workers);
            assert!(ask(&mut client) >= FLOOR, "those of the start are held");
        }
        assert_eq!((close_flag.0.held(), workers.workers()), (FLOOR, FLOOR + 1), "{acceptor:?}");
    }
}

fn a_listener_of_later_is_shared_too_and_ends_when_it_is_stopped(setup: Setup) {
    let (workers, close_flag) = gated(&growing(setup, 0));
    let _held: Vec<_> = (0..FLOOR).map(|_| hold(&workers, &close_flag.0)).collect();
    let serve = Box::new(|connection| Box::pin(echo(connection)) as gustnado_tasks::BoxTask);
    // The held ones cannot begin to accept from it: so it is one of before that is held.
    close_flag.0.set(true);
    wait_until("nobody is held", || close_flag.0.held() == 0);
    let later = workers.listen(&anywhere(), false, serve).expect("a port is free");
    let gustnado_tasks::Endpoint::Tcp(address) = later.endpoint().clone() else {
        panic!("bound to {}", later.endpoint())
    };
    let to_later = || {
        let client = TcpStream::connect(address).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout above zero is valid");
        client
    };
    // Both accept from it once each has served somebody.
    (0..16).for_each(|_| echo_once(&mut to_later()));
    close_flag.0.set(false);
    let _held: Vec<_> = (0..FLOOR).map(|_| hold(&workers, &close_flag.0)).collect();
    (0..8).for_each(|_| echo_once(&mut to_later()));
    close_flag.0.set(true);
    later.stop();
    wait_until("nobody listens there", || TcpStream::connect(address).is_err());
}
