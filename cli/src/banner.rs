//! What is printed when the server listens. Only text: what it says is gathered by `serve`.

use crate::output::{Paint, counted};

/// What a person wants to know first.
#[derive(Debug)]
pub(crate) struct Banner {
    /// `http://127.0.0.1:8080/` or `unix:/run/gustnado.sock`.
    pub(crate) urls: Vec<String>,
    /// The folder, if one is served.
    pub(crate) root: Option<String>,
    /// `io_uring` or `epoll`.
    pub(crate) backend: String,
    /// The scheduler's name.
    pub(crate) scheduler: &'static str,
    pub(crate) workers: usize,
    pub(crate) connections_max: usize,
    /// For instance why `io_uring` is not used.
    pub(crate) notes: Vec<String>,
}

impl Banner {
    /// A few lines. The first one is `gustnado VERSION listens on URL`, for scripts too.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let urls: Vec<String> = self.urls.iter().map(|url| paint.bold(url)).collect();
        let name = paint.green(concat!("gustnado ", env!("CARGO_PKG_VERSION")));
        let root = self.root.as_deref();
        let built_in = "its built-in page; for a folder of yours: gustnado serve DIR";
        let mut lines = vec![
            format!("{name} listens on {}", urls.join(" and ")),
            item(paint, "serves", root.unwrap_or(built_in)),
            item(paint, "engine", &self.engine()),
        ];
        lines.extend(self.notes.iter().map(|note| item(paint, "note", note)));
        lines.push(item(paint, "stop", "Ctrl-C lets answers finish, a second Ctrl-C does not"));
        lines.join("\n")
    }

    fn engine(&self) -> String {
        format!(
            "{}, scheduler {}, {}, up to {}",
            self.backend,
            self.scheduler,
            counted(self.workers as u64, "worker"),
            counted(self.connections_max as u64, "connection"),
        )
    }
}

fn item(paint: Paint, name: &str, text: &str) -> String {
    format!("  {}  {text}", paint.dim(&format!("{name:<6}")))
}

/// The URL to click for an address such as `127.0.0.1:8080`, `[::]:80` or `unix:/p`.
///
/// An address that stands for every interface is no place to go to: the loopback one is shown.
pub(crate) fn url(address: &str) -> String {
    if address.starts_with("unix:") {
        return address.to_owned();
    }
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "80"));
    let (place, note) = match host {
        "0.0.0.0" => ("127.0.0.1", " (every IPv4 interface)"),
        "[::]" => ("[::1]", " (every interface)"),
        host => (host, ""),
    };
    let port = if port == "80" { String::new() } else { format!(":{port}") };
    format!("http://{place}{port}/{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_url_and_notes_have_their_own() {
        let banner = Banner {
            urls: vec![url("127.0.0.1:8080")],
            root: None,
            backend: "epoll".to_owned(),
            scheduler: "pool",
            workers: 1,
            connections_max: 19_000,
            notes: vec!["io_uring: not permitted (seccomp); using epoll".to_owned()],
        };
        let version = env!("CARGO_PKG_VERSION");
        let text = banner.text(Paint(false));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("gustnado {version} listens on http://127.0.0.1:8080/"));
        assert_eq!(
            lines[1..],
            [
                "  serves  its built-in page; for a folder of yours: gustnado serve DIR",
                "  engine  epoll, scheduler pool, 1 worker, up to 19,000 connections",
                "  note    io_uring: not permitted (seccomp); using epoll",
                "  stop    Ctrl-C lets answers finish, a second Ctrl-C does not",
            ]
        );
    }

    #[test]
    fn every_address_becomes_something_to_click() {
        for (address, shown) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("127.0.0.1:80", "http://127.0.0.1/"),
            ("[::1]:81", "http://[::1]:81/"),
            ("0.0.0.0:81", "http://127.0.0.1:81/ (every IPv4 interface)"),
            ("[::]:81", "http://[::1]:81/ (every interface)"),
            ("unix:/run/g.sock", "unix:/run/g.sock"),
        ] {
            assert_eq!(url(address), shown);
        }
    }
}
