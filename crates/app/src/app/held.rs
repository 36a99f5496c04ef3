//! What connections hold: whose it is, and the memory of what they send.

use gustnado_http::request::RequestView;
use gustnado_tasks::{Charge, MemoryKind, SendBuf, SendGuard};
use gustnado_tls::Socket;

use super::App;
use crate::bodies::BlockedMemory;
use crate::client_key::ClientKey;

impl App {
    /// Returns the client of a request: the peer, or the one that a trusted proxy names.
    pub fn client_key(&self, view: RequestView<'_>, socket: &Socket) -> Option<ClientKey> {
        let peer = socket.peer().ok()?;
        let client = match &self.trusted_proxies {
            Some(proxies) => proxies.client(view, peer),
            None => peer,
        };
        ClientKey::known(client)
    }

    /// Returns the client that a connection belongs to: the peer, or the one that its PROXY header
    /// names. `None` for a trusted proxy, which brings the requests of many.
    #[cold]
    pub fn peer_key(&self, socket: &Socket) -> Option<ClientKey> {
        let peer = socket.peer_unkept().ok()?;
        let is_proxy = self.trusted_proxies.as_ref().is_some_and(|it| it.trusts(&peer));
        if is_proxy { None } else { ClientKey::known(peer) }
    }

    /// Charges a send for as long as its bytes are held. Where sends hold much, it may be cut.
    #[cold]
    #[inline(never)]
    pub fn charge_send(&self, out: &mut SendBuf, socket: &Socket) {
        let mut charge = Charge::new(MemoryKind::Sends);
        charge.set(out.bytes.capacity());
        let client = || self.peer_key(socket);
        let blocked = BlockedMemory::enter(self.bodies(), MemoryKind::Sends, client);
        if let Some(blocked) = &blocked {
            blocked.set(out.bytes.capacity());
        }
        out.keep_with(Box::new(HeldSend { charge, blocked }));
    }
}

/// The memory of a send.
#[derive(Debug)]
struct HeldSend {
    charge: Charge,
    blocked: Option<BlockedMemory>,
}

impl SendGuard for HeldSend {
    fn note_blocked(&self, left_already: usize) {
        if let Some(blocked) = &self.blocked {
            blocked.note_taken(left_already);
        }
    }

    fn note_moved(&mut self, bytes: usize) {
        self.charge.set(bytes);
        if let Some(blocked) = &self.blocked {
            blocked.note_moved(bytes);
        }
    }
}
