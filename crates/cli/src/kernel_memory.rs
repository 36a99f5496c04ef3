//! The kernel's share of a server's memory, for `check`: what sockets hold now, and what a client
//! that reads nothing can make them hold.

use crate::figures::grouped;
use gustnado::config::{Config, SocketMemory};

/// The kernel's own bytes for each byte that it holds, in eighths: measured 8 to 11.
const OVERHEAD_EIGHTHS: u64 = 12;

/// Lines about it.
///
/// - `connections`: how many the server may have.
pub(crate) fn lines(config: &Config, connections: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(SocketMemory { bytes, of }) = SocketMemory::read() {
        let most = SocketMemory::tcp_max_bytes();
        let most = most.map(|most| format!("; TCP may take {} MB (tcp_mem)", megabytes(most)));
        let now = megabytes(bytes);
        lines.push(format!("sockets hold {now} MB now ({of}){}", most.unwrap_or_default()));
    }
    let buffer = match config.send_buffer_bytes as u64 {
        // The kernel doubles what is set.
        0 => SocketMemory::send_buffer_max_bytes(),
        set => Some(2 * set),
    };
    let unsent = match config.notsent_lowat as u64 {
        0 => buffer,
        lowat => Some((lowat * OVERHEAD_EIGHTHS / 8).min(buffer.unwrap_or(u64::MAX))),
    };
    if let (Some(unsent), Some(buffer)) = (unsent, buffer) {
        lines.push(format!(
            "a client that reads nothing: up to {} KB in the kernel (notsent-lowat), {} MB for {} \
             connections",
            grouped(unsent >> 10),
            megabytes(unsent.saturating_mul(connections)),
            grouped(connections),
        ));
        lines.push(format!(
            "a client that has stopped acknowledging: up to {} KB (send-buffer-bytes) until \
             write-timeout",
            grouped(buffer >> 10),
        ));
    }
    lines
}

fn megabytes(bytes: u64) -> String {
    grouped(bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_reader_holds_is_bounded_by_the_settings() {
        let config = Config { send_buffer_bytes: 1 << 20, ..Config::default() };
        let lines = lines(&config, 10_000).join("\n");
        assert!(lines.contains("up to 192 KB in the kernel (notsent-lowat), 1,875 MB"), "{lines}");
        assert!(lines.contains("up to 2,048 KB (send-buffer-bytes)"), "{lines}");
        let off = Config { notsent_lowat: 0, ..config };
        assert!(super::lines(&off, 1).join("\n").contains("up to 2,048 KB in the kernel"));
    }
}
