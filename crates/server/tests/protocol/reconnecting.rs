//! Connections that are made again and again.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use gustnado::protocol::{Backoff, ConnectOptions, ReconnectingClientFactory, Retry, Transport};

use crate::clients::Noting;
use crate::harness::{Setup, wait_until};
use crate::tape::{Tape, address, engine, taped};

/// Waits that a test has time for.
fn brief() -> Backoff {
    Backoff {
        initial: Duration::from_millis(10),
        max: Duration::from_millis(40),
        ..Backoff::default()
    }
}

pub(crate) fn a_lost_connection_is_made_again(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let hang_up = |transport: &mut Transport, _: &[u8]| transport.lose_connection();
    let port = engine
        .listen_tcp("127.0.0.1:0", move |_| taped(&Tape::default(), hang_up))
        .expect("a port");
    let retry = Retry::new(brief());
    let factory = Noting { tape: tape.clone(), act: |_: &mut Transport, _: &[u8]| {} };
    let factory = ReconnectingClientFactory::with(retry.clone(), factory);
    assert_eq!(factory.retry().retries(), 0);
    engine.connect_tcp(address(&port), ConnectOptions::default(), factory).expect("an address");
    tape.wait_for_count("factory lost: Done", 4);
    wait_until("every time is counted", || retry.retries() >= 4);
    retry.reset_delay();
    let made = engine.stats().made;
    wait_until("it goes on", || engine.stats().made > made + 2);
    retry.stop_trying();
    let connections = || engine.stats().connections_open == 0;
    wait_until("the last one ends", connections);
    let made = engine.stats().made;
    std::thread::sleep(Duration::from_millis(100));
    // One attempt may have been under way.
    assert!(engine.stats().made <= made + 2);
}

pub(crate) fn a_server_that_comes_later_is_found(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let factory = Noting { tape: tape.clone(), act: |_: &mut Transport, _: &[u8]| {} };
    let factory = ReconnectingClientFactory::with(Retry::new(brief()), factory);
    let retry = factory.retry();
    engine.connect_tcp(free, ConnectOptions::default(), factory).expect("an address");
    tape.wait_for_count("failed: no connection could be made", 3);
    assert!(retry.retries() >= 2);
    let nothing = |_: &mut Transport, _: &[u8]| {};
    let _port = engine
        .listen_tcp(free, move |_| taped(&Tape::default(), nothing))
        .expect("the port is free");
    tape.wait_for("made");
    retry.stop_trying();
    engine.drain(Duration::from_secs(2));
    assert_eq!(tape.count("made"), 1, "the end of the engine is no reason to try again");
}

pub(crate) fn enough_is_enough(setup: Setup) {
    let (engine, tape) = (engine(setup), Tape::default());
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let backoff = Backoff { retries_max: Some(3), jitter: 0.0, factor: 2.0, ..brief() };
    let factory = Noting { tape: tape.clone(), act: |_: &mut Transport, _: &[u8]| {} };
    let factory = ReconnectingClientFactory::with(Retry::new(backoff), factory);
    let began = Instant::now();
    engine.connect_tcp(free, ConnectOptions::default(), factory).expect("an address");
    tape.wait_for_count("failed: no connection could be made", 4);
    assert!(began.elapsed() >= Duration::from_millis(10 + 20 + 40), "{:?}", began.elapsed());
    std::thread::sleep(Duration::from_millis(80));
    assert_eq!(tape.count("failed: no connection could be made"), 4);
}
