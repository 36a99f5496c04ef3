//! Telling a port that another server holds from one whose holder is just going.
//!
//! A process that was killed with a ring of its own gives its sockets back some milliseconds after
//! it has gone. Until then its port is taken, and connections to it are made and reset.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// For how long a port is tried whose holder is going.
const GOING_MAX: Duration = Duration::from_secs(2);
/// How long a connection has to stay open for its server to be there.
const STAYS: Duration = Duration::from_millis(200);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Tries to take an address that may be in use, until it succeeds, fails otherwise, or somebody
/// turns out to serve there.
pub(super) fn take<T>(
    address: SocketAddr,
    mut take: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let began = Instant::now();
    loop {
        match take() {
            Err(Errno::ADDRINUSE) if address.port() != 0 => {
                if began.elapsed() >= GOING_MAX {
                    return Err(Errno::ADDRINUSE);
                }
                if is_served(address) {
                    // A listener that defers accepting may have gone meanwhile and not have said
                    // so: it forgets a handshake whose client has sent nothing.
                    return take();
                }
                thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Returns whether a connection to the address is made and stays open.
fn is_served(address: SocketAddr) -> bool {
    let Ok(mut probe) = TcpStream::connect_timeout(&reachable(address), STAYS) else {
        return false;
    };
    if probe.set_read_timeout(Some(STAYS)).is_err() {
        return true;
    }
    match probe.read(&mut [0]) {
        // It greets each client.
        Ok(1..) => true,
        Ok(0) => false,
        Err(error) => {
            use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
            matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
        }
    }
}

/// Returns where a server that listens on `address` can be reached from here.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let mut reachable = address;
    reachable.set_ip(ip);
    reachable
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn listening() -> (TcpListener, SocketAddr) {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listening.local_addr().expect("it is bound");
        (listening, address)
    }

    #[test]
    fn a_server_that_stays_is_in_the_way_at_once() {
        let (_listening, address) = listening();
        let began = Instant::now();
        let mut tries = 0;
        let taken = take(address, || {
            tries += 1;
            Err::<(), _>(Errno::ADDRINUSE)
        });
        assert_eq!((taken, tries), (Err(Errno::ADDRINUSE), 2));
        assert!(began.elapsed() < GOING_MAX, "{:?}", began.elapsed());
    }

    #[test]
    fn a_holder_that_goes_is_waited_for() {
        let (listening, address) = listening();
        let is_gone = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                // What stands in the queue is reset with it.
                is_gone.store(true, Ordering::SeqCst);
                drop(listening);
            });
            let result = take(address, || {
                if is_gone.load(Ordering::SeqCst) { Ok(()) } else { Err(Errno::ADDRINUSE) }
            });
            assert_eq!(result, Ok(()));
        });
    }

    #[test]
    fn a_holder_that_goes_without_a_word_is_noticed() {
        // It defers accepting: its end forgets a client that has sent nothing, who is not told.
        let (listening, address) = listening();
        let listening = std::os::fd::OwnedFd::from(listening);
        crate::defer_accept(&listening).expect("the kernel defers");
        let (listening, tries) = (std::cell::Cell::new(Some(listening)), std::cell::Cell::new(0));
        let result = thread::scope(|scope| {
            take(address, || {
                tries.set(tries.get() + 1);
                if tries.get() > 1 {
                    return Ok(());
                }
                let listening = listening.take();
                scope.spawn(move || {
                    thread::sleep(STAYS / 4);
                    drop(listening);
                });
                Err(Errno::ADDRINUSE)
            })
        });
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn a_port_where_nobody_answers_is_given_up_in_the_end() {
        let (listening, address) = listening();
        drop(listening);
        let began = Instant::now();
        assert_eq!(take(address, || Err::<(), _>(Errno::ADDRINUSE)), Err(Errno::ADDRINUSE));
        assert!(began.elapsed() >= GOING_MAX, "{:?}", began.elapsed());
        let once = take(address, || Err::<(), _>(Errno::ACCESS));
        assert_eq!(once, Err(Errno::ACCESS));
    }
}
