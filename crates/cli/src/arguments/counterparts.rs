//! Flags of other servers: their name here, or that there is no such flag yet.
//!
//! An unknown flag is looked up here before a guess by spelling. The tables of
//! `docs/python/asgi.md` and `docs/python/wsgi.md` say the same for `gustnado run`.

use std::fmt;

/// The counterpart of another server's flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counterpart {
    /// The same setting under another name.
    Ours(&'static str),
    /// A feature that a proxy in front can provide.
    Proxy(&'static str),
    /// A reason, or a workaround.
    Because(&'static str),
}

impl fmt::Display for Counterpart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(words) => write!(f, "no such flag; here it is {words}"),
            Self::Proxy(subject) => {
                write!(f, "no such flag: there is no {subject} yet; put a proxy before it")
            }
            Self::Because(reason) => write!(f, "no such flag: {reason}"),
        }
    }
}

use Counterpart::{Because, Ours, Proxy};

const LISTEN: Counterpart =
    Ours("--host ADDRESS and --port N, or --listen ADDRESS:PORT for several");
const FOLDER: Counterpart = Ours("the folder without a flag: gustnado serve DIR");
const INDEX: Counterpart = Ours("--listing");
const TLS: Counterpart = Ours("--tls-cert FILE and --tls-key FILE");
const GZIP: Counterpart =
    Ours("--compress; or `gustnado compress DIR` and --precompressed, which is done once");
const HTTP2: Counterpart =
    Because("HTTP/2 is offered to clients that come by TLS; --h2c takes it in clear, too");
const HTTP3: Counterpart = Proxy("HTTP/3");
const WEBSOCKET: Counterpart =
    Because("programs have WebSockets, in Rust and in Python, and a folder has none");
const AUTH: Counterpart = Ours("--basic-auth FILE; `gustnado passwd USER` prints a line for it");
const FORWARD: Counterpart = Because("it forwards to no other server yet");
const CORS: Counterpart = Ours("--cors=any, or --cors=https://one.example for some origins");
const SPA: Counterpart = Ours("--spa, or --spa=FILE for another page than index.html");
const CACHE: Counterpart =
    Ours("--cache-control on, and [[cache]] in a configuration file for rules of your own");
const ERROR_PAGE: Counterpart = Ours("--error-page 404=FILE, or 5xx=FILE");
const MANAGER: Counterpart =
    Because("that is the service manager's work; with systemd, for instance, User= and PIDFile=");
const THREADS: Counterpart = Ours("--workers N; for handlers that block, --blocking-threads N");
const GRACEFUL: Counterpart = Ours("--timeout-graceful-shutdown 10s");
const TIMEOUT: Counterpart =
    Ours("--header-timeout, --body-timeout, --write-timeout or --timeout-keep-alive");
const ACCESS_LOG: Counterpart = Ours("--access-log FILE, or - for standard output");
const NO_LOG: Counterpart = Ours("--access-log=, or --quiet");
const LOG_LEVEL: Counterpart = Because("only --quiet, and --access-log FILE for requests");
const PROXIED: Counterpart = Ours("--forwarded-allow-ips ADDRESSES");
const LIMIT: Counterpart = Ours("--connections-max N");
const PYTHON: Counterpart = Because(
    "that is for applications in Python: `python -m gustnado run --help`, see `gustnado help run`",
);

/// Flags with their dashes, in groups by purpose.
const TABLE: &[(&[&str], Counterpart)] = &[
    (&["--bind", "-b", "--address", "--addr", "-a", "--interface", "-i", "--hostname"], LISTEN),
    (&["--fd"], Ours("--listen fd:N")),
    (&["--socket", "--unix-socket"], Ours("--uds PATH")),
    (&["--directory", "-d", "--dir", "--root", "--path", "--folder", "--docroot"], FOLDER),
    (&["--directory-listing", "--dir-listing", "--browse", "--autoindex", "--list"], INDEX),
    (&["--listings", "--index-of", "--directory-index", "-z"], INDEX),
    (&["--no-listing", "--no-directory-listing", "--disable-indexing"], Ours("--listing=off")),
    (&["--index-file", "--default-file"], Ours("--index NAME")),
    (&["--tls", "--ssl", "--https", "--cert", "--key", "--ssl-cert", "--ssl-key"], TLS),
    (&["--certificate", "--ssl-certificate", "--http2-tls-cert", "--http2-tls-key", "-S"], TLS),
    (&["--gzip", "--compression", "--brotli", "--zstd", "--deflate"], GZIP),
    (&["--compression-static", "--gzip-static", "-g"], Ours("--precompressed")),
    (&["--h2", "--http"], HTTP2),
    (&["--http3", "--h3", "--quic-bind"], HTTP3),
    (&["--ws", "--websocket", "--websockets", "--ws-ping-interval"], WEBSOCKET),
    (&["--auth", "--username", "--password"], AUTH),
    (&["--proxy", "--reverse-proxy", "--proxy-pass", "--upstream", "-P"], FORWARD),
    (&["--cors-allow-origins", "--enable-cors"], CORS),
    (&["--single", "--fallback", "--page-fallback"], SPA),
    (&["--cache", "--cache-control-headers", "--max-age"], CACHE),
    (&["--header", "-H"], Ours("[headers] in a configuration file")),
    (&["--page404", "--page50x", "--404"], ERROR_PAGE),
    (&["--upload-files", "-u"], Ours("--upload")),
    (&["--dotfiles", "--show-hidden", "--include-hidden"], Ours("--hidden")),
    (&["--follow-symlinks", "--no-follow-symlinks"], MANAGER_OF_LINKS),
    (&["--daemon", "-D", "--daemonize", "--background", "--pid", "--pidfile"], MANAGER),
    (&["--group"], Ours("--user NAME:GROUP")),
    (&["--umask", "--chdir", "--chroot"], MANAGER),
    (&["--threads", "-t", "--worker-threads", "--threads-multiplier", "-w", "-j"], THREADS),
    (&["--processes", "--blocking-threads-max"], THREADS),
    (&["--timeout", "--read-timeout", "--client-timeout"], TIMEOUT),
    (&["--graceful-timeout", "--grace-period", "--shutdown-timeout"], GRACEFUL),
    (&["--keep-alive", "--keepalive", "--keep-alive-timeout"], Ours("--timeout-keep-alive 75s")),
    (&["--max-connections", "--worker-connections"], LIMIT),
    (&["--max-requests"], Ours("--max-requests-per-connection N")),
    (&["--max-body", "--max-body-size", "--client-max-body-size"], Ours("--limit-body-bytes 10m")),
    (&["--access-logfile", "--log", "--log-file", "--logfile", "--log-requests"], ACCESS_LOG),
    (&["--access-logformat", "--log-format"], Ours("--access-log-format")),
    (&["--no-access-log", "--no-request-logging", "--disable-access-log"], NO_LOG),
    (&["--silent", "-s", "-q"], Ours("--quiet")),
    (&["--log-level", "--verbose", "-v", "--debug", "--error-logfile"], LOG_LEVEL),
    (&["--proxy-headers", "--trust-proxy", "--trusted-proxies"], PROXIED),
    (&["--server-header", "--no-server-header"], Ours("--server-name NAME; \"\" sends none")),
    (&["--open", "-o"], Because("it opens no browser; the first line says the URL")),
    (&["--watch", "--reload"], Ours("--watch-config")),
    (&["--app", "--app-dir", "--factory", "--worker-class", "-k", "--preload"], PYTHON),
    (&["--wsgi", "--asgi", "--lifespan", "--loop", "--root-path", "--env-file"], PYTHON),
];

const MANAGER_OF_LINKS: Counterpart =
    Because("symbolic links are followed as long as they stay in the folder");

/// Returns the counterpart of a flag.
pub(super) fn find(flag: &str) -> Option<Counterpart> {
    let found = TABLE.iter().find(|(flags, _)| flags.contains(&flag));
    found.map(|(_, counterpart)| *counterpart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado::config::TUNABLES;

    #[test]
    fn no_flag_stands_twice_or_is_one_of_ours() {
        let all: Vec<&str> = TABLE.iter().flat_map(|(flags, _)| flags.iter().copied()).collect();
        for (place, flag) in all.iter().enumerate() {
            assert!(!all[..place].contains(flag), "{flag} stands twice");
            assert!(TUNABLES.iter().all(|tunable| tunable.flag() != *flag), "{flag} is ours");
            assert!(!["-p", "-h", "-V", "-c", "--config"].contains(flag), "{flag} is ours");
        }
    }

    #[test]
    fn every_flag_that_is_named_is_there() {
        for (flags, counterpart) in TABLE {
            let text = counterpart.to_string();
            let ours = text.split([' ', ',', ';', '=', '`']).filter(|word| word.starts_with("--"));
            for named in ours.filter(|named| *named != "--help") {
                let is_there = TUNABLES.iter().any(|tunable| tunable.flag() == named);
                assert!(is_there, "{flags:?}: {named}");
            }
        }
    }
}
