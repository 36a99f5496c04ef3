//! A gate: what a request has to meet before its endpoint gets it.

use std::path::PathBuf;
use std::sync::Arc;

use gustnado_config::AccessSettings;
use gustnado_http::credentials::Credentials;
use gustnado_http::request::RequestView;
use gustnado_http::status::Status;
use gustnado_tasks::{Endpoint, Now};

use crate::addresses::AddressRules;
use crate::clients::ClientRates;
use crate::cors::Cors;
use crate::counts::{AccessCounts, Refusal};
use crate::response::GateResponse;
use crate::{AccessError, Passwords, UrlKeys};

/// What a gate asks a request.
pub trait GateRequest {
    /// Returns its head.
    fn view(&self) -> RequestView<'_>;

    /// Calls `read` with the path that was sent, in canonical form, and its query; if it has one.
    fn with_sent_target(&self, read: &mut dyn FnMut(&str, &[u8]));

    /// Returns its client's address; `None` if it is unknown, or a trusted proxy does not say it.
    fn client(&self) -> Option<Endpoint>;

    /// Returns whether its connection is of a proxy on this machine that is not trusted.
    fn is_through_stranger(&self) -> bool;
}

/// What becomes of a request.
#[derive(Debug)]
pub enum GateVerdict {
    /// Its endpoint gets it.
    Open,
    /// Its password has to be checked first, by [`Passwords::verify`].
    Verify,
    /// It gets this response.
    Respond(GateResponse),
}

/// What a request has to meet. Those of routes share what they have in common with their site's, so
/// that a limit is one limit and a password is checked once.
#[derive(Debug)]
pub struct Gate {
    settings: AccessSettings,
    addresses: Option<AddressRules>,
    rates: Option<Arc<ClientRates>>,
    cors: Option<Cors>,
    keys: Option<Arc<UrlKeys>>,
    passwords: Option<Arc<Passwords>>,
    counts: Arc<AccessCounts>,
}

impl Gate {
    /// Creates the gate of the settings.
    ///
    /// - `outer`: the one of what is around, whose parts are shared where the settings are alike.
    /// - `passwords`: one that asks for the same passwords.
    ///
    /// # Errors
    /// [`AccessError`]: a setting or a file cannot be used.
    pub fn new(
        settings: &AccessSettings,
        outer: Option<&Self>,
        passwords: Option<&Self>,
        counts: &Arc<AccessCounts>,
    ) -> Result<Self, AccessError> {
        let alike = |same: fn(&AccessSettings, &AccessSettings) -> bool| {
            outer.filter(|outer| same(&outer.settings, settings))
        };
        let rates = match alike(has_same_rate) {
            Some(outer) => outer.rates.clone(),
            None => ClientRates::of(settings)?.map(Arc::new),
        };
        let keys = match alike(|one, other| one.signed_urls == other.signed_urls) {
            Some(outer) => outer.keys.clone(),
            None => read(settings.signed_urls.as_ref(), |path| UrlKeys::read(path))?,
        };
        let read_passwords = || {
            let realm = &settings.basic_auth_realm;
            read(settings.basic_auth.as_ref(), |path| Passwords::read(path, realm))
        };
        let passwords = match passwords.or_else(|| alike(has_same_passwords)) {
            Some(outer) => outer.passwords.clone(),
            None => read_passwords()?,
        };
        Ok(Self {
            settings: settings.clone(),
            addresses: AddressRules::of(settings)?,
            rates,
            cors: Cors::of(settings)?,
            keys,
            passwords,
            counts: Arc::clone(counts),
        })
    }

    /// Returns everything that is wrong with settings and the files that they name.
    pub fn mistakes(settings: &AccessSettings) -> Vec<AccessError> {
        let keys = settings.signed_urls.as_ref().and_then(|path| UrlKeys::read(path).err());
        let passwords = settings.basic_auth.as_ref();
        let passwords = passwords.and_then(|path| Passwords::read(path, "").err());
        [keys, passwords, Cors::of(settings).err()].into_iter().flatten().collect()
    }

    /// Returns whether every request meets it.
    pub fn is_open(&self) -> bool {
        self.addresses.is_none()
            && self.rates.is_none()
            && self.cors.is_none()
            && self.keys.is_none()
            && self.passwords.is_none()
    }

    /// Returns the passwords, if it asks for one.
    pub fn passwords(&self) -> Option<&Arc<Passwords>> {
        self.passwords.as_ref()
    }

    /// Returns what becomes of a request. Refusals are counted.
    pub fn check(&self, request: &dyn GateRequest, now: Now) -> GateVerdict {
        let outcome = self.client_refusal(request, now);
        let outcome = outcome.or_else(|| self.origin_answer(request.view()));
        let outcome = outcome.or_else(|| self.signature_refusal(request, now));
        match (outcome, &self.passwords) {
            (Some(response), _) => GateVerdict::Respond(response),
            (None, None) => GateVerdict::Open,
            (None, Some(passwords)) => match Credentials::of(request.view()) {
                None => GateVerdict::Respond(self.password_refusal()),
                Some(sent) if passwords.are_known(&sent, now.mono_ms) => GateVerdict::Open,
                Some(_) => GateVerdict::Verify,
            },
        }
    }

    fn client_refusal(&self, request: &dyn GateRequest, now: Now) -> Option<GateResponse> {
        if self.addresses.is_none() && self.rates.is_none() {
            return None;
        }
        let client = request.client();
        if let Some(addresses) = &self.addresses
            && !addresses.admits(client.as_ref(), request.is_through_stranger())
        {
            self.counts.add(Refusal::Address);
            return Some(GateResponse::error(
                Status::FORBIDDEN,
                "Clients with your address may not have this.",
            ));
        }
        let wait_ms = self.rates.as_ref()?.take(client.as_ref(), now.mono_ms).err()?;
        self.counts.add(Refusal::Rate);
        let mut refusal = GateResponse::error(
            Status::TOO_MANY_REQUESTS,
            "You have sent too many requests; try again later.",
        );
        refusal.fields.push(("Retry-After", wait_ms.div_ceil(1_000).to_string()));
        Some(refusal)
    }

    fn origin_answer(&self, view: RequestView<'_>) -> Option<GateResponse> {
        let answer = self.cors.as_ref()?.preflight(view)?;
        Some(answer.unwrap_or_else(|()| {
            self.counts.add(Refusal::Origin);
            let mut refusal =
                GateResponse::error(Status::FORBIDDEN, "Pages of this origin may not send this.");
            refusal.fields.push(("Vary", "Origin".to_owned()));
            refusal
        }))
    }

    fn signature_refusal(&self, request: &dyn GateRequest, now: Now) -> Option<GateResponse> {
        let keys = self.keys.as_ref()?;
        let mut outcome = Err(Refusal::Signature);
        let method = request.view().method_token();
        request.with_sent_target(&mut |path, query| {
            outcome = keys.check(method, (path, query), now.unix_secs);
        });
        let refusal = outcome.err()?;
        self.counts.add(refusal);
        Some(match refusal {
            Refusal::Expired => GateResponse::error(Status::GONE, "This URL has expired."),
            _ => GateResponse::error(Status::FORBIDDEN, "This URL is not signed."),
        })
    }

    /// Returns the response to a request without the right password, which is counted.
    pub fn password_refusal(&self) -> GateResponse {
        self.counts.add(Refusal::Password);
        let mut refusal =
            GateResponse::error(Status::UNAUTHORIZED, "This needs a user and a password.");
        if let Some(passwords) = &self.passwords {
            refusal.fields.push(("WWW-Authenticate", passwords.challenge().to_owned()));
        }
        refusal
    }

    /// Counts a password whose hash is computed.
    pub fn count_password_check(&self) {
        self.counts.add_password_check();
    }

    /// Returns the response while too many passwords are checked, which is counted.
    pub fn busy_refusal(&self) -> GateResponse {
        self.counts.add(Refusal::Busy);
        let mut refusal = GateResponse::error(
            Status::SERVICE_UNAVAILABLE,
            "Too many passwords are being checked; try again later.",
        );
        refusal.fields.push(("Retry-After", "1".to_owned()));
        refusal
    }

    /// Returns whether the header fields of responses depend on the origin of the page that asks.
    pub fn depends_on_origin(&self) -> bool {
        self.cors.as_ref().is_some_and(Cors::depends_on_origin)
    }

    /// Adds the fields for pages of other origins, but for `Vary`.
    pub fn add_origin(&self, view: RequestView<'_>, add: &mut dyn FnMut(&'static str, String)) {
        if let Some(cors) = &self.cors {
            cors.add(view, add);
        }
    }

    /// Returns whether it asks for the passwords that settings name.
    pub fn asks_for_passwords_of(&self, settings: &AccessSettings) -> bool {
        self.passwords.is_some() && has_same_passwords(&self.settings, settings)
    }
}

fn has_same_rate(one: &AccessSettings, other: &AccessSettings) -> bool {
    one.rate_limit == other.rate_limit
        && one.rate_limit_burst == other.rate_limit_burst
        && one.rate_limit_clients == other.rate_limit_clients
        && one.rate_limit_prefix == other.rate_limit_prefix
}

fn has_same_passwords(one: &AccessSettings, other: &AccessSettings) -> bool {
    one.basic_auth == other.basic_auth
        && one.basic_auth_realm == other.basic_auth_realm
        && one.basic_auth_threads == other.basic_auth_threads
}

fn read<T>(
    path: Option<&PathBuf>,
    read: impl FnOnce(&PathBuf) -> Result<T, AccessError>,
) -> Result<Option<Arc<T>>, AccessError> {
    path.map(read).transpose().map(|read| read.map(Arc::new))
}
