//! What the kernel holds of a TCP connection, by `sock_diag(7)`: one connection is looked up in
//! microseconds, where `/proc/net/tcp` writes out those of all tests.

use std::net::SocketAddr;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, send, socket};

/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST` and `IPPROTO_TCP`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const TCP: u8 = 6;
const AF_INET: u8 = 2;
/// `TCP_ESTABLISHED`, and `TCP_CLOSE_WAIT`: the other end sends no more, and what it has sent may
/// wait to be read.
const OPEN: [u8; 2] = [1, 8];
/// Lengths of `nlmsghdr` and of `inet_diag_req_v2`.
const HEADER: usize = 16;
const QUERY: usize = 56;

/// Bytes of one end of a connection that the kernel holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Received, and to be read.
    pub unread: u32,
    /// Sent, and to be acknowledged.
    pub unacknowledged: u32,
}

/// Whether `reader` has taken from the kernel all that `sender` has sent on their connection. A
/// connection that `reader` has closed holds nothing that is still to be read.
pub(crate) fn is_all_read(sender: SocketAddr, reader: SocketAddr) -> bool {
    let is_sent = queues(sender, reader).unacknowledged == 0;
    is_sent && queues(reader, sender).unread == 0
}

/// What the kernel holds at the end `own` of its connection with `other`; nothing if it is closed.
pub(crate) fn queues(own: SocketAddr, other: SocketAddr) -> Queues {
    let kernel = socket(AddressFamily::NETLINK, SocketType::DGRAM, Some(netlink::SOCK_DIAG));
    let kernel = kernel.expect("a netlink socket");
    send(&kernel, &query(own, other), SendFlags::empty()).expect("the kernel takes the query");
    let mut response = [0; 512];
    let (_, length) = recv(&kernel, &mut response[..], RecvFlags::empty()).expect("a response");
    // A shorter one is an error: there is no such connection. A listener is found in its place.
    match response[..length].get(HEADER..HEADER + 72) {
        Some(found) if OPEN.contains(&found[1]) => {
            let at = |at| u32::from_ne_bytes(std::array::from_fn(|byte| found[at + byte]));
            Queues { unread: at(56), unacknowledged: at(60) }
        }
        _ => Queues::default(),
    }
}

/// A header and an `inet_diag_req_v2` that selects one connection.
fn query(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + QUERY];
    let length = u32::try_from(bytes.len()).expect("short");
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    bytes[HEADER..HEADER + 2].copy_from_slice(&[AF_INET, TCP]);
    bytes[HEADER + 4..HEADER + 8].fill(0xff); // any state
    for (end, port_at, address_at) in [(own, 8, 12), (other, 10, 28)] {
        let SocketAddr::V4(end) = end else { panic!("{end} is of another family") };
        let (port_at, address_at) = (HEADER + port_at, HEADER + address_at);
        bytes[port_at..port_at + 2].copy_from_slice(&end.port().to_be_bytes());
        bytes[address_at..address_at + 4].copy_from_slice(&end.ip().octets());
    }
    bytes[HEADER + 48..].fill(0xff); // no cookie
    bytes
}
