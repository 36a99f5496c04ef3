//! Connections that are held: each asks once, so that the server knows it, and then keeps still.

use std::sync::Arc;
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Outbound, sleep};

use super::desk;
use super::reader::{KnownHead, ResponseReader};
use super::route::{TargetRoute, millis};
use super::shared::LoadShared;
use super::tally::FailureKind;

/// How often each is tried.
const TRIES: u32 = 5;
/// Pause after the first failure; each later one is four times as long.
const PAUSE: Duration = Duration::from_millis(10);

/// Holds the connection with a number among all of the run.
pub(super) async fn hold(shared: Arc<LoadShared>, number: u64) {
    let mut pause = PAUSE;
    let mut held = None;
    for _ in 0..TRIES {
        match open(&shared, number).await {
            Ok(connection) => {
                held = Some(connection);
                break;
            }
            Err(failure) => {
                desk::with(|desk| desk.tally.held_errors.count(failure));
                sleep(pause).await;
                pause *= 4;
            }
        }
    }
    desk::with(|desk| {
        if held.is_some() {
            desk.tally.opened += 1;
            desk.tally.standing += 1;
            desk.tally.held += 1;
            desk.tally.held_most = desk.tally.held_most.max(desk.tally.held);
            desk.opened_at = desk.shared.now();
        }
        desk.opening -= 1;
        desk.tell_watcher();
    });
    let Some(mut connection) = held else { return };
    connection.set_deadline(u64::MAX);
    // It says nothing unless it ends. (What it says besides is of no interest.)
    while connection.recv(false).await.is_ok_and(|piece| !piece.bytes().is_empty()) {}
    desk::with(|desk| {
        desk.tally.lost += 1;
        desk.tally.held -= 1;
        desk.tally.standing -= 1;
    });
}

/// Connects, asks, and reads the answer.
async fn open(shared: &Arc<LoadShared>, number: u64) -> Result<Connection, FailureKind> {
    let plan = &shared.plan;
    let group = shared.script.group_of(number);
    let route = TargetRoute::of(shared, group, number);
    let outbound = Outbound { source: route.source, ..Outbound::default() };
    let began = shared.now();
    let mut connection = route.connect(shared, &outbound, millis(plan.connect_timeout)).await?;
    connection.move_in().expect("nothing was sent or received on it yet");
    let took = shared.now() - began;
    desk::with(|desk| desk.tally.connect.record(took));
    let asked = desk::with(|desk| desk.line_of(group));
    let mut out = Connection::outgoing();
    out.bytes.extend_from_slice(&shared.script.lines[asked as usize].bytes);
    connection.set_deadline(connection.now().mono_ms + millis(plan.answer_timeout));
    let sent = connection.send(out).await;
    sent.map_err(|error| lost(&error))?;
    read(shared, &mut connection, asked).await?;
    Ok(connection)
}

async fn read(
    shared: &LoadShared,
    connection: &mut Connection,
    asked: u32,
) -> Result<(), FailureKind> {
    let (mut reader, mut known) = (Box::new(ResponseReader::default()), KnownHead::default());
    let method = shared.script.lines[asked as usize].method;
    loop {
        let piece = connection.recv(false).await.map_err(|error| lost(&error))?;
        if piece.bytes().is_empty() {
            return Err(if reader.is_fresh() { FailureKind::Reset } else { FailureKind::Short });
        }
        let read = reader.read(piece.bytes(), &mut known, method, false);
        let (_, answer) = read.map_err(|_| FailureKind::Unreadable)?;
        match answer {
            None => {}
            Some(answer) if !shared.plan.accepts(answer.status) => return Err(FailureKind::Status),
            Some(answer) if !answer.keep_alive => return Err(FailureKind::Reset),
            Some(_) => return Ok(()),
        }
    }
}

fn lost(error: &ConnectionError) -> FailureKind {
    if matches!(error, ConnectionError::TimedOut) {
        FailureKind::TimedOut
    } else {
        FailureKind::Reset
    }
}
