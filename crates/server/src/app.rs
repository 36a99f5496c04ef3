//! What all connections of a server have in common: limits, the site, the counts.

mod current;
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
use gustnado_tasks::Patience;

use crate::access_log::AccessLog;
use crate::config::{AnswerVersion, Config};
use crate::handler::panicked;
use crate::hooks::Hooks;
use crate::pace::Pace;
use crate::proxies::Proxies;
use crate::response::{Response, ResponsePrefix};
use crate::route_cache::RouteCache;
use crate::routes::Tables;
use crate::stats::{Added, Fault, Tally};

pub(crate) use current::Current;
pub(crate) use server_shared::ServerShared;

/// Drops what the running thread keeps of the server that it works for.
pub(crate) fn forget() {
    RouteCache::forget();
    COMMON.take();
}

thread_local! {
    /// The field lines of every answer, for one second.
    static COMMON: RefCell<Rc<ResponsePrefix>> = RefCell::default();
}

/// Times that a connection keeps, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// For a connection's first byte.
    pub(crate) first_ms: u64,
    pub(crate) header_ms: u64,
    pub(crate) keep_alive_ms: u64,
    pub(crate) body: Patience,
    pub(crate) write: Patience,
    /// When a send is looked at first: see [`Patience::first_look_ms`].
    pub(crate) write_look_ms: u64,
    /// How long a client that sends no more may wait for a handler.
    pub(crate) half_close_ms: u64,
}

/// How connections behave, where that is not as usual.
#[derive(Clone, Copy)]
pub(crate) struct Manners {
    /// Requests per connection; `None` where there is no limit.
    pub(crate) requests_max: Option<u64>,
    /// The version that answers call themselves.
    pub(crate) answers: AnswerVersion,
}

impl Manners {
    fn of(config: &Config) -> Option<Self> {
        let requests_max = Some(config.max_requests_per_connection).filter(|max| *max > 0);
        let answers = config.answer_version;
        let is_unusual = requests_max.is_some() || answers != AnswerVersion::Newest;
        is_unusual.then_some(Self { requests_max, answers })
    }
}

pub(crate) struct App {
    pub(crate) limits: Limits,
    pub(crate) times: Times,
    /// What is unusual about its connections; `None` if nothing is.
    pub(crate) manners: Option<Manners>,
    pub(crate) hooks: Hooks,
    /// Where requests are taken down, if they are.
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// Who may begin connections with a PROXY header, where one is demanded.
    pub(crate) introducers: Option<Networks>,
    /// Who is believed about the client of a request, if anybody is.
    pub(crate) proxies: Option<Arc<Proxies>>,
    /// Bytes of later requests that are taken while a handler is at work.
    pub(crate) read_ahead_bytes: usize,
    /// Bytes of a stream that are gathered before they are sent, if there are more at once.
    pub(crate) stream_buffer_bytes: usize,
    /// The routes in force.
    pub(crate) tables: Arc<Tables>,
    tallies: Arc<[Tally]>,
    /// There is something to heed before the next answer: a drain, or another app.
    notice: AtomicBool,
    lasting: Arc<ServerShared>,
    current: Weak<Current>,
    /// What paces each connection, if anything does.
    pace: Option<Arc<Pace>>,
}

impl App {
    pub(crate) fn new(
        config: &Config,
        tables: Arc<Tables>,
        (hooks, access_log): (Hooks, Option<Arc<AccessLog>>),
        lasting: Arc<ServerShared>,
        current: Weak<Current>,
    ) -> Self {
        let write =
            Patience { silence_ms: millis(config.write_timeout), rate_min: config.write_rate_min };
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
                body: Patience {
                    silence_ms: millis(config.body_timeout),
                    rate_min: config.body_rate_min,
                },
                write,
                write_look_ms: write.first_look_ms(),
                half_close_ms: millis(config.half_close_timeout),
            },
            manners: Manners::of(config),
            hooks,
            access_log,
            introducers: introducers(config),
            proxies: Proxies::of(config),
            read_ahead_bytes: config.read_ahead_bytes,
            stream_buffer_bytes: config.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&lasting.tallies),
            notice: AtomicBool::new(false),
            lasting,
            current,
            pace: Pace::new(&config.pace).map(Arc::new),
        }
    }

    /// The same with other routes.
    fn with_tables(&self, tables: Arc<Tables>) -> Self {
        Self {
            limits: self.limits,
            times: self.times,
            manners: self.manners,
            hooks: self.hooks.clone(),
            access_log: self.access_log.clone(),
            introducers: self.introducers.clone(),
            proxies: self.proxies.clone(),
            read_ahead_bytes: self.read_ahead_bytes,
            stream_buffer_bytes: self.stream_buffer_bytes,
            tables,
            tallies: Arc::clone(&self.tallies),
            notice: AtomicBool::new(false),
            lasting: Arc::clone(&self.lasting),
            current: Weak::clone(&self.current),
            pace: self.pace.clone(),
        }
    }

    /// The connection's end, as a refusal says it.
    pub(crate) fn last_words(&self) -> Persist {
        match &self.manners {
            Some(Manners { answers: AnswerVersion::Old, .. }) => Persist::OldClose,
            _ => Persist::Close,
        }
    }

    /// What paces each connection, if anything does.
    pub(crate) fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }

    /// A handler's answer; 500 if it panicked, which is counted.
    #[inline]
    pub(crate) fn answer_or_500(&self, answer: Option<Response>) -> Response {
        answer.unwrap_or_else(|| {
            self.count(&Added { fault: Some(Fault::HandlerPanicked), ..Added::default() });
            panicked()
        })
    }

    /// Whether a connection should look at [`App::is_draining`] and [`App::successor`].
    #[inline]
    pub(crate) fn has_notice(&self) -> bool {
        self.notice.load(Ordering::Relaxed)
    }

    fn give_notice(&self) {
        self.notice.store(true, Ordering::SeqCst);
    }

    /// Whether each connection's next answer is its last.
    #[cold]
    pub(crate) fn is_draining(&self) -> bool {
        self.lasting.is_draining()
    }

    /// Whether another app counts, and goes on counting for a while.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_outdated(&self) -> bool {
        !self.is_draining() && self.successor().is_some()
    }

    /// The app that has taken the place of this one.
    #[cold]
    pub(crate) fn successor(&self) -> Option<Arc<App>> {
        let app = self.current.upgrade()?.app();
        (!std::ptr::eq(&raw const *app, self)).then_some(app)
    }

    /// Adds what a turn did to the running worker's tally.
    pub(crate) fn count(&self, added: &Added) {
        if let Some(tally) = self.tally() {
            tally.add(added);
        }
    }

    /// The same for an answer without a fault. Its bytes are counted when they are given to be
    /// sent; what does not leave is taken back.
    ///
    /// - `status`: 0 for more of an answer that was counted.
    #[inline]
    pub(crate) fn count_response(&self, status: u16, bytes: u64) {
        if let Some(tally) = self.tally() {
            tally.add_response(status, bytes);
        }
    }

    /// Bytes that were counted have not left.
    #[cold]
    pub(crate) fn take_back(&self, unsent: u64) {
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
    pub(crate) fn common(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        COMMON.with_borrow_mut(|common| {
            if common.unix_secs != unix_secs {
                let mut lines = self.lasting.lines().to_vec();
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
fn introducers(config: &Config) -> Option<Networks> {
    // (Whatever is malformed was refused at the start.)
    config.proxy_protocol.then(|| Networks::of(&config.proxy_allow_from).unwrap_or_default())
}
