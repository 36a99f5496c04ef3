//! I/O operations over `io_uring` and epoll, timers and wake-ups: the only crate that talks to the
//! kernel.
//!
//! A [`Reactor`] belongs to one thread. It offers a closed set of operations (accept, receive,
//! send, send a file, connect, poll, shut down, close), a clock, and a way to be woken from any
//! thread. Two backends stand behind it and behave alike:
//!
//! | operation | `io_uring` | epoll |
//! | --- | --- | --- |
//! | accept | multishot, into the ring's own table | `accept4` until it would block |
//! | receive | one-shot, then multishot into provided buffers | one `recv` per readiness edge |
//! | receive much | one-shot, into large provided buffers | `recv` into a large buffer |
//! | discard | `recv` with `MSG_TRUNC`, no buffer | the same |
//! | send | one in flight, `MSG_WAITALL` | `send`, the rest when writable |
//! | send a file | `sendfile` on an installed descriptor | `sendfile`, the rest when writable |
//! | connect | `connect`, then a one-shot poll | `connect`, then the first edge |
//! | names, options | the call, on a descriptor installed for it | the call |
//! | close | cancel what is armed, close on its last completion | `close` |
//! | wake-up | multishot poll on an eventfd | edge-triggered eventfd |
//!
//! Every operation is **completion-shaped**: ask for it with the [`Token`] of the waiting task; it
//! is either complete (`Poll::Ready`) or under way, and then one [`Reactor::turn`] hands the token
//! out and asking again gives the completion. Asking for an operation under way starts nothing
//! twice. Buffers are owned: received bytes come in a [`RecvBuf`], bytes to send go in an
//! [`SendBuf`].
//!
//! What lives here: descriptors, rings, readiness, timers ([`Wheel`]), the clock. What does not:
//! tasks, HTTP, any decision. It uses the kernel, and no other crate of the workspace.

mod buf;
mod clock;
mod driven;
mod epoll;
mod io;
mod large_bufs;
mod lazy_table;
mod listen;
mod listener_poll;
mod memory_account;
mod provided_bufs;
mod reactor;
mod readiness;
mod socket_addrs;
mod sys;
mod transferring;
mod uring;
mod waker;
mod watched;
mod wheel;

pub use buf::{Discarded, OpenedRoom, RecvBuf, SendBuf, SendGuard, Unsent};
pub use clock::Clock;
pub use io::{Io, IoId};
pub use lazy_table::LazyTable;
pub use listen::{
    BindOptions, Endpoint, Outbound, SocketOptions, TrafficClass, bind, bind_with, connect_socket,
    defer_accept, descriptor_limit, duplicate, gather_connections, lowest_free_descriptor,
    refuse_connections, set_options, stop_deferring, take_queue,
};
pub use listener_poll::{has_pending, poll_listeners, prepare_to_share, take_connection};
pub use memory_account::{BufferAccount, MemoryAccount};
pub use reactor::{
    Accepted, BackendKind, IoChoice, Listener, Options, Reactor, ReactorSeed, Wait, probe_uring,
};
pub use readiness::Interest;
pub use socket_addrs::SocketAddrs;
pub use sys::options::{block_file_size_signal, trim_heap};
pub use sys::private_file::{MappedFile, PrivateFile};
pub use sys::secret_memory::{SECRET_BYTES, SecretBytes};
pub use waker::ReactorWaker;
pub use watched::{Wants, WatchEvent};
pub use wheel::{TimerKey, Wheel};

/// The waiter of an operation. The reactor stores it and hands it back; it knows no tasks.
pub type Token = u64;
