//! A method for each setting.

use std::path::PathBuf;
use std::time::Duration;

use super::Server;
use crate::config::{
    Acceptor, AcmeChallenge, Archives, BodyPolicy, CacheControl, Compress, Config, Dictionaries,
    EarlyHints, ForwardedFields, Io, Listing, Placement, Precompressed, ResponseVersion,
    SchedulerKind, TlsClientAuth, TlsRecords, TlsVersionMin, TrafficClass, TrailingSlash,
    WebSocketDeflate,
};

/// Declares a method for each field of [`Config`], or of a part of it, named like the field.
macro_rules! methods {
    ($of:ident; $($name:ident: $type:ty,)+) => {
        impl Server {
            $(
                #[doc = concat!(
                    "Sets [`", stringify!($name), "`](field@crate::config::", stringify!($of), "::",
                    stringify!($name), ").",
                )]
                pub fn $name(self, value: $type) -> Self {
                    self.tune(|config: &mut Config| methods!(@part $of config).$name = value)
                }
            )+
        }
    };
    (@part Config $config:ident) => { $config };
    (@part Pace $config:ident) => { $config.pace };
    (@part RouteSettings $config:ident) => { $config.routes };
    (@part AccessSettings $config:ident) => { $config.routes.access };
}

gustnado_config::each_setting!(methods);
gustnado_config::each_setting_of_pace!(methods);
gustnado_config::each_setting_of_route!(methods);
gustnado_config::each_setting_of_access!(methods);

/// Settings whose methods take another type than their field.
impl Server {
    /// Sets [`root`](Config::root): the folder that is served where no route matches.
    pub fn root(self, folder: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.root = Some(folder.into()))
    }

    /// Sets [`listen`](Config::listen): several addresses, in place of host, port and uds, each
    /// with settings of its own behind it if it has any
    /// ([`ListenSpec`](crate::config::ListenSpec)). Then [`Server::start`] listens there.
    pub fn listen_on(self, addresses: &[&str]) -> Self {
        self.tune(|config| config.listen = owned(addresses))
    }

    /// Sets [`forwarded_allow_ips`](Config::forwarded_allow_ips): the trusted proxies.
    pub fn forwarded_allow_ips(self, networks: &[&str]) -> Self {
        self.tune(|config| config.forwarded_allow_ips = owned(networks))
    }

    /// Sets [`proxy_allow_from`](Config::proxy_allow_from): peers that may send a PROXY header.
    pub fn proxy_allow_from(self, networks: &[&str]) -> Self {
        self.tune(|config| config.proxy_allow_from = owned(networks))
    }

    /// Sets [`compress_types`](crate::config::RouteSettings::compress_types): media types such as
    /// `text/*`.
    pub fn compress_types(self, types: &[&str]) -> Self {
        self.tune(|config| config.routes.compress_types = owned(types))
    }

    /// Sets [`host`](Config::host).
    pub fn host_name(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.host))
    }

    /// Sets [`uds`](Config::uds): the path of a Unix socket.
    pub fn uds(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.uds = Some(path.into()))
    }

    /// Sets [`forbidden`](crate::config::RouteSettings::forbidden): names that are never served.
    pub fn forbidden(self, names: &[&str]) -> Self {
        self.tune(|config| config.routes.forbidden = owned(names))
    }

    /// Sets [`control`](Config::control): the control socket of the command.
    pub fn control(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.control = Some(path.into()))
    }

    /// Sets [`uds_mode`](Config::uds_mode): permissions in octal such as `660`.
    pub fn uds_mode(self, octal: &str) -> Self {
        self.tune(|config| octal.clone_into(&mut config.uds_mode))
    }

    /// Sets [`uds_owner`](Config::uds_owner): `www-data`, `www-data:web`, or numbers.
    pub fn uds_owner(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.uds_owner))
    }

    /// Sets [`tls_cert`](Config::tls_cert): the certificate with its chain, in PEM. Listeners then
    /// speak TLS.
    pub fn tls_cert(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.tls_cert = Some(path.into()))
    }

    /// Sets [`tls_key`](Config::tls_key): its private key, in PEM.
    pub fn tls_key(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.tls_key = Some(path.into()))
    }

    /// Sets [`tls_client_ca`](Config::tls_client_ca): the authorities of clients' certificates.
    pub fn tls_client_ca(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.tls_client_ca = Some(path.into()))
    }

    /// Sets [`tls_client_crl`](Config::tls_client_crl): clients' certificates that are revoked.
    pub fn tls_client_crl(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.tls_client_crl = Some(path.into()))
    }

    /// Sets [`tls_ticket_keys`](Config::tls_ticket_keys): keys that several servers share.
    pub fn tls_ticket_keys(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.tls_ticket_keys = Some(path.into()))
    }

    /// Sets [`acme`](Config::acme): names that a certificate is obtained for. Listeners then speak
    /// TLS.
    pub fn acme(self, names: &[&str]) -> Self {
        self.tune(|config| config.acme = owned(names))
    }

    /// Sets [`acme_email`](Config::acme_email): where the authority may write to.
    pub fn acme_email(self, address: &str) -> Self {
        self.tune(|config| address.clone_into(&mut config.acme_email))
    }

    /// Sets [`acme_directory`](Config::acme_directory): the authority.
    pub fn acme_directory(self, url: &str) -> Self {
        self.tune(|config| url.clone_into(&mut config.acme_directory))
    }

    /// Sets [`acme_ca`](Config::acme_ca): who vouches for the authority's own server, in PEM.
    pub fn acme_ca(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.acme_ca = Some(path.into()))
    }

    /// Sets [`acme_dir`](Config::acme_dir): the folder of the certificate and the account.
    pub fn acme_dir(self, folder: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.acme_dir = Some(folder.into()))
    }

    /// Sets [`acme_profile`](Config::acme_profile): the profile of the certificate.
    pub fn acme_profile(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.acme_profile))
    }

    /// Sets [`acme_eab_id`](Config::acme_eab_id): id of the account elsewhere.
    pub fn acme_eab_id(self, id: &str) -> Self {
        self.tune(|config| id.clone_into(&mut config.acme_eab_id))
    }

    /// Sets [`acme_eab_key`](Config::acme_eab_key): the file with the key of that account.
    pub fn acme_eab_key(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.acme_eab_key = Some(path.into()))
    }

    /// Sets [`body_spool`](Config::body_spool): the folder on whose disk long bodies are kept.
    pub fn body_spool(self, folder: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.body_spool = Some(folder.into()))
    }

    /// Sets [`Pace::clients_max`](crate::config::Pace::clients_max).
    pub fn pace_clients_max(self, clients: usize) -> Self {
        self.tune(|config| config.pace.clients_max = clients)
    }

    /// Sets [`access_log`](Config::access_log): the file that a line for each request is appended
    /// to; `-` is standard output.
    pub fn access_log(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.access_log = Some(path.into()))
    }

    /// Sets [`access_log_format`](Config::access_log_format): the format of such a line.
    pub fn access_log_format(self, format: &str) -> Self {
        self.tune(|config| format.clone_into(&mut config.access_log_format))
    }

    /// Sets [`metrics_path`](Config::metrics_path): the path of a page for Prometheus.
    pub fn metrics_path(self, path: &str) -> Self {
        self.tune(|config| path.clone_into(&mut config.metrics_path))
    }

    /// Sets [`stats_path`](Config::stats_path): the path of a page with all counters in JSON.
    pub fn stats_path(self, path: &str) -> Self {
        self.tune(|config| path.clone_into(&mut config.stats_path))
    }

    /// Sets [`metrics_allow_from`](Config::metrics_allow_from): the clients that get these pages.
    pub fn metrics_allow_from(self, networks: &[&str]) -> Self {
        self.tune(|config| config.metrics_allow_from = owned(networks))
    }

    /// Sets [`error_page_files`](Config::error_page_files): files with pages for errors, such as
    /// `404=404.html` or `5xx=50x.html`, where routes have no page of their own. A function makes
    /// one by [`Server::error_page`].
    pub fn error_page_files(self, pages: &[&str]) -> Self {
        self.tune(|config| config.error_page_files = owned(pages))
    }

    /// Sets [`user`](Config::user): `www-data`, `www-data:web`, or numbers. A server started by
    /// root changes to it, with the whole process, once it listens.
    pub fn user(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.user))
    }

    /// Sets [`server_name`](Config::server_name).
    pub fn server_name(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.server_name))
    }
}

pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TUNABLES;

    const SHORTER: &[&str] = &[
        "index",
        "try_files",
        "mime",
        "mime_types",
        "charset",
        "compress_types",
        "metrics_path",
        "stats_path",
        "metrics_allow_from",
        "error_page_files",
        "acme",
        "acme_email",
        "acme_directory",
        "acme_ca",
        "acme_dir",
        "acme_profile",
        "acme_eab_id",
        "acme_eab_key",
        "tls_cert",
        "tls_key",
        "tls_client_ca",
        "tls_client_crl",
        "tls_ticket_keys",
        "root",
        "listen_on",
        "forwarded_allow_ips",
        "proxy_allow_from",
        "host_name",
        "uds",
        "control",
        "forbidden",
        "uds_mode",
        "uds_owner",
        "body_spool",
        "pace_clients_max",
        "access_log",
        "access_log_format",
        "user",
        "server_name",
    ];

    macro_rules! names {
        ($of:ident; $($name:ident: $type:ty,)+) => { &[$(stringify!($name)),+] };
    }

    const OF_CONFIG: &[&str] = gustnado_config::each_setting!(names);
    const OF_PACE: &[&str] = gustnado_config::each_setting_of_pace!(names);
    const OF_ROUTES: &[&str] = gustnado_config::each_setting_of_route!(names);
    const OF_ACCESS: &[&str] = gustnado_config::each_setting_of_access!(names);

    #[test]
    fn every_setting_has_its_method() {
        let all: Vec<&str> = OF_CONFIG
            .iter()
            .chain(OF_PACE)
            .chain(OF_ROUTES)
            .chain(OF_ACCESS)
            .chain(&super::super::access::METHODS)
            .chain(SHORTER)
            .copied()
            .collect();
        for tunable in TUNABLES {
            let name = tunable.method();
            assert!(all.contains(&name.as_str()), "{name}: no method has this name");
        }
        assert_eq!(all.len(), TUNABLES.len(), "a method for what is no setting");
    }

    #[test]
    fn a_method_sets_what_its_name_says() {
        let server = Server::new().header_timeout(Duration::from_secs(5)).root("x").host_name("h");
        let server = server.listen_on(&["127.0.0.1:0"]).server_name("me").uds("u");
        let config = &server.config;
        assert_eq!(config.header_timeout, Duration::from_secs(5));
        assert_eq!((&*config.host, &*config.server_name), ("h", "me"));
        assert_eq!((&config.root, &config.uds), (&Some("x".into()), &Some("u".into())));
        assert_eq!(config.listen, ["127.0.0.1:0"]);
    }

    #[test]
    fn a_setting_can_be_set_by_its_name() {
        let server = Server::new().set("header-timeout", "5s").expect("it takes that");
        assert_eq!(server.config.header_timeout, Duration::from_secs(5));
        let error = server.set("header-timeuot", "5s").expect_err("no such setting");
        assert!(error.to_string().contains("did you mean \"header-timeout\"?"), "{error}");
    }
}
