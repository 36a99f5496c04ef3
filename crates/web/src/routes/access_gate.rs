//! Gates as routes have them: with the limit of passwords that are checked at a time.

use std::sync::Arc;
use std::time::Duration;

use gustnado_access::{
    AccessError, CheckOutcome, CheckTicket, Gate, GateResponse, GateVerdict, JoinedCheck, Passwords,
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
    admission: Option<Arc<Admission>>,
    pool: BlockingPool,
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
        let gate = Gate::new(settings, outer.map(|outer| &outer.gate), build.limits.access())?;
        let shared = outer.filter(|outer| outer.gate.shares_passwords_with(&gate));
        let admission = match (shared, gate.passwords()) {
            (Some(outer), _) => outer.admission.clone(),
            (None, Some(_)) => {
                let threads = settings.basic_auth_threads;
                let limits = AdmissionLimits {
                    running_max: threads,
                    queue_max: threads.saturating_mul(WAITING_PER_THREAD),
                    wait_max: WAIT_MAX,
                };
                Some(Admission::new(&Arc::default(), limits))
            }
            (None, None) => None,
        };
        let (settings, pool) = (settings.clone(), build.pool.clone());
        Ok(Arc::new(Self { settings, gate, admission, pool }))
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
        let (Some(passwords), Some(admission)) = (self.gate.passwords(), &self.admission) else {
            return Ok(());
        };
        let refused = || Err(self.gate.password_refusal());
        let Some(sent) = Credentials::of(request.view()) else { return refused() };
        loop {
            let outcome = match passwords.join_check(&sent) {
                JoinedCheck::Other(check) => check.await,
                JoinedCheck::Own(ticket) => {
                    let bytes = request.held_bytes();
                    self.make_check(passwords, admission, (&sent, bytes), ticket).await
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

    /// Checks credentials, for all requests that have the same.
    ///
    /// - `bytes`: what this one holds while it waits.
    async fn make_check(
        &self,
        passwords: &Arc<Passwords>,
        admission: &Arc<Admission>,
        (sent, bytes): (&Credentials, usize),
        ticket: CheckTicket,
    ) -> CheckOutcome {
        let Some(permit) = admission.admit(bytes).await else {
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
            let _permit = permit;
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
