//! What every test here stands on: workers on a free port, a task to run a test in, a deadline.

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use crate::served::{PATIENCE, Served, address, anywhere, connect};

use gustnado_tasks::{
    Acceptor, BackendKind, BoxTask, Connection, Growth, IoChoice, Placement, SchedulerKind,
    SocketOptions, Throttle, WorkerPlan, Workers, probe_uring,
};

/// The backend and the scheduler that a test runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) io: IoChoice,
    pub(crate) scheduler: SchedulerKind,
}

impl Setup {
    pub(crate) fn plan(self, workers: usize) -> WorkerPlan {
        WorkerPlan {
            workers,
            growth: Growth::default(),
            io: self.io,
            scheduler: self.scheduler,
            slots: 0,
            connections_max: 512,
            placement: Placement::Spread,
            acceptor: Acceptor::PerWorker,
            defer_accept: false,
            drain_accept: Duration::from_millis(250),
            backlog: 128,
            sockets: SocketOptions::default(),
            spin_us: 0,
            buffers: 64,
            throttle: Throttle::default(),
        }
    }
}

/// Starts workers whose connections are served by `serve`.
pub(crate) fn start<F>(
    plan: &WorkerPlan,
    serve: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> Served
where
    F: Future<Output = ()> + Send + 'static,
{
    let workers = Workers::start(plan).expect("workers start");
    assert_backend(plan, &workers);
    let serve = Box::new(move |connection| Box::pin(serve(connection)) as BoxTask);
    let served = Served::new(workers, serve);
    let is_one = plan.scheduler.is_shared() || plan.acceptor == Acceptor::Dedicated;
    let acceptors = if is_one { 1 } else { plan.workers as u64 };
    let began = Instant::now();
    while served.tasks_live() < acceptors {
        assert!(began.elapsed() < PATIENCE, "a worker does not begin to accept");
        thread::sleep(Duration::from_millis(1));
    }
    served
}

/// Asserts that workers are on the backend that was asked for: on epoll they would pass a test
/// under the name of `io_uring`.
pub(crate) fn assert_backend(plan: &WorkerPlan, workers: &Workers) {
    let wanted = match plan.io {
        IoChoice::Auto => return,
        // (Shared schedulers use epoll, whatever is asked for.)
        IoChoice::Uring if !plan.scheduler.is_shared() => BackendKind::Uring,
        _ => BackendKind::Epoll,
    };
    assert_eq!(workers.backend(), wanted, "{:?}", workers.notes());
}

/// Writes one byte and waits for it to come back.
pub(crate) fn echo_once(client: &mut TcpStream) {
    client.write_all(b"x").expect("the server is there");
    let mut byte = [0];
    client.read_exact(&mut byte).expect("an echo comes");
}

/// Whether the peer ends the connection without another byte.
pub(crate) fn is_ended(client: &mut TcpStream) -> bool {
    match read_some(client, &mut [0; 16]) {
        Ok(len) => len == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Reads once. (The end of a ring that was tried on this thread may interrupt a call of it.)
pub(crate) fn read_some(client: &mut TcpStream, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match client.read(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Sends back what comes, until the peer's end.
pub(crate) async fn echo(mut connection: Connection) {
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

/// Runs a test as a task of workers with this plan, and waits for its end.
pub(crate) fn in_task<T: Send + 'static>(
    plan: &WorkerPlan,
    test: impl Future<Output = T> + Send + 'static,
) -> T {
    let (done, outcome) = mpsc::channel();
    let job = Mutex::new(Some(async move {
        let result = test.await;
        done.send(result).expect("the test is waited for");
    }));
    let workers = start(plan, move |connection| {
        let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            if let Some(job) = job {
                job.await;
            }
            drop(connection);
        }
    });
    let _client = connect(&workers);
    let result = outcome.recv_timeout(PATIENCE).expect("the test's task ends well and in time");
    workers.stop(PATIENCE);
    result
}

/// Waits until `holds`, looking every millisecond.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Processor time that a thread of this process has used.
pub(crate) fn cpu_time(thread: i32) -> Duration {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).expect("the thread is there");
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.expect("the first number is nanoseconds on a processor"))
}

/// Makes a module of tests: each function named, with each backend and scheduler. The shared
/// schedulers run on epoll only.
macro_rules! on_every_setup {
    ($($test:ident),+ $(,)?) => {
        on_every_setup!(@on epoll_pool Epoll Pool [$($test)+]);
        on_every_setup!(@on epoll_pool_shared Epoll PoolShared [$($test)+]);
        on_every_setup!(@on epoll_queue Epoll Queue [$($test)+]);
        on_every_setup!(@on epoll_queue_shared Epoll QueueShared [$($test)+]);
        on_every_setup!(@on uring_pool Uring Pool [$($test)+]);
        on_every_setup!(@on uring_queue Uring Queue [$($test)+]);
    };
    (pinned: $($test:ident),+ $(,)?) => {
        on_every_setup!(@on pinned_epoll_pool Epoll Pool [$($test)+]);
        on_every_setup!(@on pinned_epoll_queue Epoll Queue [$($test)+]);
        on_every_setup!(@on pinned_uring_pool Uring Pool [$($test)+]);
        on_every_setup!(@on pinned_uring_queue Uring Queue [$($test)+]);
    };
    (shared: $($test:ident),+ $(,)?) => {
        on_every_setup!(@on pool_shared Epoll PoolShared [$($test)+]);
        on_every_setup!(@on queue_shared Epoll QueueShared [$($test)+]);
    };
    (@on $place:ident $io:ident $scheduler:ident [$($test:ident)+]) => {
        mod $place {
            use crate::setup::{Setup, run};
            use gustnado_tasks::{IoChoice, SchedulerKind};

            const SETUP: Setup =
                Setup { io: IoChoice::$io, scheduler: SchedulerKind::$scheduler };

            $(
                #[test]
                fn $test() {
                    let name = concat!(module_path!(), "::", stringify!($test));
                    run(name, SETUP, super::$test);
                }
            )+
        }
    };
}

/// Runs the test `name`, unless its backend cannot be had here.
pub(crate) fn run(name: &str, setup: Setup, test: fn(Setup)) {
    if setup.io != IoChoice::Uring || has_uring(name) {
        test(setup);
    }
}

/// Whether there is an `io_uring` for the test `name`; a line says that it is skipped if not.
pub(crate) fn has_uring(name: &str) -> bool {
    let probed = probe_uring();
    if let Err(error) = &probed {
        // (Not by `println!`: libtest shows that of tests that fail only.)
        let line = format!("skipped: {name}: io_uring cannot be used here ({error})\n");
        io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    }
    probed.is_ok()
}

/// Counts how many of it live.
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
