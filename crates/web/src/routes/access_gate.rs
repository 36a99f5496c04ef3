//! Gates as routes have them: with the limit of passwords that are checked at a time.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gustnado_access::{
    AccessError, CheckOutcome, CheckPlaces, CheckTicket, Gate, GateRequest, GateResponse,
    GateVerdict, JoinedCheck, Passwords,
};
use gustnado_config::AccessSettings;
use gustnado_http::credentials::Credentials;
use gustnado_tasks::{BlockingPool, Now};

use crate::admission::{Admission, AdmissionLimits};
use crate::build_context::BuildContext;
use crate::middleware::Middleware;
use crate::request::Request;
use crate::response::Response;

/// Requests that wait for each password that may be checked.
const WAITING_PER_THREAD: usize = 32;
/// How long each waits.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A gate, and the limit of passwords that are checked at a time.
pub(super) struct AccessGate {
    settings: AccessSettings,
    gate: Gate,
    /// Of the passwords; `None` if it asks for none.
    limit: Option<Arc<CheckLimit>>,
    /// Those of all routes that ask for passwords: they share limits, and what they remember.
    asking: Arc<Mutex<Vec<Weak<AccessGate>>>>,
    pool: BlockingPool,
}

/// The limit of passwords that are checked at a time, whatever routes they are for.
struct CheckLimit {
    threads: usize,
    admission: Arc<Admission>,
    places: Arc<CheckPlaces>,
}

impl CheckLimit {
    fn new(threads: usize) -> Arc<Self> {
        let queue_max = threads.saturating_mul(WAITING_PER_THREAD);
        let limits = AdmissionLimits { running_max: threads, queue_max, wait_max: WAIT_MAX };
        let admission = Admission::new(&Arc::default(), limits);
        let places = CheckPlaces::new(threads.saturating_add(queue_max));
        Arc::new(Self { threads, admission, places })
    }
}

impl AccessGate {
    /// Creates the gate of the settings.
    ///
    /// - `outer`: the one of what is around: parts that are alike are shared.
    pub(super) fn of(
        settings: &AccessSettings,
        outer: Option<&Arc<Self>>,
        build: &BuildContext,
    ) -> Result<Arc<Self>, AccessError> {
        if let Some(outer) = outer.filter(|outer| outer.settings == *settings) {
            return Ok(Arc::clone(outer));
        }
        let asking = outer.map_or_else(Arc::default, |outer| Arc::clone(&outer.asking));
        let mut list = asking.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Arc<Self>> = list.iter().filter_map(Weak::upgrade).collect();
        let alike = known.iter().find(|known| known.gate.asks_for_passwords_of(settings));
        let (outer, alike) = (outer.map(|outer| &outer.gate), alike.map(|alike| &alike.gate));
        let gate = Gate::new(settings, outer, alike, build.limits.access())?;
        let limit = gate.passwords().map(|_| {
            let threads = settings.basic_auth_threads;
            let limits = known.iter().filter_map(|known| known.limit.as_ref());
            let shared = limits.into_iter().find(|limit| limit.threads == threads);
            shared.map_or_else(|| CheckLimit::new(threads), Arc::clone)
        });
        let (settings, pool) = (settings.clone(), build.pool.clone());
        let made = Self { settings, gate, limit, asking: Arc::clone(&asking), pool };
        let made = Arc::new(made);
        if made.has_passwords() {
            list.push(Arc::downgrade(&made));
        }
        Ok(made)
    }

    /// Returns what it asks.
    pub(super) fn settings(&self) -> &AccessSettings {
        &self.settings
    }

    /// Returns whether every request meets it.
    pub(super) fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    /// Returns middleware for the fields that depend on the origin of the page that asks.
    pub(super) fn origin_middleware(self: &Arc<Self>) -> Option<Middleware> {
        let gate = Arc::clone(self);
        self.gate
            .depends_on_origin()
            .then(|| Middleware::after(move |request, response| gate.add_origin(request, response)))
    }

    fn add_origin(&self, request: &Request, response: &mut Response) {
        // A handler that has its own opinion keeps it.
        if response.header_value("Access-Control-Allow-Origin").is_none() {
            self.gate.add_origin(request.view(), &mut |name, value| {
                _ = response.try_header(name, value);
            });
        }
        let varies = response.header_value("Vary").is_some_and(|vary| {
            vary.split(|byte| *byte == b',')
                .any(|name| name.trim_ascii().eq_ignore_ascii_case(b"origin"))
        });
        if !varies {
            _ = response.try_header("Vary", "Origin");
        }
    }

    /// Returns what becomes of a request.
    pub(super) fn check(&self, request: &Request, now: Now) -> GateVerdict {
        self.gate.check(request, now)
    }

    /// Returns whether it asks for a password.
    pub(super) fn has_passwords(&self) -> bool {
        self.gate.passwords().is_some()
    }

    /// Checks the password of a request, off the worker.
    pub(super) async fn verify(&self, request: &Request) -> Result<(), GateResponse> {
        let (Some(passwords), Some(limit)) = (self.gate.passwords(), &self.limit) else {
            return Ok(());
        };
        let refused = || Err(self.gate.password_refusal());
        let Some(sent) = Credentials::of(request.view()) else { return refused() };
        loop {
            let outcome = match passwords.join_check(&sent) {
                JoinedCheck::Other(check) => check.await,
                JoinedCheck::Own(ticket) => {
                    self.make_check(passwords, limit, (request, &sent), ticket).await
                }
            };
            match outcome {
                CheckOutcome::Right => return Ok(()),
                CheckOutcome::Wrong => return refused(),
                CheckOutcome::Busy => return Err(self.gate.busy_refusal()),
                CheckOutcome::Dropped => {}
            }
        }
    }

    /// Checks the credentials of a request, for all requests that have the same.
    async fn make_check(
        &self,
        passwords: &Arc<Passwords>,
        limit: &CheckLimit,
        (request, sent): (&Request, &Credentials),
        ticket: CheckTicket,
    ) -> CheckOutcome {
        let place = limit.places.take(GateRequest::client(request).as_ref());
        let permit = match place {
            Some(_) => limit.admission.admit(request.held_bytes()).await,
            None => None,
        };
        let Some(permit) = permit else {
            ticket.end(CheckOutcome::Busy);
            return CheckOutcome::Busy;
        };
        let now_ms = gustnado_tasks::now().mono_ms;
        if passwords.are_known(sent, now_ms) {
            ticket.end(CheckOutcome::Right);
            return CheckOutcome::Right;
        }
        self.gate.count_password_check();
        let (passwords, sent) = (Arc::clone(passwords), sent.clone());
        // The check outlives a client that goes, and counts until its end.
        let check = move || {
            let _held = (permit, place);
            let is_right = passwords.verify(&sent, now_ms);
            let outcome = if is_right { CheckOutcome::Right } else { CheckOutcome::Wrong };
            ticket.end(outcome);
            outcome
        };
        match self.pool.run(check).await {
            Ok(outcome) => outcome.unwrap_or(CheckOutcome::Wrong),
            Err(_) => CheckOutcome::Busy,
        }
    }
}
