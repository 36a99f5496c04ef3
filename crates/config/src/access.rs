//! Settings of what routes ask of their clients: addresses, rates, passwords, signatures, origins.

mod declared;
mod header_rule;
mod request_rate;
mod route_limits;

use std::path::PathBuf;
use std::time::Duration;

pub(super) use declared::*;
pub use header_rule::{HeaderRule, StatusRange};
pub use request_rate::RequestRate;
pub use route_limits::RouteLimits;

settings! { $
    /// What routes ask of their clients, and what they tell browsers.
    ///
    /// Each is checked before a request's body is read and before any handler runs, in this order:
    /// addresses, rate, preflight requests of CORS, signature, password.
    #[derive(Clone, Debug, PartialEq, Eq)]
    AccessSettings, each_setting_of_access;
    own {
        /// The clients that may come: `192.0.2.1`, `10.0.0.0/8`, `unix`, `*`; none is all.
        allow: Vec<String>,
        /// The clients that may not come, even if they are in `allow`.
        deny: Vec<String>,
        /// Requests of one client, for instance `10/s`, `600/m`, `1000/h`; empty is no limit. More
        /// get 429.
        rate_limit: String,
        /// The file of users and their hashed passwords; `None` is no password.
        basic_auth: Option<PathBuf>,
        /// What browsers show where they ask for the password.
        basic_auth_realm: String,
        /// The file of keys that URLs have to be signed by; `None` is no signature.
        signed_urls: Option<PathBuf>,
        /// The origins whose pages may read responses: `https://app.example.org`, or `any`.
        cors: Vec<String>,
        /// The methods that they may use.
        cors_methods: Vec<String>,
        /// The header fields that they may send; none is every field that they ask for.
        cors_headers: Vec<String>,
        /// The content security policy of all responses; empty is none.
        csp: String,
        /// The same for browsers that shall only report what it would refuse.
        csp_report_only: String,
    }
    usual {
        /// Requests that a client may send at once after a pause; 0 is a second's worth.
        rate_limit_burst: u32,
        /// Clients whose rates are known one by one.
        rate_limit_clients: usize,
        /// Bits of an IPv6 address that make a client.
        rate_limit_prefix: u32,
        /// Passwords that are checked at a time.
        basic_auth_threads: usize,
        /// Whether those pages may send cookies and passwords.
        cors_credentials: bool,
        /// How long browsers keep what a preflight request has told them.
        cors_max_age: Duration,
        /// Whether responses have header fields that make browsers more careful.
        security_headers: bool,
        /// How long a request may make no progress, its handler included; zero is no limit.
        idle_timeout: Duration,
    }
}

impl Default for AccessSettings {
    /// Returns the table's defaults.
    fn default() -> Self {
        crate::Config::default().routes.access
    }
}

impl AccessSettings {
    /// Returns whether some clients get what others do not: by password, signature or address.
    pub fn restricts_clients(&self) -> bool {
        let comes_from_anywhere = self.allow.is_empty() || self.allow.iter().any(|one| one == "*");
        let is_open = comes_from_anywhere && self.deny.is_empty();
        !is_open || self.basic_auth.is_some() || self.signed_urls.is_some()
    }
}
