//! Workers on a thread that is somebody else's: `Workers::start_driven` through the public
//! interface, with real sockets and pipes.

mod gathering;
#[path = "../workers/served.rs"]
mod served;
mod watching;

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use gustnado_tasks::{
    Acceptor, BoxTask, Connection, Driven, Growth, IoChoice, Phase, Placement, SchedulerKind,
    SocketOptions, SpawnError, Throttle, Turned, Wants, WatchEvent, WorkerPlan, Workers,
    WorkersStartError, block_on, mailbox, sleep, spawn_detached, timeout, worker, yield_now,
};
use rustix::process::{Signal, kill_process};

use served::{PATIENCE, Served, connect};

const READ: Wants = Wants { read: true, write: false };
const WRITE: Wants = Wants { read: false, write: true };

fn plan(workers: usize) -> WorkerPlan {
    WorkerPlan {
        workers,
        growth: Growth::default(),
        io: IoChoice::Auto,
        scheduler: SchedulerKind::Pool,
        slots: 0,
        connections_max: 2_000,
        placement: Placement::Spread,
        acceptor: Acceptor::PerWorker,
        defer_accept: false,
        drain_accept: Duration::from_millis(250),
        backlog: 1_024,
        sockets: SocketOptions::default(),
        spin_us: 0,
        buffers: 64,
        throttle: Throttle::default(),
    }
}

async fn echo(mut connection: Connection) {
    loop {
        let mut out = Connection::outgoing();
        match connection.recv(true).await {
            Ok(piece) if !piece.bytes().is_empty() => out.bytes.extend_from_slice(piece.bytes()),
            _ => return Connection::put_back(out),
        }
        if connection.send(out).await.is_err() {
            return;
        }
    }
}

fn start(plan: &WorkerPlan) -> (Served, Driven) {
    serve(plan, |connection| Box::pin(echo(connection)))
}

fn serve(
    plan: &WorkerPlan,
    serve: impl Fn(Connection) -> BoxTask + Send + Sync + 'static,
) -> (Served, Driven) {
    let (workers, driven) = Workers::start_driven(plan).expect("workers start");
    (Served::new(workers, Box::new(serve)), driven)
}

/// Workers that serve nobody.
fn start_bare() -> (Workers, Driven) {
    Workers::start_driven(&plan(1)).expect("a worker starts")
}

fn echo_once(client: &mut TcpStream) {
    client.write_all(b"x").expect("the server is there");
    let mut byte = [0];
    client.read_exact(&mut byte).expect("an echo comes");
}

/// A turn that holds on to nothing while it sleeps.
fn turn(driven: &Driven, timeout: Option<Duration>) -> (Turned, Vec<WatchEvent>) {
    let mut ready = Vec::new();
    let turned = driven.turn(timeout, &mut ready, &mut |sleep| sleep());
    (turned.expect("the kernel polls"), ready)
}

/// A turn that sleeps until something happens, and tells when it begins to.
fn sleeping_turn(driven: &Driven, asleep: &mpsc::Sender<()>) {
    let turned = driven.turn(None, &mut Vec::new(), &mut |sleep| {
        // (Whoever waited for the first time waits no more.)
        let _ = asleep.send(());
        sleep();
    });
    turned.expect("the kernel polls");
}

/// Turns until `is_done`.
fn drive(driven: &Driven, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < PATIENCE, "driven for {PATIENCE:?} in vain");
        turn(driven, Some(Duration::from_millis(5)));
    }
}

/// What a turn that does not wait finds.
fn found(driven: &Driven) -> Vec<(u64, [bool; 4])> {
    let (_, ready) = turn(driven, Some(Duration::ZERO));
    ready.iter().map(|one| (one.key, [one.read, one.write, one.error, one.hang_up])).collect()
}

/// A pipe with a byte in it.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&writer, b"x").expect("there is room");
    (reader, writer)
}

#[test]
fn connections_are_served_while_the_caller_drives() {
    let (workers, driven) = start(&plan(1));
    let mut clients: Vec<_> = (0..20).map(|_| connect(&workers)).collect();
    let asking = thread::spawn(move || {
        for _ in 0..5 {
            clients.iter_mut().for_each(echo_once);
        }
    });
    drive(&driven, || asking.is_finished());
    asking.join().expect("all echoes have come");
    drive(&driven, || workers.connections_open() == 0);
    assert_eq!(worker(), Some(0));
}

#[test]
fn a_thousand_connections_fit() {
    let (workers, driven) = start(&plan(1));
    let open: Vec<_> = (0..1_000).map(|_| connect(&workers)).collect();
    drive(&driven, || workers.connections_open() == 1_000);
    let asking = thread::spawn(move || {
        let mut open = open;
        for client in &mut open {
            client.write_all(b"x").expect("the server is there");
        }
        let mut byte = [0];
        for client in &mut open {
            client.read_exact(&mut byte).expect("an echo comes");
        }
    });
    drive(&driven, || asking.is_finished());
    asking.join().expect("all echoes have come");
    drive(&driven, || workers.connections_open() == 0);
}

#[test]
fn timers_fire_and_bound_the_sleep() {
    let (_workers, driven) = start_bare();
    let fired = Arc::new(AtomicBool::new(false));
    let task = Arc::clone(&fired);
    let began = Instant::now();
    let nap = async move {
        sleep(Duration::from_millis(30)).await;
        task.store(true, Ordering::SeqCst);
    };
    driven.spawn(nap).expect("a slot is free");
    while !fired.load(Ordering::SeqCst) {
        assert!(began.elapsed() < PATIENCE, "the timer does not fire");
        turn(&driven, None);
    }
    assert!(began.elapsed() >= Duration::from_millis(29));
    let began = Instant::now();
    let (turned, _) = turn(&driven, Some(Duration::from_millis(20)));
    assert!(began.elapsed() >= Duration::from_millis(19) && !turned.has_run);
}

#[test]
fn the_sleep_and_nothing_else_is_within_around() {
    let (_workers, driven) = start_bare();
    let (calls, asleep) = (Cell::new(0), Arc::new(AtomicBool::new(false)));
    let turn = |timeout| {
        let mut around = |sleep: &mut dyn FnMut()| {
            calls.set(calls.get() + 1);
            asleep.store(true, Ordering::SeqCst);
            sleep();
            asleep.store(false, Ordering::SeqCst);
        };
        driven.turn(timeout, &mut Vec::new(), &mut around).expect("the kernel polls")
    };
    turn(Some(Duration::ZERO));
    assert_eq!(calls.get(), 0, "a poll never sleeps");
    turn(Some(Duration::from_millis(1)));
    assert_eq!(calls.get(), 1);
    let was_asleep = Arc::new(AtomicUsize::new(0));
    let (asleep_now, count) = (Arc::clone(&asleep), Arc::clone(&was_asleep));
    let job = async move {
        for _ in 0..3 {
            yield_now().await;
            sleep(Duration::from_millis(1)).await;
            count.fetch_add(usize::from(asleep_now.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
    };
    driven.spawn(job).expect("a slot is free");
    let turned = turn(None);
    assert_eq!((turned.has_run, calls.get()), (true, 1), "what is ready does not wait");
    for _ in 0..20 {
        turn(Some(Duration::from_millis(2)));
    }
    assert!(calls.get() > 1 && was_asleep.load(Ordering::SeqCst) == 0);
}

#[test]
fn a_panic_of_the_caller_leaves_a_worker_that_can_be_driven() {
    let (_workers, driven) = start_bare();
    let turn_badly = || {
        _ = driven.turn(None, &mut Vec::new(), &mut |_| panic!("somebody's lock is broken"));
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(turn_badly));
    assert!(outcome.is_err());
    // Whoever does not sleep at all has just had a turn without a sleep.
    let turned = driven.turn(None, &mut Vec::new(), &mut |_| {}).expect("nothing was asked");
    assert_eq!(turned, Turned::default());
    driven.waker().wake();
    turn(&driven, None);
}

#[test]
fn another_thread_ends_a_sleep_at_once() {
    let (workers, driven) = start_bare();
    let waker = driven.waker();
    let (asleep, is_asleep) = mpsc::channel();
    let raising = thread::spawn(move || {
        is_asleep.recv_timeout(PATIENCE).expect("it sleeps");
        waker.wake();
    });
    sleeping_turn(&driven, &asleep);
    raising.join().expect("raised");
    driven.waker().wake();
    turn(&driven, None);
    // So do a wake-up and a task from there.
    let (sender, mut receiver) = mailbox(1);
    let heard = Arc::new(AtomicBool::new(false));
    let hearing = Arc::clone(&heard);
    let listen = async move {
        let value: Option<u32> = receiver.recv().await;
        hearing.store(value == Some(7), Ordering::SeqCst);
    };
    driven.spawn(listen).expect("a slot is free");
    let spawner = workers.spawner();
    let (asleep, is_asleep) = mpsc::channel();
    let sending = thread::spawn(move || {
        is_asleep.recv_timeout(PATIENCE).expect("it sleeps");
        let send = async move { sender.send(7).await.expect("somebody listens") };
        spawner.spawn(send).expect("there is room");
    });
    while !heard.load(Ordering::SeqCst) {
        sleeping_turn(&driven, &asleep);
    }
    sending.join().expect("sent");
}

#[test]
fn a_signal_ends_the_sleep_and_is_told() {
    let (_workers, driven) = start_bare();
    let seen = Arc::new(AtomicBool::new(false));
    let number = signal_hook::consts::SIGUSR1;
    signal_hook::flag::register(number, Arc::clone(&seen)).expect("a signal can be caught");
    let me = rustix::thread::gettid();
    let began = Instant::now();
    let mut is_interrupted = false;
    while !is_interrupted {
        assert!(began.elapsed() < PATIENCE, "no signal interrupts");
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            kill_process(me, Signal::USR1).expect("the thread is there");
        });
        (Turned { is_interrupted, .. }, _) = turn(&driven, Some(Duration::from_millis(500)));
        sending.join().expect("sent");
    }
    assert!(seen.load(Ordering::SeqCst));
}

#[test]
fn stopping_ends_whether_it_is_driven_or_not() {
    let (workers, driven) = start(&plan(1));
    let _client = connect(&workers);
    drive(&driven, || workers.connections_open() == 1);
    // On the thread that drives, and which does not drive meanwhile.
    let began = Instant::now();
    workers.stop(Duration::from_secs(5));
    assert!(began.elapsed() < Duration::from_secs(4), "it waits for whom it holds");
    assert!(!driven.has_ended());
    turn(&driven, None);
    assert!(driven.has_ended() && workers.connections_open() == 0);
    assert_eq!(driven.spawn(async {}), Err(SpawnError::Stopped));
    // It still watches.
    let (reader, _writer) = full_pipe();
    driven.watch(reader.as_raw_fd(), READ, 5).expect("a pipe can be watched");
    assert_eq!(found(&driven).len(), 1);
    drop(driven);
    assert_eq!(worker(), None);
}

#[test]
fn another_thread_stops_one_that_sleeps() {
    let (workers, driven) = start(&plan(1));
    let _client = connect(&workers);
    drive(&driven, || workers.connections_open() == 1);
    let (asleep, is_asleep) = mpsc::channel();
    let stopping = thread::spawn(move || {
        is_asleep.recv_timeout(PATIENCE).expect("it sleeps");
        workers.stop(PATIENCE);
    });
    while !driven.has_ended() {
        sleeping_turn(&driven, &asleep);
    }
    stopping.join().expect("stopped");
}

#[test]
fn dropping_it_ends_its_server_and_drops_its_tasks() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(worker().is_some(), Ordering::SeqCst);
        }
    }
    let (workers, driven) = start(&plan(2));
    let mut client = connect(&workers);
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Flag(Arc::clone(&dropped));
    let keep = async move {
        let _flag = flag;
        sleep(PATIENCE * 10).await;
    };
    driven.spawn(keep).expect("a slot is free");
    drive(&driven, || workers.connections_open() == 1);
    driven.end();
    assert!(dropped.load(Ordering::SeqCst), "its tasks end on their worker");
    assert_eq!(workers.phase(), Phase::Stopping);
    workers.stop(PATIENCE);
    assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0, "the connection has ended");
}

#[test]
fn several_may_follow_each_other_on_one_thread_and_block_on_besides() {
    assert_eq!(block_on(async { 1 }).expect("a reactor can be had"), 1);
    for round in 0..5 {
        let (workers, driven) = start(&plan(1));
        let refused = Workers::start_driven(&plan(1));
        assert!(matches!(refused, Err(WorkersStartError::Nested)), "one at a time");
        assert!(matches!(block_on(async {}), Err(WorkersStartError::Nested)));
        let mut client = connect(&workers);
        let asking = thread::spawn(move || echo_once(&mut client));
        drive(&driven, || asking.is_finished());
        asking.join().expect("an echo has come");
        if round % 2 == 0 {
            drop(workers);
            drop(driven);
        } else {
            drop(driven);
            drop(workers);
        }
        let nap = async { timeout(PATIENCE, sleep(Duration::from_millis(1))).await };
        assert_eq!(block_on(nap).expect("a reactor can be had"), Some(()));
    }
    let within = block_on(async {
        let refused = Workers::start_driven(&plan(1));
        matches!(refused, Err(WorkersStartError::Nested))
    });
    assert!(within.expect("a reactor can be had"));
}

#[test]
fn threads_work_beside_it() {
    let (workers, driven) = start(&plan(3));
    assert_eq!(workers.workers(), 3);
    let mut clients: Vec<_> = (0..60).map(|_| connect(&workers)).collect();
    drive(&driven, || workers.connections_open() == 60);
    let asking = thread::spawn(move || clients.iter_mut().for_each(echo_once));
    drive(&driven, || asking.is_finished());
    asking.join().expect("all echoes have come");
    drive(&driven, || workers.connections_open() == 0);
    let load: u64 = workers.workloads().iter().map(|one| one.connections_added).sum();
    assert_eq!(load, 60);
    workers.stop(PATIENCE);
}

#[test]
fn a_panic_in_a_task_is_contained() {
    let (workers, driven) = start_bare();
    driven.spawn(async { panic!("on purpose") }).expect("a slot is free");
    drive(&driven, || workers.counts().panics.load(Ordering::Relaxed) == 1);
}

#[test]
fn tasks_can_be_spawned_between_turns() {
    let (_workers, driven) = start_bare();
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let job = async move { _ = counting.fetch_add(1, Ordering::SeqCst) };
    spawn_detached(job).expect("a slot is free");
    let (turned, _) = turn(&driven, None);
    assert!(turned.has_run && count.load(Ordering::SeqCst) == 1);
}

#[test]
fn wishes_that_do_not_fit_are_told() {
    let wishes = WorkerPlan {
        io: IoChoice::Uring,
        scheduler: SchedulerKind::QueueShared,
        spin_us: 10,
        ..plan(1)
    };
    let (workers, driven) = start(&wishes);
    assert_eq!((workers.backend().name(), workers.notes().len()), ("epoll", 3));
    drop(driven);
}
