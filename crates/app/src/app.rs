//! What all connections of a server have in common: limits, the site, the counts.

mod handle;
mod server_shared;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gustnado_config::{Networks, millis};
use gustnado_http::date::imf_fixdate;
use gustnado_http::limits::Limits;
use gustnado_http::response_writer::Persist;
use gustnado_tasks::ProgressTimeout;

use crate::hooks::Hooks;
use crate::pace::Pace;
use gustnado_config::{AnswerVersion, Config};
use gustnado_observe::access_log::AccessLog;
use gustnado_observe::stats::{Added, Fault, Tally};
use gustnado_web::handler::panicked;
use gustnado_web::response::{Response, ResponsePrefix};
use gustnado_web::route_cache::RouteCache;
use gustnado_web::routes::Tables;
use gustnado_web::trusted_proxies::TrustedProxies;

pub use handle::AppHandle;
pub use server_shared::ServerShared;

/// Drops what the running thread keeps of the server that it works for.
pub fn forget() {
    RouteCache::forget();
    COMMON.take();
}

thread_local! {
    /// The field lines of every answer, for one second.
    static COMMON: RefCell<Rc<ResponsePrefix>> = RefCell::default();
}

/// Times that a connection keeps, in milliseconds.
#[derive(Clone, Copy)]
pub struct Times {
    /// For a connection's first byte.
    pub first_ms: u64,
    pub header_ms: u64,
    pub keep_alive_ms: u64,
    pub body: ProgressTimeout,
    pub write: ProgressTimeout,
    /// When a send is looked at first: see [`ProgressTimeout::first_look_ms`].
    pub write_look_ms: u64,
    /// How long a client that sends no more may wait for a handler.
    pub half_close_ms: u64,
}

/// How connections behave, where that is not as usual.
#[derive(Clone, Copy)]
pub struct ConnPolicy {
    /// Requests per connection; `None` where there is no limit.
    pub requests_max: Option<u64>,
    /// The version that answers call themselves.
    pub answers: AnswerVersion,
}

impl ConnPolicy {
    fn of(config: &Config) -> Option<Self> {
        let requests_max = Some(config.max_requests_per_connection).filter(|max| *max > 0);
        let answers = config.answer_version;
        let is_unusual = requests_max.is_some() || answers != AnswerVersion::Newest;
        is_unusual.then_some(Self { requests_max, answers })
    }
}

pub struct App {
    pub limits: Limits,
    pub times: Times,
    /// What is unusual about its connections; `None` if nothing is.
    pub policy: Option<ConnPolicy>,
    pub hooks: Hooks,
    /// Where requests are taken down, if they are.
    pub access_log: Option<Arc<AccessLog>>,
    /// Who may begin connections with a PROXY header, where one is demanded.
    pub proxy_allow: Option<Networks>,
    /// Who is believed about the client of a request, if anybody is.
    pub trusted_proxies: Option<Arc<TrustedProxies>>,
    /// Bytes of later requests that are taken while a handler is at work.
    pub read_ahead_bytes: usize,
    /// Bytes of a stream that are gathered before they are sent, if there are more at once.
    pub stream_buffer_bytes: usize,
    /// The routes in force.
    pub tables: Arc<Tables>,
    tallies: Arc<[Tally]>,
    /// There is something to heed before the next answer: a drain, or another app.
    notice: AtomicBool,
    shared: Arc<ServerShared>,
    current: Weak<AppHandle>,
    /// What paces each connection, if anything does.
    pace: Option<Arc<Pace>>,
}

impl App {
    pub fn new(
        config: &Config,
        tables: Arc<Tables>,
        (hooks, access_log): (Hooks, Option<Arc<AccessLog>>),
        shared: Arc<ServerShared>,
        current: Weak<AppHandle>,
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
            },
            policy: ConnPolicy::of(config),
            hooks,
            access_log,
            proxy_allow: proxy_allow(config),
            trusted_proxies: TrustedProxies::of(config),
            read_ahead_bytes: config.read_ahead_bytes,
            stream_buffer_bytes: config.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&shared.tallies),
            notice: AtomicBool::new(false),
            shared,
            current,
            pace: Pace::new(&config.pace).map(Arc::new),
        }
    }

    /// The same with other routes.
    fn with_tables(&self, tables: Arc<Tables>) -> Self {
        Self {
            limits: self.limits,
            times: self.times,
            policy: self.policy,
            hooks: self.hooks.clone(),
            access_log: self.access_log.clone(),
            proxy_allow: self.proxy_allow.clone(),
            trusted_proxies: self.trusted_proxies.clone(),
            read_ahead_bytes: self.read_ahead_bytes,
            stream_buffer_bytes: self.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&self.tallies),
            notice: AtomicBool::new(false),
            shared: Arc::clone(&self.shared),
            current: Weak::clone(&self.current),
            pace: self.pace.clone(),
        }
    }

    /// The connection's end, as a refusal says it.
    pub fn last_words(&self) -> Persist {
        match &self.policy {
            Some(ConnPolicy { answers: AnswerVersion::Old, .. }) => Persist::OldClose,
            _ => Persist::Close,
        }
    }

    /// What paces each connection, if anything does.
    pub fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }

    /// A handler's answer; 500 if it panicked, which is counted.
    #[inline]
    pub fn answer_or_500(&self, answer: Option<Response>) -> Response {
        answer.unwrap_or_else(|| {
            self.count(&Added { fault: Some(Fault::HandlerPanicked), ..Added::default() });
            panicked()
        })
    }

    /// Whether a connection should look at [`App::is_draining`] and [`App::successor`].
    #[inline]
    pub fn has_notice(&self) -> bool {
        self.notice.load(Ordering::Relaxed)
    }

    fn give_notice(&self) {
        self.notice.store(true, Ordering::SeqCst);
    }

    /// Whether each connection's next answer is its last.
    #[cold]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining()
    }

    /// Whether another app counts, and goes on counting for a while.
    #[cold]
    #[inline(never)]
    pub fn is_outdated(&self) -> bool {
        !self.is_draining() && self.successor().is_some()
    }

    /// The app that has taken the place of this one.
    #[cold]
    pub fn successor(&self) -> Option<Arc<App>> {
        let app = self.current.upgrade()?.app();
        (!std::ptr::eq(&raw const *app, self)).then_some(app)
    }

    /// Adds what a turn did to the running worker's tally.
    pub fn count(&self, added: &Added) {
        if let Some(tally) = self.tally() {
            tally.add(added);
        }
    }

    /// The same for an answer without a fault. Its bytes are counted when they are given to be
    /// sent; what does not leave is taken back.
    ///
    /// - `status`: 0 for more of an answer that was counted.
    #[inline]
    pub fn count_response(&self, status: u16, bytes: u64) {
        if let Some(tally) = self.tally() {
            tally.add_response(status, bytes);
        }
    }

    /// Bytes that were counted have not left.
    #[cold]
    pub fn take_back(&self, unsent: u64) {
        if let Some(tally) = self.tally() {
            tally.take_back(unsent);
        }
    }

    /// That of the running worker.
    #[inline]
    fn tally(&self) -> Option<&Tally> {
        gustnado_tasks::worker().and_then(|worker| self.tallies.get(worker))
    }

    /// The field lines of every answer, made anew once a second per worker.
    pub fn common(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        COMMON.with_borrow_mut(|common| {
            if common.unix_secs != unix_secs {
                let mut lines = self.shared.lines().to_vec();
                lines.extend_from_slice(b"Date: ");
                lines.extend_from_slice(&imf_fixdate(unix_secs));
                lines.extend_from_slice(b"\r\n");
                *common = Rc::new(ResponsePrefix::new(unix_secs, &lines));
            }
            Rc::clone(common)
        })
    }
}

/// Who may begin connections with a PROXY header; `None` where none is demanded.
fn proxy_allow(config: &Config) -> Option<Networks> {
    // (Whatever is malformed was refused at the start.)
    config.proxy_protocol.then(|| Networks::of(&config.proxy_allow_from).unwrap_or_default())
}
