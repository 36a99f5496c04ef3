//! Asking what every task does, from a task or from any other thread.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use crate::exec::crew::Crew;
use crate::exec::here;
use crate::exec::look::{Dump, Look};
use crate::exec::time::timeout;
use crate::sync::parking;

/// What the tasks of the running task's server do.
///
/// - `within`: how long to wait for workers that are held by a task.
///
/// # Panics
/// Outside a task.
pub async fn dump(within: Duration) -> Dump {
    let (crew, now_ms) =
        here::with(|here| (Arc::clone(&here.crew), here.reactor.borrow().clock().read_ms()));
    let look = ask(&crew, now_ms);
    timeout(within, poll_fn(|context| look.poll(context))).await;
    finish(&look, &crew)
}

/// What the tasks of a server do. Blocks the calling thread until its workers have answered.
///
/// - `within`: how long to wait for workers that are held by a task.
pub(crate) fn wait_for_dump(crew: &Crew, now_ms: u64, within: Duration) -> Dump {
    let look = ask(crew, now_ms);
    parking::wait(Some(within), |context| look.poll(context));
    finish(&look, crew)
}

/// Asks every worker.
fn ask(crew: &Crew, now_ms: u64) -> Arc<Look> {
    let posts = crew.posts.iter().chain(crew.acceptor.get());
    let look = Arc::new(Look::new(now_ms, Arc::clone(&crew.names)));
    look.expect_answers(posts.filter(|post| post.answer(&look)).count());
    look
}

fn finish(look: &Look, crew: &Crew) -> Dump {
    let desks = crew.desks();
    let present = desks.iter().filter(|desk| crew.is_present(desk.worker));
    look.finish(present.map(|desk| &**desk))
}
