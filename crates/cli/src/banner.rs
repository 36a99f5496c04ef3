//! The text printed when the server listens. `serve` gathers its values.

use crate::figures::counted;
use crate::output::Paint;

/// Facts about a server that has started.
#[derive(Debug)]
pub(crate) struct Banner {
    /// `http://127.0.0.1:8080/` or `unix:/run/gustnado.sock`.
    pub(crate) urls: Vec<String>,
    /// The URL for other machines, if the server listens on every interface.
    pub(crate) network: Option<String>,
    /// The folder, if it serves one.
    pub(crate) root: Option<String>,
    /// `io_uring` or `epoll`.
    pub(crate) backend: String,
    /// The scheduler's name.
    pub(crate) scheduler: &'static str,
    pub(crate) workers: usize,
    pub(crate) connections_max: usize,
    /// Notes, for instance why `io_uring` is not used.
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
        let network = self.network.as_ref();
        lines.extend(network.map(|url| item(paint, "others", &format!("{url} in this network"))));
        lines.extend(self.notes.iter().map(|note| item(paint, "note", note)));
        lines.push(item(paint, "stop", "Ctrl-C lets responses finish, a second Ctrl-C does not"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_url_and_notes_have_their_own() {
        let banner = Banner {
            urls: vec!["http://127.0.0.1:8080/".to_owned()],
            network: Some("http://192.0.2.7:8080/".to_owned()),
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
                "  others  http://192.0.2.7:8080/ in this network",
                "  note    io_uring: not permitted (seccomp); using epoll",
                "  stop    Ctrl-C lets responses finish, a second Ctrl-C does not",
            ]
        );
    }
}
