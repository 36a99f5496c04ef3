//! Receives of a ring: into provided buffers, into large ones, or into nothing.

use io_uring::{opcode, squeue};

use super::{BUFFER_GROUP, FdTarget, Key, OpKind, Ring, register_bufs};
use crate::provided_bufs::LargeBufRing;

const MSG_TRUNC: i32 = 0x20;
const LARGE_BUFFER_GROUP: u16 = 1;

/// How to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecvKind {
    /// Once, into a provided buffer.
    Once,
    /// Until stopped, into provided buffers.
    Multishot,
    /// Once, into a large buffer.
    Large,
    /// Once, up to so many bytes, into nothing: they are discarded.
    Discard(u32),
}

/// The large buffers of a ring.
pub(super) enum LargeRecv {
    Unused,
    Ready(LargeBufRing),
    /// The kernel takes no second group of buffers.
    Refused,
}

impl Ring {
    /// Returns how many large buffers the kernel may fill; 0 where it takes none.
    pub(crate) fn large_available(&mut self) -> u16 {
        if matches!(self.large, LargeRecv::Unused) {
            let large = LargeBufRing::new(self.account.clone());
            let offered = register_bufs(&self.uring.submitter(), large.ring(), LARGE_BUFFER_GROUP);
            let refused = |_| LargeRecv::Refused;
            self.large = offered.map_or_else(refused, |()| LargeRecv::Ready(large));
        }
        match &mut self.large {
            LargeRecv::Ready(large) => large.refill(),
            LargeRecv::Unused | LargeRecv::Refused => 0,
        }
    }

    /// Receives as `kind` says.
    pub(crate) fn recv(&mut self, target: FdTarget, key: Key, kind: RecvKind) {
        let once = opcode::Recv::new(target.fd(), std::ptr::null_mut(), 0);
        let select = squeue::Flags::BUFFER_SELECT;
        let (entry, op) = match kind {
            RecvKind::Multishot => {
                (opcode::RecvMulti::new(target.fd(), BUFFER_GROUP).build(), OpKind::Recv)
            }
            RecvKind::Once => (once.buf_group(BUFFER_GROUP).build().flags(select), OpKind::Recv),
            RecvKind::Large => {
                (once.buf_group(LARGE_BUFFER_GROUP).build().flags(select), OpKind::RecvLarge)
            }
            // The kernel copies nothing with this flag (tcp(7)). For another socket than TCP it
            // would write from address 0 on, where no memory of this process can be.
            RecvKind::Discard(bytes_max) => {
                let discard = opcode::Recv::new(target.fd(), std::ptr::null_mut(), bytes_max);
                (discard.flags(MSG_TRUNC).build(), OpKind::Discard)
            }
        };
        self.receives_under_way += 1;
        self.push_on(target, entry, op.tag(key));
    }
}
