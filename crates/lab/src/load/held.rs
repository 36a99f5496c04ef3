//! Idle connections: each sends one request, so that the server has accepted it, and then stays
//! open. A WebSocket is opened by its handshake alone.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use gustnado_tasks::{Connection, ConnectionError, Outbound, sleep};
use gustnado_tls::Socket;

use super::coordinator;
use super::counts::FailureKind;
use super::http2::SingleRequest;
use super::response_reader::{KnownHead, ResponseReader};
use super::route::{TargetRoute, millis};
use super::shared::LoadShared;
use super::websocket::LoadSocket;
use super::websocket_requests;
use crate::plan::HttpVersion;

/// Attempts to open each connection.
const TRIES: u32 = 5;
/// Pause after the first failure; each later one is four times as long.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens and holds the connection with this number among all of the run.
pub(super) async fn hold(shared: Arc<LoadShared>, number: u64) {
    let mut pause = PAUSE;
    let mut held = None;
    for _ in 0..TRIES {
        // Boxed, so that a connection that is held keeps nothing of how it was opened.
        match Box::pin(open(&shared, number)).await {
            Ok(opened) => {
                held = Some(opened);
                break;
            }
            Err(failure) => {
                coordinator::with(|coordinator| coordinator.counts.held_errors.count(failure));
                sleep(pause).await;
                pause *= 4;
            }
        }
    }
    coordinator::with(|coordinator| {
        if held.is_some() {
            coordinator.counts.opened += 1;
            coordinator.counts.standing += 1;
            coordinator.counts.held += 1;
            coordinator.counts.held_most =
                coordinator.counts.held_most.max(coordinator.counts.held);
            coordinator.opened_at = coordinator.shared.now();
        }
        coordinator.opening -= 1;
        coordinator.wake_thread();
    });
    let Some((mut connection, end)) = held else { return };
    connection.set_deadline(u64::MAX);
    match end {
        // Boxed, as most connections that are held have none.
        Some(end) => Box::pin(listen(&shared, &mut connection, end)).await,
        // The server sends nothing until it closes. Anything it sends is ignored.
        None => while connection.recv(false).await.is_ok_and(|piece| !piece.bytes().is_empty()) {},
    }
    coordinator::with(|coordinator| {
        coordinator.counts.lost += 1;
        coordinator.counts.held -= 1;
        coordinator.counts.standing -= 1;
    });
}

/// Holds a WebSocket: its pings are answered, and what is sent to all is counted.
async fn listen(shared: &LoadShared, connection: &mut Socket, mut end: Box<LoadSocket>) {
    let is_broadcast = shared.plan.websocket.is_some_and(|load| load.is_broadcast);
    loop {
        loop {
            match end.next(is_broadcast, false) {
                Ok(None) => break,
                Ok(Some(message)) => {
                    let Some(stamp) = message.stamp else { continue };
                    let now = shared.now();
                    coordinator::with(|coordinator| {
                        coordinator.record_delivery(stamp.sent, now);
                    });
                }
                Err(failure) => {
                    coordinator::with(|coordinator| {
                        websocket_requests::note(failure, coordinator);
                    });
                    return;
                }
            }
        }
        if end.has_output() {
            let mut out = Connection::outgoing();
            end.write_output(&mut out.bytes);
            connection.start_send(out);
            if poll_fn(|_| connection.poll_sent()).await.is_err() {
                return;
            }
        }
        match connection.recv(false).await {
            Ok(piece) if !piece.bytes().is_empty() => end.receive(piece.bytes()),
            _ => {
                coordinator::with(|coordinator| coordinator.counts.websocket.closed += 1);
                return;
            }
        }
    }
}

/// Opens a WebSocket on a connection.
async fn open_websocket(
    connection: &mut Socket,
    number: u64,
) -> Result<Box<LoadSocket>, FailureKind> {
    let mut end = Box::new(LoadSocket::new(u32::try_from(number).unwrap_or(u32::MAX)));
    loop {
        // Nothing is expected before the first message.
        let next = end.next(false, false);
        next.map_err(|failure| {
            coordinator::with(|coordinator| websocket_requests::note(failure, coordinator))
        })?;
        if end.is_open() {
            coordinator::with(|coordinator| coordinator.counts.websocket.opened += 1);
            return Ok(end);
        }
        let piece = connection.recv(false).await.map_err(|error| lost(&error))?;
        if piece.bytes().is_empty() {
            return Err(FailureKind::Reset);
        }
        end.receive(piece.bytes());
    }
}

/// Connects, sends a request, and reads the response. Returns the connection, and its WebSocket if
/// that was opened.
async fn open(
    shared: &Arc<LoadShared>,
    number: u64,
) -> Result<(Socket, Option<Box<LoadSocket>>), FailureKind> {
    let plan = &shared.plan;
    let group = shared.script.group_of(number);
    let route = TargetRoute::of(shared, group, number);
    let outbound = Outbound { source: route.source, ..Outbound::default() };
    let began = shared.now();
    let (mut connection, received) =
        route.connect(shared, &outbound, millis(plan.connect_timeout)).await?;
    let took = shared.now() - began;
    coordinator::with(|coordinator| coordinator.counts.connect.record(took));
    let kind = coordinator::with(|coordinator| coordinator.next_kind(group));
    connection.set_deadline(connection.now().mono_ms + millis(plan.response_timeout));
    if plan.http == HttpVersion::Http2 {
        ask_http2(shared, &mut connection, (kind, received)).await?;
        return Ok((connection, None));
    }
    let mut out = Connection::outgoing();
    out.bytes.extend_from_slice(&shared.script.kinds[kind as usize].bytes);
    connection.start_send(out);
    let sent = poll_fn(|_| connection.poll_sent()).await;
    sent.map_err(|error| lost(&error))?;
    if plan.websocket.is_some() {
        let end = open_websocket(&mut connection, number).await?;
        return Ok((connection, Some(end)));
    }
    read(shared, &mut connection, kind).await?;
    Ok((connection, None))
}

async fn read(shared: &LoadShared, connection: &mut Socket, kind: u32) -> Result<(), FailureKind> {
    let (mut reader, mut known) = (Box::new(ResponseReader::default()), KnownHead::default());
    let method = shared.script.kinds[kind as usize].method;
    loop {
        let piece = connection.recv(false).await.map_err(|error| lost(&error))?;
        if piece.bytes().is_empty() {
            return Err(if reader.is_fresh() { FailureKind::Reset } else { FailureKind::Short });
        }
        let read = reader.read(piece.bytes(), &mut known, method, false);
        let (_, response) = read.map_err(|_| FailureKind::Unreadable)?;
        match response {
            None => {}
            Some(response) if !shared.plan.accepts(response.status) => {
                return Err(FailureKind::Status);
            }
            Some(response) if !response.keep_alive => return Err(FailureKind::Reset),
            Some(_) => return Ok(()),
        }
    }
}

/// Sends a request by HTTP/2, and reads the response. From then on nothing is read: a held
/// connection answers no PING.
async fn ask_http2(
    shared: &LoadShared,
    connection: &mut Socket,
    (kind, received): (u32, Vec<u8>),
) -> Result<(), FailureKind> {
    let mut single = Box::new(SingleRequest::new(&shared.script, kind, received));
    loop {
        let mut out = Connection::outgoing();
        single.write_output(&mut out.bytes);
        connection.start_send(out);
        poll_fn(|_| connection.poll_sent()).await.map_err(|error| lost(&error))?;
        if let Some(status) = single.status() {
            let is_good = shared.plan.accepts(status);
            return if is_good { Ok(()) } else { Err(FailureKind::Status) };
        }
        let piece = connection.recv(false).await.map_err(|error| lost(&error))?;
        if piece.bytes().is_empty() {
            return Err(FailureKind::Reset);
        }
        single.take_in(piece.bytes(), shared.now() / 1_000_000)?;
    }
}

fn lost(error: &ConnectionError) -> FailureKind {
    if matches!(error, ConnectionError::TimedOut) {
        FailureKind::TimedOut
    } else {
        FailureKind::Reset
    }
}
