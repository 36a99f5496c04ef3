//! Methods for settings of what routes ask of their clients, and for rules.

use std::path::PathBuf;

use super::Server;
use crate::config::HeaderRule;

/// The methods that take another type than their field.
#[cfg(test)]
pub(super) const METHODS: [&str; 11] = [
    "allow",
    "deny",
    "rate_limit",
    "basic_auth",
    "basic_auth_realm",
    "signed_urls",
    "cors",
    "cors_methods",
    "cors_headers",
    "csp",
    "csp_report_only",
];

impl Server {
    /// Sets [`allow`](crate::config::AccessSettings::allow): the clients that may come.
    pub fn allow(self, networks: &[&str]) -> Self {
        self.tune(|config| config.routes.access.allow = owned(networks))
    }

    /// Sets [`deny`](crate::config::AccessSettings::deny): the clients that may not come.
    pub fn deny(self, networks: &[&str]) -> Self {
        self.tune(|config| config.routes.access.deny = owned(networks))
    }

    /// Sets [`rate_limit`](crate::config::AccessSettings::rate_limit): requests of one client, for
    /// instance `10/s`; empty is no limit.
    pub fn rate_limit(self, rate: &str) -> Self {
        self.tune(|config| rate.clone_into(&mut config.routes.access.rate_limit))
    }

    /// Sets [`basic_auth`](crate::config::AccessSettings::basic_auth): the file of users and their
    /// hashed passwords.
    pub fn basic_auth(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.routes.access.basic_auth = Some(path.into()))
    }

    /// Sets [`basic_auth_realm`](crate::config::AccessSettings::basic_auth_realm): what browsers
    /// show where they ask for the password.
    pub fn basic_auth_realm(self, realm: &str) -> Self {
        self.tune(|config| realm.clone_into(&mut config.routes.access.basic_auth_realm))
    }

    /// Sets [`signed_urls`](crate::config::AccessSettings::signed_urls): the file of keys that URLs
    /// have to be signed by.
    pub fn signed_urls(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.routes.access.signed_urls = Some(path.into()))
    }

    /// Sets [`cors`](crate::config::AccessSettings::cors): the origins whose pages may read
    /// responses, or `any`.
    pub fn cors(self, origins: &[&str]) -> Self {
        self.tune(|config| config.routes.access.cors = owned(origins))
    }

    /// Sets [`cors_methods`](crate::config::AccessSettings::cors_methods): the methods that they
    /// may use.
    pub fn cors_methods(self, methods: &[&str]) -> Self {
        self.tune(|config| config.routes.access.cors_methods = owned(methods))
    }

    /// Sets [`cors_headers`](crate::config::AccessSettings::cors_headers): the header fields that
    /// they may send.
    pub fn cors_headers(self, names: &[&str]) -> Self {
        self.tune(|config| config.routes.access.cors_headers = owned(names))
    }

    /// Sets [`csp`](crate::config::AccessSettings::csp): the content security policy.
    pub fn csp(self, policy: &str) -> Self {
        self.tune(|config| policy.clone_into(&mut config.routes.access.csp))
    }

    /// Sets [`csp_report_only`](crate::config::AccessSettings::csp_report_only): one to try.
    pub fn csp_report_only(self, policy: &str) -> Self {
        self.tune(|config| policy.clone_into(&mut config.routes.access.csp_report_only))
    }

    /// Adds a rule of header fields for all responses; those of sites and routes come behind it.
    pub fn header_rule(self, rule: HeaderRule) -> Self {
        self.tune(|config| config.routes.header_rules.push(rule))
    }

    /// Puts another path in place of a request's before its route is found, as
    /// [`Routes::rewrite`](crate::Routes::rewrite).
    pub fn rewrite(mut self, from: &str, to: &str) -> Self {
        self.routes = self.routes.rewrite(from, to);
        self
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
