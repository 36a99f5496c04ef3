//! Polling listening sockets without accepting from them: whether a connection waits there,
//! and taking one out of the line of a worker that does not come round.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SocketFlags, accept_with};

use crate::ReactorWaker;

/// Sleeps until the waker is used, a connection waits at one of the sockets, or the time is over.
/// Returns whether one waits.
///
/// # Errors
/// The kernel is out of memory.
pub fn poll_listeners(
    waker: &ReactorWaker,
    sockets: &[impl AsFd],
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let mut asked = vec![PollFd::new(waker, PollFlags::IN)];
    asked.extend(sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
    // A time too far away to be named is no limit.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut asked, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = asked.iter().map(|asked| !asked.revents().is_empty());
    if ready.next() == Some(true) {
        waker.reset();
    }
    Ok(ready.any(|ready| ready))
}

/// Prepares a listening socket for [`take_connection`]. Its other acceptors
/// go on as before.
///
/// # Errors
/// What the kernel says.
pub fn prepare_to_share(listening: &OwnedFd) -> io::Result<()> {
    // A ring needs its listeners to block, and another acceptor may have been quicker. The
    // connections inherit it, and never block.
    Ok(set_socket_timeout(listening, Timeout::Recv, Some(Duration::from_millis(1)))?)
}

/// Returns whether a connection waits at a listening socket.
pub fn has_pending(listening: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(listening, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Takes the first connection out of a line; `None` if there is none.
///
/// # Errors
/// As `accept(2)`.
pub fn take_connection(listening: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    if !has_pending(listening) {
        return Ok(None);
    }
    match accept_with(listening, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(connection) => Ok(Some(connection)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};

    use super::*;
    use crate::{Endpoint, bind};

    fn listening() -> (OwnedFd, SocketAddr) {
        let anywhere = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (mut sockets, endpoint) = bind(&anywhere, 1, 16).expect("a port is free");
        let Endpoint::Tcp(address) = endpoint else { panic!("bound to {endpoint}") };
        (sockets.pop().expect("one socket"), address)
    }

    #[test]
    fn a_line_is_seen_and_taken_from_also_where_the_socket_blocks() {
        let (socket, address) = listening();
        prepare_to_share(&socket).expect("a timeout can be set");
        rustix::io::ioctl_fionbio(&socket, false).expect("a socket can block");
        assert!(!has_pending(&socket));
        assert!(take_connection(&socket).expect("nobody is no error").is_none());
        let _clients = [(); 2].map(|()| TcpStream::connect(address).expect("it listens"));
        let waker = ReactorWaker::new().expect("an eventfd can be had");
        assert!(poll_listeners(&waker, &[&socket], None).expect("the kernel polls"));
        assert!(has_pending(&socket));
        for _ in 0..2 {
            assert!(take_connection(&socket).expect("two wait").is_some());
        }
        // As if another acceptor had been quicker: it must not wait for the next connection.
        let late = accept_with(&socket, SocketFlags::CLOEXEC);
        assert_eq!(late.expect_err("nobody is left"), Errno::AGAIN);
    }

    #[test]
    fn an_alert_ends_one_wait() {
        let waker = ReactorWaker::new().expect("an eventfd can be had");
        waker.wake();
        poll_listeners(&waker, &[] as &[OwnedFd], None).expect("the kernel polls");
        let began = std::time::Instant::now();
        let rest = Duration::from_millis(20);
        assert!(!poll_listeners(&waker, &[&listening().0], Some(rest)).expect("the kernel polls"));
        assert!(began.elapsed() >= rest, "the alert was heard twice");
    }
}
