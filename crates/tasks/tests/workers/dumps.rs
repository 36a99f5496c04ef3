//! What a dump tells of tasks.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use gustnado_tasks::{
    Acceptor, BlockingPool, Dump, Group, TaskInfo, TaskState, WaitsOn, dump, mailbox, sleep, spawn,
    spawn_named, timeout, yield_now,
};

use crate::setup::{PATIENCE, Served, Setup, connect, echo, echo_once, in_task, start, wait_until};

on_every_setup!(
    each_task_says_what_it_waits_for,
    a_wait_is_told_with_its_length,
    connections_wait_for_their_sockets,
    a_name_is_shown_from_the_first_run_to_the_end,
    any_thread_may_ask_at_any_time,
    the_table_has_a_line_for_each_task,
);
on_every_setup!(pinned: a_worker_that_is_held_is_shown_by_what_holds_it);
on_every_setup!(shared: a_task_that_holds_a_worker_is_shown_to_run);

fn named<'a>(dump: &'a Dump, name: &str) -> &'a TaskInfo {
    let mut found = dump.tasks.iter().filter(|task| task.name.as_deref() == Some(name));
    let task = found.next().unwrap_or_else(|| panic!("no task is called {name}:\n{dump}"));
    assert!(found.next().is_none(), "two are called {name}:\n{dump}");
    task
}

fn on(task: &TaskInfo) -> Option<WaitsOn> {
    match task.state {
        TaskState::Waiting { on, .. } => Some(on),
        _ => None,
    }
}

fn each_task_says_what_it_waits_for(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (full, _full) = mailbox(1);
        full.try_send(()).expect("one fits");
        let (_empty, mut empty) = mailbox::<()>(1);
        let pool = BlockingPool::new(1, 2);
        let (open, close_flag) = mpsc::channel::<()>();
        let handles = [
            spawn_named("sleeper", sleep(PATIENCE)),
            spawn_named("receiver", async move { _ = empty.recv().await }),
            spawn_named("sender", async move { _ = full.send(()).await }),
            spawn_named("joiner", async {
                let inner = spawn(pending::<()>()).expect("a slot is free").attach();
                let _ = inner.await;
            }),
            spawn_named("grouper", async {
                let mut group = Group::new(1);
                group.spawn(pending::<()>()).expect("a slot is free");
                group.next().await;
            }),
            spawn_named("blocker", async move { _ = pool.run(move || close_flag.recv()).await }),
            spawn_named("stranger", pending()),
            spawn_named("limited", async { _ = timeout(PATIENCE, pending::<()>()).await }),
        ];
        let handles = handles.map(|handle| handle.expect("a slot is free").attach());
        sleep(Duration::from_millis(20)).await;
        let dump = dump(PATIENCE).await;
        assert_eq!((dump.left_out, &dump.silent[..]), (0, &[][..]));
        for (name, expected) in [
            ("sleeper", WaitsOn::Timer),
            ("receiver", WaitsOn::MailboxReceive),
            ("sender", WaitsOn::MailboxSend),
            ("joiner", WaitsOn::Join),
            ("grouper", WaitsOn::Group),
            ("blocker", WaitsOn::Blocking),
            ("stranger", WaitsOn::Other),
            ("limited", WaitsOn::Timer),
        ] {
            assert_eq!(on(named(&dump, name)), Some(expected), "{name}:\n{dump}");
        }
        assert!(handles.iter().all(|handle| dump.tasks.iter().any(|task| task.id == handle.id())));
        drop(open);
    });
}

fn a_wait_is_told_with_its_length(setup: Setup) {
    in_task(&setup.plan(2), async {
        let (_sender, mut receiver) = mailbox::<()>(1);
        let waiting = spawn_named("waiting", async move {
            timeout(Duration::from_secs(9), receiver.recv()).await;
        });
        let waiting = waiting.expect("a slot is free").attach();
        sleep(Duration::from_millis(150)).await;
        let first = dump(PATIENCE).await;
        let first = named(&first, "waiting");
        let since = first.since.expect("it has run");
        assert_eq!(first.state, TaskState::Waiting { on: WaitsOn::MailboxReceive }, "{first:?}");
        assert!(since >= Duration::from_millis(120) && since < PATIENCE, "{since:?}");
        sleep(Duration::from_millis(150)).await;
        let second = dump(PATIENCE).await;
        let second = named(&second, "waiting");
        assert!(second.since.expect("it has run") >= since + Duration::from_millis(120));
        assert_eq!(second.id, waiting.id());
    });
}

fn connections_wait_for_their_sockets(setup: Setup) {
    for acceptor in Acceptor::ALL {
        let mut plan = setup.plan(2);
        plan.acceptor = acceptor;
        count_sockets(&start(&plan, echo));
    }
}

fn count_sockets(workers: &Served) {
    let mut clients: Vec<_> = (0..5).map(|_| connect(workers)).collect();
    clients.iter_mut().for_each(echo_once);
    let sockets = || {
        let dump = workers.dump(PATIENCE);
        assert!(dump.silent.is_empty(), "{dump}");
        let is_socket =
            |task: &&TaskInfo| matches!(on(task), Some(WaitsOn::Socket | WaitsOn::SocketRead));
        dump.tasks.iter().filter(is_socket).count()
    };
    // The acceptors wait for sockets too.
    wait_until("all five wait again", || sockets() >= 6);
    drop(clients);
    wait_until("all have ended", || sockets() <= 2);
}

fn a_name_is_shown_from_the_first_run_to_the_end(setup: Setup) {
    in_task(&setup.plan(2), async {
        let count = async || {
            let dump = dump(PATIENCE).await;
            dump.tasks.iter().filter(|task| task.name.is_some()).count()
        };
        let mut handles = Vec::new();
        for n in 0..20 {
            let handle = spawn_named(format!("task {n}"), pending::<()>());
            handles.push(handle.expect("a slot is free").attach());
        }
        sleep(Duration::from_millis(5)).await;
        assert_eq!(count().await, 20);
        drop(handles);
        let none_left = async {
            while count().await > 0 {
                yield_now().await;
            }
        };
        assert!(timeout(PATIENCE, none_left).await.is_some(), "names of ended tasks are kept");
    });
}

fn any_thread_may_ask_at_any_time(setup: Setup) {
    let workers = start(&setup.plan(3), echo);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let dump = workers.dump(PATIENCE);
                    assert!(dump.silent.is_empty(), "{dump}");
                }
            });
        }
        for n in 0..200 {
            let started = workers.spawner().spawn(async move {
                let handle = spawn_named(format!("child {n}"), sleep(Duration::from_millis(n % 7)));
                handle.expect("a slot is free").await.expect("it ends well");
                dump(PATIENCE).await;
            });
            started.expect("there is room");
            echo_once(&mut connect(&workers));
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(workers.counts().panics.load(Ordering::SeqCst), 0);
    workers.stop(PATIENCE);
    let last = workers.dump(Duration::from_millis(20));
    assert!(last.tasks.is_empty(), "{last}");
}

fn the_table_has_a_line_for_each_task(setup: Setup) {
    in_task(&setup.plan(2), async {
        let ticker = spawn_named("ticker", sleep(Duration::from_secs(77)));
        let _ticker = ticker.expect("a slot is free").attach();
        sleep(Duration::from_millis(5)).await;
        let dump = dump(PATIENCE).await;
        let table = dump.to_string();
        assert_eq!(table.lines().count(), 1 + dump.tasks.len(), "{table}");
        let line = table.lines().find(|line| line.ends_with("ticker")).expect("it is there");
        assert!(line.contains("timer") && line.contains(" s "), "{line}");
    });
}

/// Holds its worker until the flag is set.
async fn hold(held: mpsc::Sender<u64>, release: Arc<AtomicBool>) {
    let handle = spawn_named("holder", async move {
        held.send(0).expect("the test waits");
        while !release.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    handle.expect("a slot is free").await.expect("it ends well");
}

fn a_worker_that_is_held_is_shown_by_what_holds_it(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    let release = Arc::new(AtomicBool::new(false));
    let (held, is_held) = mpsc::channel();
    workers.spawner().spawn(hold(held, Arc::clone(&release))).expect("there is room");
    is_held.recv_timeout(PATIENCE).expect("a worker runs it");
    thread::sleep(Duration::from_millis(60));
    let dump = workers.dump(Duration::from_millis(100));
    let holder = named(&dump, "holder");
    assert_eq!(holder.state, TaskState::Running);
    assert_eq!(dump.silent, [holder.worker.expect("it is on one")]);
    assert!(holder.since.expect("it runs") >= Duration::from_millis(30), "{dump}");
    assert!(dump.to_string().contains("did not answer"));
    release.store(true, Ordering::SeqCst);
    assert!(workers.dump(PATIENCE).silent.is_empty());
}

fn a_task_that_holds_a_worker_is_shown_to_run(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    let release = Arc::new(AtomicBool::new(false));
    let (held, is_held) = mpsc::channel();
    workers.spawner().spawn(hold(held, Arc::clone(&release))).expect("there is room");
    is_held.recv_timeout(PATIENCE).expect("a worker runs it");
    thread::sleep(Duration::from_millis(60));
    let dump = workers.dump(PATIENCE);
    let holder = named(&dump, "holder");
    assert_eq!((holder.state, &dump.silent[..]), (TaskState::Running, &[][..]));
    assert!(holder.worker.is_some(), "{dump}");
    assert!(holder.since.expect("it runs") >= Duration::from_millis(30), "{dump}");
    release.store(true, Ordering::SeqCst);
}
