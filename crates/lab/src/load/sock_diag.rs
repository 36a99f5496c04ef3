//! Retransmissions on the connections of a run, as `ss -ti` reads them: requests the `tcp_info` of
//! all connections from the kernel, and counts those with a server of the run at one end.
//!
//! The kernel's own counter covers the whole machine. A socket option would need a descriptor,
//! which a connection in a ring does not have.
//!
//! Source: `sock_diag(7)`, `linux/inet_diag.h`, `linux/tcp.h`.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `INET_DIAG_INFO`, the attribute with `tcp_info`; a request selects it by its bit, one lower.
const INFO: u16 = 2;
/// States of open and closing connections: `1 << TCP_ESTABLISHED` and the like.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const HEADER: usize = 16;
/// Length of `inet_diag_msg`; its attributes follow.
const MESSAGE: usize = 72;
/// Offset of `tcpi_total_retrans` in `tcp_info`.
const TOTAL_RETRANS: usize = 100;
/// Time-out of the kernel's response.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the segments retransmitted so far on connections with one of these servers, by both ends
/// if they are on this machine; `None` if the kernel does not report it.
pub(super) fn retransmits(servers: &[SocketAddr]) -> Option<u64> {
    let servers: HashSet<SocketAddr> = servers.iter().map(|server| canonical(*server)).collect();
    let of = |family| of_family(family, &servers).ok();
    Some(of(AF_INET)? + of(AF_INET6)?)
}

fn of_family(family: u8, servers: &HashSet<SocketAddr>) -> io::Result<u64> {
    let kernel = socket(AddressFamily::NETLINK, SocketType::DGRAM, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&kernel, Timeout::Recv, Some(PATIENCE))?;
    send(&kernel, &request(family), SendFlags::empty())?;
    let (mut sum, mut bytes) = (0, vec![0; 64 << 10]);
    loop {
        let (_, length) = recv(&kernel, &mut bytes[..], RecvFlags::empty())?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match add(&bytes[..length], servers, &mut sum) {
            Read::More => {}
            Read::Done => return Ok(sum),
            Read::Refused => return Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// A header and an `inet_diag_req_v2` that selects no single connection.
fn request(family: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + 56];
    let length = u32::try_from(bytes.len()).expect("it is short");
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes[HEADER..HEADER + 3].copy_from_slice(&[family, TCP, 1 << (INFO - 1)]);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

/// The state of a dump after a datagram.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    More,
    Done,
    Refused,
}

/// Adds the messages of a datagram.
fn add(mut bytes: &[u8], servers: &HashSet<SocketAddr>, sum: &mut u64) -> Read {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match kind {
            NLMSG_DONE => return Read::Done,
            NLMSG_ERROR => return Read::Refused,
            _ => {}
        }
        let Some(message) = bytes.get(HEADER..length) else { return Read::Refused };
        let ends = [end(message, 4, 8), end(message, 6, 24)];
        if ends.iter().flatten().any(|end| servers.contains(end)) {
            *sum += u64::from(total_retrans(message.get(MESSAGE..).unwrap_or_default()));
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Read::More
}

/// One end of a connection: port and address, both in network form.
fn end(message: &[u8], port_at: usize, address_at: usize) -> Option<SocketAddr> {
    let port = message.get(port_at..port_at + 2)?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    let address = message.get(address_at..address_at + 16)?;
    let address = if *message.first()? == AF_INET {
        let four: [u8; 4] = address[..4].try_into().ok()?;
        IpAddr::V4(Ipv4Addr::from(four))
    } else {
        let sixteen: [u8; 16] = address.try_into().ok()?;
        IpAddr::V6(Ipv6Addr::from(sixteen))
    };
    Some(canonical(SocketAddr::new(address, port)))
}

/// A server that listens on all IPv6 addresses has IPv4-mapped ones.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns it from the attributes of a message; 0 without TCP information.
fn total_retrans(mut attributes: &[u8]) -> u32 {
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        if kind == INFO {
            return u32_at(attributes, 4 + TOTAL_RETRANS).unwrap_or(0);
        }
        if length < 4 {
            return 0;
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    0
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// A message about a connection from 127.0.0.1:9 to 127.0.0.1:80.
    fn message(retransmits: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + MESSAGE + 4 + 8];
        let info = 4 + TOTAL_RETRANS + 4;
        bytes[HEADER] = AF_INET;
        bytes[HEADER + 4..HEADER + 8].copy_from_slice(&[0, 9, 0, 80]);
        bytes[HEADER + 8..HEADER + 12].copy_from_slice(&[127, 0, 0, 1]);
        bytes[HEADER + 24..HEADER + 28].copy_from_slice(&[127, 0, 0, 1]);
        // Another attribute of 9 bytes before it.
        bytes[HEADER + MESSAGE] = 9;
        bytes[HEADER + MESSAGE + 2] = 7;
        let mut attribute = vec![0; info];
        attribute[..2].copy_from_slice(&u16::try_from(info).expect("short").to_ne_bytes());
        attribute[2] = 2;
        attribute[4 + TOTAL_RETRANS..].copy_from_slice(&retransmits.to_ne_bytes());
        bytes.extend(attribute);
        let length = u32::try_from(bytes.len()).expect("short");
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4] = 20;
        bytes
    }

    #[test]
    fn what_was_sent_again_is_added_for_connections_with_a_server_of_the_run() {
        let servers = |address: &str| HashSet::from([address.parse().expect("an address")]);
        let two = [message(3), message(4)].concat();
        let mut sum = 0;
        assert_eq!(add(&two, &servers("127.0.0.1:80"), &mut sum), Read::More);
        assert_eq!(sum, 7);
        assert_eq!(add(&two, &servers("127.0.0.1:9"), &mut sum), Read::More);
        assert_eq!(sum, 14, "of the server's end too");
        assert_eq!(add(&two, &servers("127.0.0.1:81"), &mut sum), Read::More);
        assert_eq!(sum, 14, "others are not of this run");
    }

    #[test]
    fn any_cut_is_read_without_a_panic() {
        let (whole, servers) = (message(3), HashSet::new());
        for length in 0..whole.len() {
            add(&whole[..length], &servers, &mut 0);
            total_retrans(&whole[..length]);
        }
        let mut endless = whole;
        endless[HEADER + MESSAGE] = 0;
        assert_eq!(total_retrans(&endless[HEADER + MESSAGE..]), 0);
    }

    #[test]
    fn this_machine_tells_of_a_connection_that_lost_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let server = listener.local_addr().expect("it is bound");
        let _stream = TcpStream::connect(server).expect("it listens");
        match retransmits(&[server]) {
            Some(count) => assert_eq!(count, 0),
            None => println!("skipped: this kernel does not report it"),
        }
    }
}
