//! The memory that a server may hold, and how it is divided among kinds.

use gustnado_tasks::MemoryKind;

use super::fields::number;
use super::machine::{Machine, Resolved};
use super::tunable::{SettingGroup, Tunable};
use super::{Config, Io, Unit};

/// The part of the memory that `max-memory` takes when it is `auto`.
const AUTO_PART: u64 = 4;
/// Less would hold no useful server.
const MAX_MEMORY_MIN: u64 = 16 << 20;
/// Received bytes up to this size belong to what a connection costs: they are charged to no kind.
pub const UNCHARGED_BYTES: usize = 4 << 10;
/// The most that one receive brings before a body is admitted, or a head is charged.
const RECEIVE_BYTES: u64 = 32 << 10;
/// A send buffer up to this size is not charged.
const SEND_BYTES: u64 = 16 << 10;
/// What a worker receives into under epoll, and the size of a buffer of the kernel's.
const WORKER_BYTES: u64 = 32 << 10;
const RING_BUFFER_BYTES: u64 = 4 << 10;
/// What a connection takes: its task, its slot, its timer.
const IDLE_BYTES: u64 = 256;
/// What a request takes beyond that while its handler runs: its head, its fields, its future.
const HANDLER_BYTES: u64 = 4 << 10;
/// What a connection by HTTP/2 takes at most, its streams included: itself, by TLS; a table of
/// fields each way; the streams that belong to it, each with a head, a body and what is kept with
/// them; a part of a frame; a send and the next one. See `docs/http2.md`.
const HTTP2_BYTES: u64 = 1_280
    + 2 * TABLE_BYTES
    + HTTP2_STREAMS * (2 * UNCHARGED_BYTES as u64 + HTTP2_STREAM_BYTES)
    + UNCHARGED_BYTES as u64
    + 2 * SEND_BYTES;
const TABLE_BYTES: u64 = 4 << 10;
const HTTP2_STREAMS: u64 = 8;
const HTTP2_STREAM_BYTES: u64 = 1 << 10;

pub(super) const MAX_MEMORY: Tunable = Tunable {
    name: "max-memory",
    group: SettingGroup::Limits,
    default: "auto",
    doc: "Memory that connections and caches may hold; auto is a quarter of the machine",
    field: number!(max_memory, Bytes, 0x0100_0000..=1 << 50, or "auto"),
};

pub(super) const LIMIT_BODY_MEMORY: Tunable = Tunable {
    name: "limit-body-memory",
    group: SettingGroup::Limits,
    default: "64m",
    doc: "Memory for request bodies, at most a quarter of max-memory; beyond it they wait",
    field: number!(limit_body_memory, Bytes, 0x0010_0000..=1 << 50),
};

/// Declares the memory of a kind: its share of all memory, or less.
macro_rules! share_of {
    ($name:literal, $field:ident, $doc:literal) => {
        Tunable {
            name: $name,
            group: SettingGroup::Limits,
            default: "auto",
            doc: $doc,
            field: number!($field, Bytes, 0x0001_0000..=1 << 50, or "auto"),
        }
    };
}

pub(super) const LIMIT_HEAD_MEMORY: Tunable = share_of!(
    "limit-head-memory",
    limit_head_memory,
    "Memory for parts of heads; auto, and the most, is an eighth of max-memory"
);

pub(super) const LIMIT_SEND_MEMORY: Tunable = share_of!(
    "limit-send-memory",
    limit_send_memory,
    "Memory for responses to send; auto, and the most, is an eighth of max-memory"
);

pub(super) const LIMIT_RECEIVE_MEMORY: Tunable = share_of!(
    "limit-receive-memory",
    limit_receive_memory,
    "Memory for receive buffers; auto, and the most, is a sixteenth of max-memory"
);

pub(super) const LIMIT_QUEUE_MEMORY: Tunable = share_of!(
    "limit-queue-memory",
    limit_queue_memory,
    "Memory for requests that wait; auto, and the most, is a sixteenth of max-memory"
);

pub(super) const LIMIT_WEBSOCKET_MEMORY: Tunable = share_of!(
    "limit-websocket-memory",
    limit_websocket_memory,
    "Memory for WebSockets; auto, and the most, is a sixteenth of max-memory"
);

/// The budgets of a server, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// All of it together.
    pub total: u64,
    /// The reason, as half a sentence.
    pub because: String,
    /// Request heads and later requests that are not parsed yet.
    pub heads: u64,
    /// Request bodies.
    pub bodies: u64,
    /// Responses that peers have not taken yet.
    pub sends: u64,
    /// Prepared responses of small files.
    pub cache: u64,
    /// Buffers that requests are received into.
    pub receives: u64,
    /// Requests that wait for a handler or a thread.
    pub queue: u64,
    /// Messages of `WebSocket`s, in both directions, and what their compressors keep.
    pub websockets: u64,
    /// The most that one connection holds outside all kinds, by its state.
    pub per_connection: Vec<(&'static str, u64)>,
}

impl MemoryPlan {
    /// Returns the budget of a kind.
    pub fn budget(&self, kind: MemoryKind) -> u64 {
        match kind {
            MemoryKind::Heads => self.heads,
            MemoryKind::Bodies => self.bodies,
            MemoryKind::Sends => self.sends,
            MemoryKind::Cache => self.cache,
            MemoryKind::Receives => self.receives,
            MemoryKind::Queue => self.queue,
            MemoryKind::WebSockets => self.websockets,
        }
    }

    /// Returns the sum of all kinds.
    pub fn sum(&self) -> u64 {
        MemoryKind::ALL.into_iter().map(|kind| self.budget(kind)).sum()
    }

    /// Returns how many connections the rest allows where each is in its worst state.
    pub fn connections(&self) -> u64 {
        let worst = self.per_connection.iter().map(|(_, bytes)| *bytes).max().unwrap_or(1);
        self.total.saturating_sub(self.sum()) / worst
    }
}

impl Machine {
    /// Returns the memory that connections and caches may hold together: as set, or a quarter of
    /// what the control groups or the machine have.
    pub fn max_memory(&self, config: &Config) -> Resolved {
        let resolved = |bytes: u64, because: String| Resolved {
            value: usize::try_from(bytes).unwrap_or(usize::MAX),
            because,
        };
        if config.max_memory > 0 {
            return resolved(config.max_memory, "as set".to_owned());
        }
        let (bytes, of) = match self.memory_max_bytes {
            Some(limit) if limit < self.memory_bytes => (limit, "the cgroup allows"),
            _ => (self.memory_bytes, "the machine has"),
        };
        let part = (bytes / AUTO_PART).max(MAX_MEMORY_MIN);
        let because = format!("a quarter of the {} that {of}", Unit::Bytes.format(in_mib(bytes)));
        resolved(in_mib(part), because)
    }

    /// Returns the part of that memory for each of several processes that serve together, at least
    /// 16 MiB.
    pub fn memory_share(&self, config: &Config, processes: usize) -> u64 {
        let whole = self.max_memory(config).value as u64;
        (whole / processes.max(1) as u64).max(MAX_MEMORY_MIN)
    }

    /// Returns how that memory is divided: a quarter at most each for bodies and for the cache, as
    /// far as their own settings allow it, an eighth each for heads and for sends, and a sixteenth
    /// each for receive buffers, for requests that wait and for messages of `WebSocket`s. The rest
    /// is for connections.
    ///
    /// Buffers that workers have for their whole life are part of what they receive into, also
    /// where they are more than a sixteenth.
    pub fn memory_plan(&self, config: &Config) -> MemoryPlan {
        let Resolved { value, because } = self.max_memory(config);
        let total = value as u64;
        let received = IDLE_BYTES + RECEIVE_BYTES;
        let mut per_connection = vec![
            ("idle", IDLE_BYTES),
            ("receiving a request", received),
            ("waiting for its handler", received + HANDLER_BYTES),
            ("sending", IDLE_BYTES + SEND_BYTES),
        ];
        if speaks_http2(config) {
            per_connection.push(("by HTTP/2, all streams together", HTTP2_BYTES));
        }
        MemoryPlan {
            total,
            because,
            heads: share(total / 8, config.limit_head_memory),
            bodies: (total / 4).min(config.limit_body_memory),
            sends: share(total / 8, config.limit_send_memory),
            cache: (total / 4).min(config.cache_bytes),
            receives: share(total / 16, config.limit_receive_memory)
                .max(self.worker_buffers(config)),
            queue: share(total / 16, config.limit_queue_memory),
            websockets: share(total / 16, config.limit_websocket_memory),
            per_connection,
        }
    }

    /// Returns what the workers receive into, all of them together.
    fn worker_buffers(&self, config: &Config) -> u64 {
        let workers = self.workers(config).value.max(config.workers_max) as u64;
        let ring = u64::from(config.uring_buffers.clamp(8, 16_384).next_power_of_two())
            * RING_BUFFER_BYTES;
        let of_each = if config.io == Io::Epoll { WORKER_BYTES } else { ring.max(WORKER_BYTES) };
        workers * of_each
    }
}

/// Returns whether a listener may take HTTP/2.
fn speaks_http2(config: &Config) -> bool {
    let has_https = || config.listen.iter().any(|endpoint| endpoint.starts_with("https:"));
    let has_tls = || config.tls_cert.is_some() || !config.acme.is_empty() || has_https();
    config.h2c || config.http2 && has_tls()
}

/// Returns a kind's part of the memory: less if that is set.
fn share(part: u64, set: u64) -> u64 {
    if set == 0 { part } else { part.min(set) }
}

/// Returns whole mebibytes, so that it can be read.
fn in_mib(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn machine(memory_max_bytes: Option<u64>) -> Machine {
        Machine { memory_max_bytes, memory_bytes: 8 << 30, ..Machine::read() }
    }

    #[test]
    fn auto_is_a_quarter_of_the_cgroup_or_of_the_machine() {
        let config = Config::default();
        for (limit, bytes, because) in [
            (None, 2 << 30, "a quarter of the 8g that the machine has"),
            (Some(256 * MIB), 64 * MIB, "a quarter of the 256m that the cgroup allows"),
            (Some(1 << 40), 2 << 30, "a quarter of the 8g that the machine has"),
            (Some(8 * MIB), 16 * MIB, "a quarter of the 8m that the cgroup allows"),
        ] {
            let resolved = machine(limit).max_memory(&config);
            assert_eq!((resolved.value as u64, resolved.because.as_str()), (bytes, because));
        }
        let set = Config { max_memory: 100 * MIB, ..config };
        assert_eq!(machine(None).max_memory(&set).value as u64, 100 * MIB);
    }

    #[test]
    fn processes_share_the_memory_and_none_gets_too_little() {
        let (machine, auto) = (machine(Some(1 << 30)), Config::default());
        assert_eq!(machine.memory_share(&auto, 1), 256 * MIB);
        assert_eq!(machine.memory_share(&auto, 4), 64 * MIB);
        let set = Config { max_memory: 100 * MIB, ..auto };
        assert_eq!(
            (machine.memory_share(&set, 2), machine.memory_share(&set, 8)),
            (50 * MIB, 16 * MIB)
        );
    }

    #[test]
    fn the_parts_are_what_is_set_and_never_more_than_their_share() {
        let plan = machine(None).memory_plan(&Config::default());
        assert_eq!((plan.total, plan.bodies, plan.cache), (2 << 30, 64 * MIB, 64 * MIB));
        let small = Config { max_memory: 64 * MIB, workers: 2, ..Config::default() };
        let plan = machine(None).memory_plan(&small);
        assert_eq!((plan.heads, plan.bodies, plan.cache), (8 * MIB, 16 * MIB, 16 * MIB));
        assert_eq!(plan.budget(MemoryKind::Bodies), 16 * MIB);
        assert_eq!((plan.sends, plan.receives, plan.queue), (8 * MIB, 4 * MIB, 4 * MIB));
        assert_eq!((plan.websockets, plan.sum()), (4 * MIB, 60 * MIB));
        let worst = plan.per_connection.iter().map(|(_, bytes)| *bytes).max().expect("states");
        assert_eq!(plan.connections(), 4 * MIB / worst);
    }

    #[test]
    fn each_kind_may_be_given_less_and_never_more() {
        let config = Config {
            max_memory: 256 * MIB,
            limit_head_memory: MIB,
            limit_send_memory: 2 * MIB,
            limit_receive_memory: 9 * MIB,
            limit_queue_memory: 1 << 40,
            io: Io::Epoll,
            workers: 1,
            ..Config::default()
        };
        let plan = machine(None).memory_plan(&config);
        assert_eq!((plan.heads, plan.sends), (MIB, 2 * MIB));
        assert_eq!((plan.receives, plan.queue), (9 * MIB, 16 * MIB));
    }

    #[test]
    fn buffers_that_workers_always_have_are_in_the_sum() {
        let many = Config { max_memory: 64 * MIB, workers: 32, ..Config::default() };
        assert_eq!(machine(None).memory_plan(&many).receives, 32 * 64 * RING_BUFFER_BYTES);
        let epoll = Config { io: Io::Epoll, ..many };
        assert_eq!(machine(None).memory_plan(&epoll).receives, 4 * MIB);
    }
}
