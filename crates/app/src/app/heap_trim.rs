//! Memory that goes back to the kernel after a burst of connections, or of handshakes.
//!
//! The allocator keeps what was freed for whoever asks next. After a burst that is most of the
//! process, for good. When most of the connections have gone, or many handshakes are over, a thread
//! of its own waits until no more of them go or come, gives the free pages back, and ends: an idle
//! server has no tick, and no worker waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use gustnado_tasks::{Workers, connections_open, trim_heap};

/// Connections, or handshakes, whose memory is worth the work.
const BURST_MIN: usize = 256;
/// Handshakes between two looks that are no burst.
const FEW_HANDSHAKES: usize = 64;
/// How long the thread waits until it looks at the connections again.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// How often it looks at most, where connections keep on going.
const LOOKS_MAX: u32 = 15;
/// How long it rests after the work, so that bursts in a row are one.
const REST: Duration = Duration::from_secs(8);

/// The most connections and all handshakes since the heap was trimmed, and whether it is about to
/// be.
#[derive(Debug, Default)]
pub(super) struct HeapTrim {
    peak: AtomicUsize,
    handshakes: AtomicUsize,
    is_running: AtomicBool,
}

impl HeapTrim {
    /// Notes that a connection has begun.
    #[inline]
    pub(super) fn note_opened(&self) {
        let open = connections_open();
        if open > self.peak.load(Ordering::Relaxed) {
            self.peak.store(open, Ordering::Relaxed);
        }
    }

    /// Notes that a connection has ended.
    ///
    /// - `workers`: those that have the connections.
    #[inline]
    pub(super) fn note_closed(self: &Arc<Self>, workers: Option<&Weak<Workers>>) {
        let peak = self.peak.load(Ordering::Relaxed);
        if peak >= BURST_MIN && connections_open() < peak / 2 {
            self.begin(workers.cloned().unwrap_or_default());
        }
    }

    /// Notes that a handshake of TLS is over: it has held some 10 KiB, and its connection stays.
    ///
    /// - `workers`: as for [`HeapTrim::note_closed`].
    pub(super) fn note_handshake(self: &Arc<Self>, workers: Option<&Weak<Workers>>) {
        if self.handshakes.fetch_add(1, Ordering::Relaxed) >= BURST_MIN {
            self.begin(workers.cloned().unwrap_or_default());
        }
    }

    #[cold]
    fn begin(self: &Arc<Self>, workers: Weak<Workers>) {
        if self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        let own = Arc::clone(self);
        let spawned = thread::Builder::new().name("gust-trim".to_owned());
        if spawned.spawn(move || own.run(&workers)).is_err() {
            // No thread can be had just now: the next connection that ends tries again.
            self.is_running.store(false, Ordering::Relaxed);
        }
    }

    /// Waits until connections stop going and handshakes stop coming, and trims the heap.
    fn run(&self, workers: &Weak<Workers>) {
        let open = || workers.upgrade().map_or(0, |workers| workers.connections_open());
        let handshakes = || self.handshakes.load(Ordering::Relaxed);
        let mut last = (open(), handshakes());
        for _ in 0..LOOKS_MAX {
            thread::sleep(LOOK_PERIOD);
            let now = (open(), handshakes());
            if now.0 >= last.0 && now.1 - last.1 < FEW_HANDSHAKES {
                break;
            }
            last = now;
        }
        self.handshakes.store(0, Ordering::Relaxed);
        trim_heap();
        self.peak.store(open(), Ordering::Relaxed);
        thread::sleep(REST);
        self.is_running.store(false, Ordering::Relaxed);
    }
}
