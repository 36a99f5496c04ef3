//! Closing a listening socket without resetting a connection that the kernel has completed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, accept_with, shutdown, sockopt};

use crate::sys::options::{
    bind_to_no_interface, choose_first_of_group, is_bound_to_no_interface, set_defer_accept,
};

/// Ends deferred accepting: a connection enters the queue with the end of its handshake, and one
/// that was held back with its next segment. A Unix socket stays as it is.
///
/// # Errors
/// What the kernel says.
pub fn stop_deferring(listening: &OwnedFd) -> io::Result<()> {
    if sockopt::socket_domain(listening)? == AddressFamily::UNIX {
        return Ok(());
    }
    set_defer_accept(listening.as_fd(), 0)
}

/// Prepares a group of sockets of one endpoint, in the order they were opened in, for
/// [`refuse_connections`]: from now on the first gets all new connections. Without that, some would
/// be given to one that refuses already while another one does not, and be answered by neither.
///
/// A moment should pass between the two, for connections that the kernel is just giving out.
///
/// # Errors
/// What the kernel says.
pub fn gather_connections(group: &[Arc<OwnedFd>]) -> io::Result<()> {
    let [first, _, ..] = group else { return Ok(()) };
    if sockopt::socket_domain(first)? == AddressFamily::UNIX {
        return Ok(());
    }
    choose_first_of_group(first.as_fd())
}

/// Makes the kernel refuse new connections to a group of sockets from now on, as if they were
/// closed. Handshakes under way still end, and what is in their queues can be accepted.
///
/// It holds for the sockets, not for the descriptors: others that hold them cannot listen with them
/// any more.
///
/// A SYN that the kernel has given to the socket and not yet answered, a window of about a
/// microsecond on another CPU, is discarded: its SYN-ACK finds no route (`OutNoRoutes` in
/// `/proc/net/snmp` counts it), and its client asks again after 1 s.
///
/// # Errors
/// What the kernel says; before Linux 5.0 it cannot be done to a TCP socket, and before 5.7 only by
/// the privileged.
pub fn refuse_connections(group: &[Arc<OwnedFd>]) -> io::Result<()> {
    // All of them, also behind one that fails; and last the one that gets all new connections.
    let results: Vec<_> = group.iter().rev().map(|socket| refuse(socket)).collect();
    results.into_iter().collect()
}

fn refuse(listening: &OwnedFd) -> io::Result<()> {
    if sockopt::socket_domain(listening)? == AddressFamily::UNIX {
        return Ok(shutdown(listening, Shutdown::Read)?);
    }
    // Once bound, only the privileged may bind it again.
    if is_bound_to_no_interface(listening.as_fd()) {
        return Ok(());
    }
    bind_to_no_interface(listening.as_fd())
}

/// Takes what waits in a queue, `max` connections at most, and closes the descriptor when the queue
/// is empty, with nothing in between. Returns the descriptor if more may wait.
///
/// No ring may accept from the socket any more: it does not block from now on.
pub fn take_queue(listening: Arc<OwnedFd>, max: usize) -> (Vec<OwnedFd>, Option<Arc<OwnedFd>>) {
    let mut taken = Vec::new();
    if ioctl_fionbio(&listening, true).is_err() {
        return (taken, None);
    }
    while taken.len() < max {
        match accept_with(&listening, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(connection) => taken.push(connection),
            // The peer gave up, or a signal came.
            Err(Errno::CONNABORTED | Errno::PROTO | Errno::INTR) => {}
            Err(_) => {
                drop(listening);
                return (taken, None);
            }
        }
    }
    (taken, Some(listening))
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Endpoint, bind, defer_accept};

    /// Sockets of one port.
    fn group(count: usize) -> (Vec<Arc<OwnedFd>>, SocketAddr) {
        let anywhere = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (sockets, endpoint) = bind(&anywhere, count, 64).expect("a port is free");
        let Endpoint::Tcp(address) = endpoint else { panic!("bound to {endpoint}") };
        (sockets.into_iter().map(Arc::new).collect(), address)
    }

    /// Returns what the queues hold, which closes them.
    fn take_all(group: Vec<Arc<OwnedFd>>) -> usize {
        let take = |socket| {
            let (taken, left) = take_queue(socket, 64);
            assert!(left.is_none(), "it is empty");
            taken.len()
        };
        group.into_iter().map(take).sum()
    }

    #[test]
    fn newcomers_are_refused_and_those_who_have_come_are_taken() {
        let (group, address) = group(3);
        let connect = || TcpStream::connect(address);
        let _before: Vec<_> = (0..20).map(|_| connect().expect("it listens")).collect();
        gather_connections(&group).expect("the kernel knows how");
        let _gathered: Vec<_> = (0..5).map(|_| connect().expect("it listens")).collect();
        refuse_connections(&group).expect("the kernel knows how");
        refuse_connections(&group).expect("it was done before");
        let began = Instant::now();
        for _ in 0..20 {
            let refused = connect().expect_err("nobody else comes in");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        }
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(take_all(group), 25);
        // The port is free, although connections of it are open.
        let (again, _) = bind(&Endpoint::Tcp(address), 2, 16).expect("the port is free");
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn one_socket_gets_all_newcomers_before_they_are_refused() {
        let (group, address) = group(3);
        gather_connections(&group).expect("the kernel knows how");
        let _clients: Vec<_> = (0..20).map(|_| TcpStream::connect(address)).collect();
        let counts: Vec<_> = group.into_iter().map(|socket| take_all(vec![socket])).collect();
        assert_eq!(counts, [20, 0, 0]);
    }

    #[test]
    fn who_was_held_back_for_his_bytes_comes_in_after_newcomers_are_refused() {
        let (group, address) = group(1);
        defer_accept(&group[0]).expect("the kernel defers");
        let mut client = TcpStream::connect(address).expect("it listens");
        stop_deferring(&group[0]).expect("it can be switched off");
        refuse_connections(&group).expect("the kernel knows how");
        client.write_all(b"x").expect("sent");
        let until = Instant::now() + Duration::from_secs(10);
        while !crate::has_pending(&group[0]) {
            assert!(Instant::now() < until, "it never came in");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(take_all(group), 1);
    }

    #[test]
    fn a_queue_is_taken_in_parts_and_then_closed() {
        let (mut group, address) = group(1);
        let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address)).collect();
        let (taken, left) = take_queue(group.pop().expect("one socket"), 2);
        assert_eq!(taken.len(), 2);
        let (taken, left) = take_queue(left.expect("more may wait"), 2);
        assert_eq!((taken.len(), left.is_none()), (1, true));
        assert!(TcpStream::connect(address).is_err(), "it is closed");
    }

    #[test]
    fn a_unix_socket_refuses_too_and_keeps_its_queue() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("gust-closing-{}.sock", std::process::id()));
        let (sockets, _) = bind(&Endpoint::Unix(path.clone()), 2, 16).expect("it is bound");
        let group: Vec<_> = sockets.into_iter().map(Arc::new).collect();
        let connect = || std::os::unix::net::UnixStream::connect(&path);
        let _client = connect().expect("it listens");
        gather_connections(&group).expect("there is nothing to do");
        stop_deferring(&group[0]).expect("there is nothing to do");
        refuse_connections(&group).expect("it can be shut");
        let refused = connect().expect_err("nobody else comes in");
        std::fs::remove_file(&path).expect("the file is there");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(take_all(group), 1);
    }
}
