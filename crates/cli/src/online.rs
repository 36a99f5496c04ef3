//! `gustnado check --online`: what the settings name in the network. Names are resolved, addresses
//! are bound for a moment, and sockets and authorities are connected to.

#[cfg(feature = "acme")]
mod authority;

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;

use gustnado::config::{Config, ListenSpec};

use crate::arguments::ServeOptions;
use crate::output::{Console, Paint, page, page_paint};
use crate::{check, exit};

/// What was found in the network.
#[derive(Debug, PartialEq, Eq)]
struct NetworkFinding {
    /// The setting that names it, and the name.
    of: String,
    verdict: NetworkVerdict,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkVerdict {
    Well,
    /// It may be as it should be.
    Note,
    /// A server could not start with it, or not do what it is for.
    Failed,
}

impl NetworkFinding {
    fn new(of: impl Into<String>, verdict: NetworkVerdict, text: impl Into<String>) -> Self {
        Self { of: of.into(), verdict, text: text.into() }
    }

    fn line(&self, paint: Paint) -> String {
        let verdict = match self.verdict {
            NetworkVerdict::Well => paint.green("ok    "),
            NetworkVerdict::Note => paint.yellow("note  "),
            NetworkVerdict::Failed => paint.red("failed"),
        };
        format!("  {verdict}  {}: {}\n", self.of, self.text)
    }
}

/// Checks the settings as without the flag, and then the network. The exit code is 1 if something
/// in the network fails.
pub(crate) fn run(options: &ServeOptions) -> u8 {
    let code = check::run(options);
    if code != exit::CLEAN {
        return code;
    }
    let paint = page_paint();
    page(&format!("\n{}\n", paint.bold("Network")));
    let mut failed = 0_u64;
    let mut tell = |found: NetworkFinding| {
        failed += u64::from(found.verdict == NetworkVerdict::Failed);
        page(&options.shown(&found.line(paint)));
    };
    let config = &options.settings.config;
    listeners(config).for_each(&mut tell);
    if let Some(path) = &config.control {
        tell(unix_socket("control", path));
    }
    hosts(options).for_each(&mut tell);
    #[cfg(feature = "acme")]
    if !config.acme.is_empty() {
        tell(authority::directory(config));
    }
    if failed == 0 {
        return exit::CLEAN;
    }
    let line =
        format!("{} in the network failed, see above", crate::figures::counted(failed, "check"));
    Console::new(false).error(&line);
    exit::FAILED
}

fn listeners(config: &Config) -> impl Iterator<Item = NetworkFinding> {
    let all = match &config.uds {
        _ if !config.listen.is_empty() => config.listen.clone(),
        Some(path) => vec![format!("unix:{}", path.display())],
        None if config.host.contains(':') => vec![format!("[{}]:{}", config.host, config.port)],
        None => vec![format!("{}:{}", config.host, config.port)],
    };
    all.into_iter().map(|text| {
        let of = format!("listen {text}");
        // A mistake in it was found already.
        let address = ListenSpec::parse(&text).map_or(text, |spec| spec.address);
        match address.strip_prefix("unix:") {
            Some(name) if name.starts_with('@') => {
                NetworkFinding::new(of, NetworkVerdict::Well, "a socket without a file")
            }
            Some(path) => unix_socket(&of, Path::new(path)),
            None if address.starts_with("fd:") => NetworkFinding::new(
                of,
                NetworkVerdict::Note,
                "the process that starts the server opens it",
            ),
            None => tcp(of, &address),
        }
    })
}

/// Resolves a listener's address and binds it for a moment.
fn tcp(of: String, address: &str) -> NetworkFinding {
    let resolved = match resolve(address) {
        Ok(resolved) => resolved,
        Err(why) => return NetworkFinding::new(of, NetworkVerdict::Failed, why),
    };
    // The one that a server takes.
    let Some(address) = resolved.iter().min_by_key(|one| one.is_ipv6()).copied() else {
        return NetworkFinding::new(
            of,
            NetworkVerdict::Failed,
            "the name has no address; name another",
        );
    };
    let (verdict, text) = match TcpListener::bind(address).map_err(|error| error.kind()) {
        Ok(_) => (NetworkVerdict::Well, format!("{address} is free")),
        Err(ErrorKind::AddrInUse) => (
            NetworkVerdict::Note,
            format!("{address} is in use: by this server, if it runs already"),
        ),
        Err(ErrorKind::PermissionDenied) => {
            (NetworkVerdict::Note, format!("{address} is for root, or a service that may bind it"))
        }
        Err(ErrorKind::AddrNotAvailable) => (
            NetworkVerdict::Failed,
            format!("this machine does not have the address {address}; `ip address` lists its own"),
        ),
        Err(kind) => (NetworkVerdict::Failed, format!("{address} cannot be bound: {kind}")),
    };
    NetworkFinding::new(of, verdict, text)
}

/// Returns the addresses of a host with its port, or why there are none.
fn resolve(address: &str) -> Result<Vec<SocketAddr>, String> {
    let failed = |error: io::Error| {
        format!("the name cannot be resolved ({error}); correct it, or the resolver's settings")
    };
    address.to_socket_addrs().map(Iterator::collect).map_err(failed)
}

/// Looks who listens on a Unix socket.
fn unix_socket(of: &str, path: &Path) -> NetworkFinding {
    let of = if of == "control" { format!("{of} {}", path.display()) } else { of.to_owned() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let (verdict, text) = match UnixStream::connect(path).map_err(|error| error.kind()) {
        Ok(_) => (NetworkVerdict::Note, "in use: by this server, if it runs already".to_owned()),
        Err(ErrorKind::ConnectionRefused) => (
            NetworkVerdict::Well,
            "left by a server that has ended; the next one replaces it".to_owned(),
        ),
        Err(ErrorKind::NotFound) if folder.is_dir() => (NetworkVerdict::Well, "free".to_owned()),
        Err(ErrorKind::NotFound) => {
            let shown = folder.display();
            (NetworkVerdict::Failed, format!("there is no folder {shown}; create it"))
        }
        Err(ErrorKind::PermissionDenied) => {
            (NetworkVerdict::Note, "this user may not look; run it as the server's user".to_owned())
        }
        Err(kind) => (NetworkVerdict::Failed, format!("it cannot be connected to: {kind}")),
    };
    NetworkFinding::new(of, verdict, text)
}

/// Resolves the names of certificates, which an authority has to find, and the hosts of sites.
fn hosts(options: &ServeOptions) -> impl Iterator<Item = NetworkFinding> {
    let names = options.settings.config.acme.iter().map(|name| ("acme", name));
    let sites = options.site.iter().flat_map(gustnado::site::SiteFile::certificates);
    let hosts = sites.flat_map(|(hosts, _)| hosts).map(|host| ("site", host));
    let all: Vec<(&str, String)> = names
        .chain(hosts)
        // All names below one have no address in common.
        .filter(|(_, host)| !host.starts_with("*."))
        .map(|(kind, host)| (kind, host.clone()))
        .collect();
    all.into_iter().map(|(kind, host)| {
        let of = format!("{kind} {host}");
        match resolve(&with_port(&host)) {
            Ok(found) if !found.is_empty() => {
                let mut all: Vec<String> = found.iter().map(|one| one.ip().to_string()).collect();
                all.dedup();
                NetworkFinding::new(of, NetworkVerdict::Well, all.join(", "))
            }
            // An authority would ask in vain; a site may be for another network.
            Ok(_) | Err(_) if kind == "acme" => NetworkFinding::new(
                of,
                NetworkVerdict::Failed,
                "the name has no address, so that no authority can reach it; add it to the DNS",
            ),
            Ok(_) | Err(_) => {
                let text = "the name has no address here: clients that know it otherwise may come";
                NetworkFinding::new(of, NetworkVerdict::Note, text)
            }
        }
    })
}

fn with_port(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:443")
    } else {
        format!("{host}:443")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_free_or_in_use_or_none_of_this_machine() {
        let found = |address: &str| tcp("listen".to_owned(), address);
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("it is bound").to_string();
        assert_eq!(found(&address).verdict, NetworkVerdict::Note, "{:?}", found(&address));
        assert_eq!(found("127.0.0.1:0").verdict, NetworkVerdict::Well);
        let elsewhere = found("192.0.2.1:8080");
        assert_eq!(elsewhere.verdict, NetworkVerdict::Failed, "{elsewhere:?}");
        assert!(elsewhere.text.contains("`ip address`"), "{elsewhere:?}");
        assert_eq!(found("no-such-host.invalid:80").verdict, NetworkVerdict::Failed);
    }

    #[test]
    fn a_unix_socket_is_free_or_in_use_or_has_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let verdict = |path: &Path| unix_socket("control", path).verdict;
        assert_eq!(verdict(&path), NetworkVerdict::Well);
        let listening = std::os::unix::net::UnixListener::bind(&path).expect("it is free");
        assert_eq!(verdict(&path), NetworkVerdict::Note);
        drop(listening);
        assert_eq!(verdict(&path), NetworkVerdict::Well, "it is left over");
        assert_eq!(verdict(&folder.path().join("none/socket")), NetworkVerdict::Failed);
    }

    #[test]
    fn an_ipv6_address_has_its_brackets_before_a_port() {
        assert_eq!(with_port("2001:db8::1"), "[2001:db8::1]:443");
        assert_eq!(with_port("example.org"), "example.org:443");
    }
}
