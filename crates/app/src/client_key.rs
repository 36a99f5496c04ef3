//! What counts as one client: an address, or a network of addresses.

use std::io;
use std::net::IpAddr;

use gustnado_tasks::Endpoint;

/// The unit that counts as one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientKey {
    V4([u8; 4]),
    /// The /64 network: a client has all addresses in it.
    V6([u8; 8]),
    /// A Unix socket, or an unknown address.
    Unknown,
}

impl ClientKey {
    /// Returns the client at an address; `None` for a Unix socket, behind which there may be any
    /// number of them.
    pub fn known(peer: Endpoint) -> Option<Self> {
        Some(Self::of(&Ok(peer))).filter(|client| *client != Self::Unknown)
    }

    /// Returns a number that no other client has.
    pub fn number(self) -> u64 {
        match self {
            // In front of it is what begins a multicast address, which no peer has.
            Self::V4(address) => 0xffff_ffff << 32 | u64::from(u32::from_be_bytes(address)),
            Self::V6(network) => u64::from_be_bytes(network),
            Self::Unknown => u64::MAX,
        }
    }

    pub(crate) fn of(peer: &io::Result<Endpoint>) -> Self {
        let Ok(Endpoint::Tcp(address)) = peer else { return Self::Unknown };
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let network = ip.octets().first_chunk().copied();
                Self::V6(network.expect("an address has sixteen bytes"))
            }
        }
    }
}
