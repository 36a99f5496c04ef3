//! The state that all connections of a server share: limits, routes, counters.

mod early_hints;
mod ended;
mod every_response;
mod guards;
mod handle;
mod heap_trim;
mod held;
mod http2_bounds;
mod openings;
mod reached;
mod refusal;
mod server_shared;

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gustnado_config::millis;
use gustnado_http::h2::H2Limits;
use gustnado_http::limits::Limits;
use gustnado_http::response_writer::Persist;
use gustnado_tasks::{Endpoint, MemoryKind, ProgressTimeout};
use gustnado_tls::TlsInfo;

use crate::bodies::Bodies;
use crate::client_slots::ClientSlot;
use crate::hooks::Hooks;
use crate::pace::Pace;
use gustnado_config::{Config, EarlyHints, ResponseVersion};
use gustnado_observe::access_log::AccessLog;
use gustnado_observe::stats::{Added, Fault, Tally};
use gustnado_web::handler::panicked;
use gustnado_web::response::Response;
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::Tables;
use gustnado_web::trusted_proxies::TrustedProxies;

pub use ended::ConnectionStart;
pub use guards::{GuardVerdict, Guards, is_secure_connection};
pub use handle::AppHandle;
pub use openings::{ConnectionOpening, Http2Opening, ListenerKey, Openings, ServeHttp2};
pub use server_shared::ServerShared;

/// Drops the running thread's caches of the server that it works for.
pub fn forget() {
    RouteCache::forget();
    every_response::forget();
}

/// Time-outs of a connection, in milliseconds.
#[derive(Clone, Copy)]
pub struct Times {
    /// For a connection's first byte.
    pub first_ms: u64,
    pub header_ms: u64,
    pub keep_alive_ms: u64,
    pub body: ProgressTimeout,
    pub write: ProgressTimeout,
    /// When a send's progress is first checked: see [`ProgressTimeout::first_look_ms`].
    pub write_look_ms: u64,
    /// How long a client that has shut down its sending side may wait for a handler.
    pub half_close_ms: u64,
    /// How long a client with open requests may be silent by HTTP/2 before it is sent a PING; 0:
    /// for ever.
    pub ping_ms: u64,
    /// How long it may be silent then.
    pub ping_answer_ms: u64,
}

/// Connection behaviour that differs from the default.
#[derive(Clone, Copy)]
pub struct ConnPolicy {
    /// Requests per connection; `None` where there is no limit.
    pub requests_max: Option<u64>,
    /// The HTTP version that responses state.
    pub version: ResponseVersion,
}

impl ConnPolicy {
    fn of(config: &Config) -> Option<Self> {
        let requests_max = Some(config.max_requests_per_connection).filter(|max| *max > 0);
        let version = config.answer_version;
        let is_unusual = requests_max.is_some() || version != ResponseVersion::Newest;
        is_unusual.then_some(Self { requests_max, version })
    }
}

/// The configuration and shared state that connections are served by. A reload makes a new one.
pub struct App {
    pub limits: Limits,
    pub times: Times,
    /// Its connection policy; `None` for the default, so that the request path tests one pointer.
    pub policy: Option<ConnPolicy>,
    pub hooks: Hooks,
    /// The access log, if there is one.
    pub access_log: Option<Arc<AccessLog>>,
    /// Connections that one client may have; 0 is no limit.
    pub connections_per_client: u32,
    /// What connections begin with, for each listener.
    pub openings: Openings,
    /// What serves connections in HTTP/2, if they are.
    pub http2: Option<Http2Opening>,
    /// What HTTP/2 keeps to.
    pub h2: H2Limits,
    /// What of an HTTP/2 connection the kernel holds that is not under way, if its client is slow;
    /// 0: no less than of others.
    pub h2_unsent_max: usize,
    /// Another one for each app.
    number: u32,
    /// The same for what is sent without https, where that differs.
    plain_number: u32,
    /// The line of `Strict-Transport-Security` (RFC 6797); empty: there is none.
    hsts_line: Box<str>,
    /// What requests have to meet before they are routed, if there is something: then
    /// [`Notice::has_guards`].
    pub guards: Option<Arc<Guards>>,
    early_hints: EarlyHints,
    /// The proxies whose fields about the client are trusted, if any.
    pub trusted_proxies: Option<Arc<TrustedProxies>>,
    /// Bytes of later requests that are read while a handler runs.
    pub read_ahead_bytes: usize,
    /// Bytes of a stream that are joined into one send, if it has them at once.
    pub stream_buffer_bytes: usize,
    /// The routes in force.
    pub tables: Arc<Tables>,
    tallies: Arc<[Tally]>,
    /// What connections must look at before they respond, so that a request tests it with one load.
    notice: AtomicU8,
    shared: Arc<ServerShared>,
    current: Weak<AppHandle>,
    /// The pace of connections, if they have one.
    pace: Option<Arc<Pace>>,
}

/// What connections must look at before they respond. Mostly it is nothing.
#[derive(Clone, Copy)]
pub struct Notice(u8);

impl Notice {
    const NEWS: u8 = 1;
    const GUARDS: u8 = 2;

    /// Returns whether a connection must check [`App::is_draining`] and [`App::successor`].
    #[inline]
    pub fn has_news(self) -> bool {
        self.0 & Self::NEWS != 0
    }

    /// Returns whether requests have to meet [`App::guards`].
    #[inline]
    pub fn has_guards(self) -> bool {
        self.0 & Self::GUARDS != 0
    }
}

impl App {
    pub fn new(
        config: &Config,
        tables: Arc<Tables>,
        (hooks, access_log): (Hooks, Option<Arc<AccessLog>>),
        shared: Arc<ServerShared>,
        current: Weak<AppHandle>,
        openings: Openings,
    ) -> Self {
        let write = ProgressTimeout {
            silence_ms: millis(config.write_timeout),
            rate_min: config.write_rate_min,
        };
        Self {
            limits: Limits {
                head_bytes_max: config.limit_head_bytes,
                target_bytes_max: config.limit_target_bytes,
                fields_max: config.limit_header_fields,
                body_bytes_max: config.limit_body_bytes,
            },
            times: Times {
                first_ms: millis(match config.first_request_timeout {
                    Duration::ZERO => config.header_timeout,
                    own => own,
                }),
                header_ms: millis(config.header_timeout),
                keep_alive_ms: millis(config.timeout_keep_alive),
                body: ProgressTimeout {
                    silence_ms: millis(config.body_timeout),
                    rate_min: config.body_rate_min,
                },
                write,
                write_look_ms: write.first_look_ms(),
                half_close_ms: millis(config.half_close_timeout),
                ping_ms: millis(config.h2_ping),
                ping_answer_ms: millis(config.h2_ping_timeout),
            },
            policy: ConnPolicy::of(config),
            hooks,
            access_log,
            connections_per_client: config.connections_per_client,
            http2: openings.http2,
            h2: http2_bounds::h2_limits(config),
            h2_unsent_max: http2_bounds::h2_unsent_max(config),
            number: next_number(),
            plain_number: next_number(),
            hsts_line: hsts_line(config.hsts),
            guards: Guards::of(config, &openings, !config.forwarded_allow_ips.is_empty()),
            openings,
            early_hints: config.early_hints,
            trusted_proxies: TrustedProxies::of(config),
            read_ahead_bytes: config.read_ahead_bytes,
            stream_buffer_bytes: config.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&shared.tallies),
            notice: AtomicU8::new(0),
            shared,
            current,
            pace: Pace::new(&config.pace).map(Arc::new),
        }
        .with_notice()
    }

    /// Returns a copy with other routes.
    fn with_tables(&self, tables: Arc<Tables>) -> Self {
        Self {
            limits: self.limits,
            times: self.times,
            policy: self.policy,
            hooks: self.hooks.clone(),
            access_log: self.access_log.clone(),
            connections_per_client: self.connections_per_client,
            http2: self.http2,
            h2: self.h2,
            h2_unsent_max: self.h2_unsent_max,
            number: next_number(),
            plain_number: next_number(),
            hsts_line: self.hsts_line.clone(),
            guards: self.guards.clone(),
            openings: self.openings.clone(),
            early_hints: self.early_hints,
            trusted_proxies: self.trusted_proxies.clone(),
            read_ahead_bytes: self.read_ahead_bytes,
            stream_buffer_bytes: self.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&self.tallies),
            notice: AtomicU8::new(0),
            shared: Arc::clone(&self.shared),
            current: Weak::clone(&self.current),
            pace: self.pace.clone(),
        }
        .with_notice()
    }

    fn with_notice(mut self) -> Self {
        let guards = if self.guards.is_some() { Notice::GUARDS } else { 0 };
        self.notice = AtomicU8::new(guards);
        self
    }

    /// Returns how a refusal announces the connection's end.
    pub fn refusal_persist(&self) -> Persist {
        match &self.policy {
            Some(ConnPolicy { version: ResponseVersion::Old, .. }) => Persist::OldClose,
            _ => Persist::Close,
        }
    }

    /// Returns the request bodies in memory.
    pub fn bodies(&self) -> &Arc<Bodies> {
        &self.shared.bodies
    }

    /// Returns whether more memory of a kind is held than may be.
    #[cold]
    pub fn is_short_of(&self, kind: MemoryKind) -> bool {
        self.shared.bodies.is_short_of(kind)
    }

    /// Takes a slot of the client of a new connection; `None` if it has no more. A trusted proxy
    /// brings the connections of many clients, so its own are not counted.
    ///
    /// - `peer`: where the connection comes from, or what its PROXY header says.
    pub fn take_client_slot(&self, peer: &io::Result<Endpoint>) -> Option<ClientSlot> {
        let slots = &self.shared.client_slots;
        let is_proxy = |peer| self.trusted_proxies.as_ref().is_some_and(|it| it.trusts(peer));
        if peer.as_ref().is_ok_and(is_proxy) {
            return Some(slots.uncounted());
        }
        slots.take(peer, self.connections_per_client)
    }

    /// Returns a slot that counts for no client.
    pub fn take_no_client_slot(&self) -> ClientSlot {
        self.shared.client_slots.uncounted()
    }

    /// Notes that a connection has begun.
    #[inline]
    pub fn note_opened(&self) {
        self.shared.heap_trim.note_opened();
    }

    /// Returns the pace of connections, if they have one.
    pub fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }

    /// Returns a handler's response; 500 if it panicked, which is counted.
    #[inline]
    pub fn response_or_500(&self, response: Option<Response>) -> Response {
        response.unwrap_or_else(|| {
            self.count(&Added { fault: Some(Fault::HandlerPanicked), ..Added::default() });
            panicked()
        })
    }

    /// Returns what a connection must look at before it responds.
    #[inline]
    pub fn notice(&self) -> Notice {
        // Relaxed: a connection that sees the flag, or the state that it announces, too late serves
        // one more request, as if that had come earlier.
        Notice(self.notice.load(Ordering::Relaxed))
    }

    fn give_notice(&self) {
        self.notice.fetch_or(Notice::NEWS, Ordering::SeqCst);
    }

    /// Returns whether each connection's next response is its last.
    #[cold]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining()
    }

    /// Returns whether another app is in force. False during a drain: each connection has one
    /// response left, for which switching is not worth it.
    #[cold]
    #[inline(never)]
    pub fn is_outdated(&self) -> bool {
        !self.is_draining() && self.successor().is_some()
    }

    /// Returns the app that has replaced this one.
    #[cold]
    pub fn successor(&self) -> Option<Arc<App>> {
        let app = self.current.upgrade()?.app();
        (!std::ptr::eq(&raw const *app, self)).then_some(app)
    }

    /// Adds to the running worker's tally.
    pub fn count(&self, added: &Added) {
        if let Some(tally) = self.tally() {
            tally.add(added);
        }
    }

    /// Adds a response without a fault. Its bytes are counted when they are handed over to be sent;
    /// those that do not leave are taken back.
    ///
    /// - `status`: 0 for a further part of a response that was counted.
    #[inline]
    pub fn count_response(&self, status: u16, bytes: u64) {
        if let Some(tally) = self.tally() {
            tally.add_response(status, bytes);
        }
    }

    /// Adds a TLS handshake that succeeded. After many of them, memory goes back.
    pub fn count_handshake(&self, tls: &TlsInfo) {
        self.shared.heap_trim.note_handshake(self.shared.workers.get());
        if let Some(tally) = self.tally() {
            tally.add_handshake(tls);
        }
    }

    /// Adds a connection that speaks HTTP/2.
    pub fn count_http2(&self) {
        if let Some(tally) = self.tally() {
            tally.add_http2();
        }
    }

    /// Takes back bytes that were counted and have not left.
    #[cold]
    pub fn take_back(&self, unsent: u64) {
        if let Some(tally) = self.tally() {
            tally.take_back(unsent);
        }
    }

    /// Returns the tally of the running worker. No other thread writes to it.
    #[inline]
    fn tally(&self) -> Option<&Tally> {
        gustnado_tasks::worker().and_then(|worker| self.tallies.get(worker))
    }
}

/// Returns a number that no other app has, until 2^32 were made.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: numbers order nothing.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn hsts_line(lasts: Duration) -> Box<str> {
    match lasts.as_secs() {
        0 => "".into(),
        seconds => format!("Strict-Transport-Security: max-age={seconds}\r\n").into(),
    }
}
