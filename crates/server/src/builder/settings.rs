//! A method for each setting, in the order of the table.

use std::path::PathBuf;
use std::time::Duration;

use super::Server;
use crate::config::{
    Acceptor, AnswerVersion, Config, ForwardedFields, Io, Listing, Placement, SchedulerKind,
    TrafficClass,
};

/// Names the field of [`Config`], or of a part of it, and its type: the method is called the same,
/// and documented there.
macro_rules! settings {
    ($list:ident of $of:ident, |$config:ident| $part:expr; $($name:ident: $type:ty),+ $(,)?) => {
        impl Server {
            $(
                #[doc = concat!(
                    "Sets [`", stringify!($name), "`](field@crate::config::", stringify!($of), "::",
                    stringify!($name), ").",
                )]
                pub fn $name(self, value: $type) -> Self {
                    self.tune(|$config: &mut Config| $part.$name = value)
                }
            )+
        }

        #[cfg(test)]
        const $list: &[&str] = &[$(stringify!($name)),+];
    };
}

settings! { OF_CONFIG of Config, |config| config;
    port: u16,
    backlog: u32,
    defer_accept: bool,
    forwarded_fields: ForwardedFields,
    proxy_protocol: bool,
    recv_buffer_bytes: usize,
    send_buffer_bytes: usize,
    socket_preference: TrafficClass,
    workers: usize,
    workers_max: usize,
    grow_after: Duration,
    shrink_period: Duration,
    cache_workers: bool,
    blocking_threads: usize,
    blocking_queue: usize,
    file_threads: usize,
    io: Io,
    scheduler: SchedulerKind,
    slots: usize,
    placement: Placement,
    acceptor: Acceptor,
    spin_us: u32,
    uring_buffers: u32,
    connections_max: usize,
    max_requests_per_connection: u64,
    limit_head_bytes: usize,
    limit_target_bytes: usize,
    limit_header_fields: usize,
    limit_body_bytes: u64,
    read_ahead_bytes: usize,
    stream_buffer_bytes: usize,
    first_request_timeout: Duration,
    header_timeout: Duration,
    body_timeout: Duration,
    body_rate_min: u64,
    write_timeout: Duration,
    write_rate_min: u64,
    timeout_keep_alive: Duration,
    half_close_timeout: Duration,
    drain_accept: Duration,
    timeout_graceful_shutdown: Duration,
    cache_bytes: u64,
    hidden: bool,
    listing: Listing,
    answer_version: AnswerVersion,
    stats_interval: Duration,
    quiet: bool,
}

settings! { OF_PACE of Pace, |config| config.pace;
    accept_delay: Duration,
    accepts_per_second: u64,
    pass_delay_us: u64,
    no_io_wait_us: u64,
    first_byte_delay: Duration,
    write_rate: u64,
    write_burst: u64,
    read_rate: u64,
    read_burst: u64,
    client_write_rate: u64,
    client_write_burst: u64,
    client_read_rate: u64,
    client_read_burst: u64,
    server_write_rate: u64,
    server_write_burst: u64,
    server_read_rate: u64,
    server_read_burst: u64,
    requests_per_second: u64,
    requests_burst: u64,
}

/// Those whose values are said in a shorter way than they are kept.
impl Server {
    /// Sets [`root`](Config::root): the folder that is served where no route matches.
    pub fn root(self, folder: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.root = Some(folder.into()))
    }

    /// Sets [`listen`](Config::listen): several addresses, in place of host, port and uds. Then
    /// [`Server::start`] listens there.
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

    /// Sets [`host`](Config::host).
    pub fn host_name(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.host))
    }

    /// Sets [`uds`](Config::uds): the path of a Unix socket.
    pub fn uds(self, path: impl Into<PathBuf>) -> Self {
        self.tune(|config| config.uds = Some(path.into()))
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

    /// Sets [`access_log_format`](Config::access_log_format): what such a line says.
    pub fn access_log_format(self, format: &str) -> Self {
        self.tune(|config| format.clone_into(&mut config.access_log_format))
    }

    /// Sets [`server_name`](Config::server_name).
    pub fn server_name(self, name: &str) -> Self {
        self.tune(|config| name.clone_into(&mut config.server_name))
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TUNABLES;

    const SHORTER: [&str; 10] = [
        "root",
        "listen_on",
        "forwarded_allow_ips",
        "proxy_allow_from",
        "host_name",
        "uds",
        "pace_clients_max",
        "access_log",
        "access_log_format",
        "server_name",
    ];

    #[test]
    fn every_setting_has_its_method() {
        let all: Vec<&str> = OF_CONFIG.iter().chain(OF_PACE).chain(&SHORTER).copied().collect();
        for tunable in TUNABLES {
            let name = tunable.method();
            assert!(all.contains(&name.as_str()), "{name}: add it to `settings!`");
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
