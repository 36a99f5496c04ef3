//! One thread of the load generator: a worker of the engine with its share of the connections.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gustnado_tasks::{
    BlockOnOptions, IoChoice, PreciseTimer, SpawnError, WorkersStartError, block_on_with,
    descriptor_limit, sleep, spawn_detached, timeout,
};

use super::coordinator::{self, Coordinator};
use super::counts::ThreadCounts;
use super::schedule::{RequestSchedule, nanos};
use super::shared::{LoadShared, MeasureWindow};
use super::usage::ThreadClock;
use super::{connection, held};
use crate::plan::{BackendChoice, LoadModel};

/// Connections that one thread opens at the same time.
const OPENING_MAX: u32 = 128;
/// If no connection was established for this long while all are being opened, the load starts
/// without the missing ones.
const OPENING_STILL: Duration = Duration::from_millis(700);
/// Time to open one connection, beyond its time-out.
const OPENING_EACH: Duration = Duration::from_millis(1);
/// Interval at which a thread checks for a stop and publishes its counters.
const LOOK: Duration = Duration::from_millis(50);
/// Time to wait for responses after the end. Nothing is sent in it.
const GRACE: Duration = Duration::from_secs(3);
/// Time to wait for the other threads, in milliseconds.
const OTHERS_MS: u32 = 500;
/// If no server can be reached for this long, a run without another end gives up.
const HOPELESS: u64 = 10_000_000_000;
/// Longest sleep of the dispatcher while requests wait for a connection.
const BACKLOG_NS: u64 = 250_000;
/// Receive buffers of 4 KiB for each ring.
const BUFFERS: u16 = 512;

/// Result of one thread.
pub(super) struct ThreadResult {
    pub(super) counts: ThreadCounts,
    pub(super) end: u64,
    pub(super) clock: ThreadClock,
    pub(super) opening: ConnectPhase,
    /// Requests that were due and never sent.
    pub(super) unsent: u64,
    /// Requests that were sent and had no response by the end.
    pub(super) unanswered: u64,
    /// Whether it has connections that send requests.
    pub(super) asks: bool,
    pub(super) gave_up: bool,
}

/// Statistics of the phase in which connections are opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectPhase {
    /// Duration in nanoseconds.
    pub(super) took: u64,
    /// Connections that were not established by its end.
    pub(super) missing: u64,
}

/// Error of a thread.
#[derive(Debug)]
pub(super) enum ThreadError {
    Engine(WorkersStartError),
    Spawn(SpawnError),
    Timer(io::Error),
}

/// Runs one thread's share of a run.
pub(super) fn run(
    shared: &Arc<LoadShared>,
    thread: u32,
    io: BackendChoice,
) -> Result<ThreadResult, ThreadError> {
    let lone = match io {
        BackendChoice::Epoll => BlockOnOptions::default(),
        BackendChoice::Uring => {
            let io = IoChoice::Uring;
            BlockOnOptions { io, direct_max: descriptor_limit(), buffers: BUFFERS }
        }
    };
    coordinator::install(Coordinator::new(Arc::clone(shared), thread));
    let work = async {
        let opened = open_all(shared, thread).await?;
        work(shared, thread, opened).await
    };
    let outcome = block_on_with(&lone, work).map_err(ThreadError::Engine);
    // All tasks were dropped, so no other user of the coordinator is left.
    let coordinator = coordinator::uninstall();
    let end = outcome??;
    let mut coordinator = coordinator.expect("it was entered above");
    if let Some(standstill) =
        coordinator.standstill_at(end.at).filter(|_| coordinator.under_way > 0)
    {
        coordinator.counts.standstills.cut(standstill);
    }
    let unsent = coordinator.record_unsent(end.at);
    let last = coordinator.counts.take_last();
    shared.show(thread as usize, |shown| {
        shown.parts.extend(coordinator.counts.take_finished());
        shown.parts.push(last);
    });
    Ok(ThreadResult {
        end: end.at,
        clock: end.clock,
        opening: end.opening,
        unsent,
        // A run that was stopped did not wait for them.
        unanswered: if shared.is_stopped() { 0 } else { coordinator.under_way },
        asks: coordinator.connections() > 0,
        gave_up: end.gave_up,
        counts: coordinator.counts,
    })
}

struct LoadEnd {
    at: u64,
    clock: ThreadClock,
    opening: ConnectPhase,
    gave_up: bool,
}

/// Starts the tasks of all connections, a few at a time, and waits until they are established or
/// the server had enough time to accept them.
async fn open_all(shared: &Arc<LoadShared>, thread: u32) -> Result<ConnectPhase, ThreadError> {
    let began = shared.now();
    let idle = if let LoadModel::Hold { idle, .. } = shared.plan.load { idle } else { 0 };
    let (held, requesting) = (
        shared.share_of(thread, idle),
        shared.share_of(shared.threads - 1 - thread, shared.plan.connections),
    );
    let all = held + requesting;
    let mut started = 0;
    loop {
        let more = wait(LOOK, || {
            coordinator::with(|coordinator| {
                while coordinator.opening < OPENING_MAX && started < all {
                    start(coordinator, shared, thread, started, held)?;
                    started += 1;
                }
                Ok(coordinator.opening > 0)
            })
        });
        let more = more.await?;
        show(shared, thread);
        let all_tried = started == all && held == 0;
        if !more || shared.is_stopped() || is_opening_over(shared, began, all, all_tried) {
            break;
        }
    }
    let missing = coordinator::with(|coordinator| {
        let standing = if shared.plan.keep_alive { coordinator.counts.standing } else { all };
        // Connections with requests take part in the load from now on, established or not.
        for index in started.max(held)..all {
            start(coordinator, shared, thread, index, held)?;
        }
        Ok(all.saturating_sub(standing))
    })?;
    shared.note_opened();
    Ok(ConnectPhase { took: shared.now() - began, missing })
}

/// Returns whether the server had enough time to accept this many connections.
///
/// - `all_tried`: all of them are being opened, and none of them is an idle one. (Idle connections
///   are what such a run measures, so they get more time.)
fn is_opening_over(shared: &LoadShared, began: u64, all: u64, all_tried: bool) -> bool {
    let now = shared.now();
    let standstill = now.saturating_sub(coordinator::with(|coordinator| coordinator.opened_at));
    let one = nanos(shared.plan.connect_timeout);
    let most = one.saturating_add(nanos(OPENING_EACH).saturating_mul(all));
    (all_tried && standstill > nanos(OPENING_STILL)) || standstill > one || now - began > most
}

/// Starts the task of one connection, idle ones first.
fn start(
    coordinator: &mut Coordinator,
    shared: &Arc<LoadShared>,
    thread: u32,
    index: u64,
    held: u64,
) -> Result<(), ThreadError> {
    let number = shared.number_of(thread, index, held);
    let shared = Arc::clone(shared);
    coordinator.opening += 1;
    let spawned = if index < held {
        spawn_detached(held::hold(shared, number))
    } else {
        let slot = coordinator.add_slot();
        spawn_detached(connection::send_requests(connection::LoadConnection::new(
            &shared, number, slot,
        )))
    };
    spawned.map_err(ThreadError::Spawn)
}

/// Starts the load and watches it until its end.
async fn work(
    shared: &Arc<LoadShared>,
    thread: u32,
    opening: ConnectPhase,
) -> Result<LoadEnd, ThreadError> {
    let Some(times) = ramp_up(shared, thread).await else {
        let (at, clock) = (shared.now(), ThreadClock::default());
        return Ok(LoadEnd { at, clock, opening, gave_up: false });
    };
    let schedule = shared.place_of(thread).and_then(|(place, places)| {
        let all = RequestSchedule::of(&shared.plan, times.go, times.from, times.until)?;
        Some(all.part(place, places))
    });
    let paces = schedule.is_some();
    coordinator::with(|coordinator| {
        coordinator.times = Some(times);
        coordinator.ramps_up = false;
        coordinator.schedule = schedule;
        coordinator.wake_idle();
    });
    if paces {
        let precise_timer = PreciseTimer::new().map_err(ThreadError::Timer)?;
        spawn_detached(dispatch(Arc::clone(shared), precise_timer)).map_err(ThreadError::Spawn)?;
    }
    let (mut running, mut clock) = (None, None);
    let mut gave_up = false;
    loop {
        let now = shared.now();
        if now >= times.from && running.is_none() {
            running = Some(ThreadClock::start());
        }
        // While it waits for the last responses it has little to do.
        if now >= times.until && clock.is_none() {
            clock = running.map(ThreadClock::stop);
        }
        show(shared, thread);
        gave_up = gave_up || is_hopeless(shared, now);
        if gave_up || shared.is_stopped() || is_done(now) {
            break;
        }
        let mut next =
            LOOK.min(until(now, if now < times.from { times.from } else { times.until }));
        next = next.max(Duration::from_millis(1));
        wait(next, || Ok(!is_done(shared.now()))).await?;
    }
    let at = shared.now();
    coordinator::with(|coordinator| coordinator.counts.note_end());
    let clock = clock.or_else(|| running.map(ThreadClock::stop)).unwrap_or_default();
    await_others(shared).await;
    Ok(LoadEnd { at, clock, opening, gave_up })
}

/// Waits until every connection of the run had a response, or the server had enough time for it.
/// Returns the times of the load, which then starts; `None` if the run was stopped.
async fn ramp_up(shared: &LoadShared, thread: u32) -> Option<MeasureWindow> {
    let (mut begins, mut ends) = (true, true);
    loop {
        if let Some(times) = shared.times() {
            return Some(times);
        }
        if shared.is_stopped() {
            return None;
        }
        if let Some(begun) = shared.begun() {
            if std::mem::take(&mut begins) {
                coordinator::with(Coordinator::ramp_up);
            }
            if ends && is_ramped_up(shared, begun) {
                ends = false;
                shared.note_ramped_up();
                continue;
            }
            show(shared, thread);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Returns whether every connection of the thread had a response, or no further one will have one
/// soon.
fn is_ramped_up(shared: &LoadShared, begun: u64) -> bool {
    let plan = &shared.plan;
    let now = shared.now();
    coordinator::with(|coordinator| {
        let all = coordinator.connections();
        let standstill = now.saturating_sub(coordinator.served_at.max(begun));
        let each = nanos(OPENING_EACH).saturating_mul(all);
        let most = nanos(plan.ramp_up_max).saturating_add(each);
        !plan.ramps_up()
            || coordinator.counts.served >= all
            || standstill > nanos(plan.connect_timeout)
            || now.saturating_sub(begun) > most
    })
}

/// Keeps the connections until all threads have finished and the kernel was queried about them,
/// unless the run was stopped.
async fn await_others(shared: &LoadShared) {
    if shared.is_stopped() {
        return;
    }
    shared.note_ended();
    for _ in 0..OTHERS_MS {
        if shared.retransmits.get().is_some() || shared.is_stopped() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Dispatches due requests on time.
async fn dispatch(shared: Arc<LoadShared>, mut timer: PreciseTimer) {
    loop {
        let now = shared.now();
        let next = coordinator::with(|coordinator| {
            let next = coordinator.dispatch_due(now);
            if coordinator.schedule.as_mut().is_none_or(|all| all.peek().is_none()) {
                coordinator.wake_thread();
            }
            next
        });
        let Some(next) = next else { return };
        let wait = if next > now { next - now } else { BACKLOG_NS };
        if timer.wait(Duration::from_nanos(wait)).await.is_err() {
            // The kernel withdrew the timer: the millisecond timers of tasks replace it.
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Returns whether everything that the thread waits for has ended.
fn is_done(now: u64) -> bool {
    coordinator::with(|coordinator| {
        let Some(times) = coordinator.times else { return false };
        if !coordinator.is_over(now) {
            return false;
        }
        coordinator.counts.note_end();
        if coordinator.under_way == 0 {
            return true;
        }
        // A request that was sent costs the server its work. Its response is waited for, so that
        // both are counted.
        now >= times.until.saturating_add(nanos(GRACE))
    })
}

/// Returns whether no server was reachable for long, and the run has no other end.
fn is_hopeless(shared: &LoadShared, now: u64) -> bool {
    shared.plan.end.after.is_none()
        && coordinator::with(|coordinator| {
            let standstill = now.saturating_sub(
                coordinator.opened_at.max(coordinator.times.map_or(0, |all| all.go)),
            );
            coordinator.counts.standing == 0
                && coordinator.failures_in_a_row > 0
                && standstill > HOPELESS
        })
}

/// Waits while `goes_on` returns true, until the coordinator wakes the thread or the time is over.
/// Returns whether it still goes on.
async fn wait(
    time: Duration,
    mut goes_on: impl FnMut() -> Result<bool, ThreadError>,
) -> Result<bool, ThreadError> {
    let change = poll_fn(|context| match goes_on() {
        Ok(true) => {
            coordinator::with(|coordinator| {
                coordinator.thread_waker = Some(context.waker().clone());
            });
            Poll::Pending
        }
        end => Poll::Ready(end),
    });
    bounded(time, change).await.unwrap_or(Ok(true))
}

async fn bounded<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    timeout(time, future).await
}

fn until(now: u64, then: u64) -> Duration {
    Duration::from_nanos(then.saturating_sub(now))
}

/// Publishes the counters.
fn show(shared: &LoadShared, thread: u32) {
    let now = shared.now();
    coordinator::with(|coordinator| {
        let is_over = coordinator.is_over(now);
        let measuring = coordinator.is_measured(now);
        if let Some(times) = coordinator.times.filter(|_| measuring) {
            let at = now.min(times.until.saturating_sub(1));
            coordinator.counts.turn_to(at.saturating_sub(times.from));
        }
        let parts = coordinator.counts.take_finished();
        shared.show(thread as usize, |shown| {
            shown.right = coordinator.counts.right;
            shown.errors = coordinator.counts.errors.total();
            shown.standing = coordinator.counts.standing;
            (shown.measuring, shown.ending) = (measuring, is_over);
            shown.parts.extend(parts);
        });
    });
}
