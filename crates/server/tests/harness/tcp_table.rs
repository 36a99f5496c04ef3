//! The kernel's table of TCP connections: whether one end has read what the other has sent.

use std::fs;
use std::net::SocketAddr;

/// Whether `reader` has taken from the kernel all that `sender` has sent on their connection. A
/// connection that `reader` has closed holds nothing that is still to be read.
pub(crate) fn is_all_read(sender: SocketAddr, reader: SocketAddr) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux tells");
    // Bytes that wait to be acknowledged, and bytes that wait to be read.
    let queues = |own: SocketAddr, other: SocketAddr| {
        let ends = [own, other].map(in_table);
        table.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let [local, remote, state, queues] = std::array::from_fn(|_| fields.next());
            let is_wanted =
                [local?, remote?] == ends && [ESTABLISHED, CLOSE_WAIT].contains(&state?);
            is_wanted.then(|| queues?.split_once(':'))?
        })
    };
    let is_sent = queues(sender, reader).is_none_or(|(unacknowledged, _)| unacknowledged == NONE);
    is_sent && queues(reader, sender).is_none_or(|(_, unread)| unread == NONE)
}

const ESTABLISHED: &str = "01";
/// The other end sends no more; what it has sent may wait to be read.
const CLOSE_WAIT: &str = "08";
const NONE: &str = "00000000";

fn in_table(address: SocketAddr) -> String {
    let SocketAddr::V4(address) = address else { panic!("{address} is in another table") };
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}
