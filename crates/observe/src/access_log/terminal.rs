//! Limits the lines of a log that a terminal shows.
//!
//! A few lines at a time are readable, and a terminal that shows all of them is slower than the
//! server. A paused terminal (Ctrl-S) takes none, and nothing waits for it. Lines that are left out
//! are counted, and their number is shown.

use std::time::{Duration, Instant};

/// The most lines in one window of time.
const LINES_MAX: usize = 50;
const WINDOW: Duration = Duration::from_millis(250);

/// The recent output of a terminal.
#[derive(Debug)]
pub(super) struct Window {
    began: Instant,
    shown: usize,
    /// Lines that were left out and not reported yet.
    left_out: u64,
}

impl Window {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, shown: 0, left_out: 0 }
    }

    /// Returns whether lines were left out and not reported yet.
    pub(super) fn owes(&self) -> bool {
        self.left_out > 0
    }

    /// Cuts `lines` to those that are shown now. Returns how many are left out.
    ///
    /// - `is_paused`: the terminal takes nothing.
    pub(super) fn cut(&mut self, lines: &mut Vec<u8>, is_paused: bool, now: Instant) -> u64 {
        let is_over = now.saturating_duration_since(self.began) >= WINDOW;
        if is_over && !is_paused {
            (self.began, self.shown) = (now, 0);
        }
        let room = if is_paused { 0 } else { LINES_MAX - self.shown };
        let mut ends = memchr::memchr_iter(b'\n', lines).map(|end| end + 1);
        let end = if room == 0 { 0 } else { ends.nth(room - 1).unwrap_or(lines.len()) };
        let count = |part: &[u8]| memchr::memchr_iter(b'\n', part).count();
        let left_out = count(&lines[end..]) as u64;
        self.shown += count(&lines[..end]);
        lines.truncate(end);
        if is_over && !is_paused && self.owes() {
            let said = match std::mem::take(&mut self.left_out) {
                1 => "… 1 more request\n".to_owned(),
                count => format!("… {count} more requests\n"),
            };
            lines.splice(0..0, said.into_bytes());
        }
        self.left_out += left_out;
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<u8> {
        b"GET\n".repeat(count)
    }

    fn shown(window: &mut Window, count: usize, is_paused: bool, now: Instant) -> (String, u64) {
        let mut lines = lines(count);
        let left_out = window.cut(&mut lines, is_paused, now);
        (String::from_utf8(lines).expect("text"), left_out)
    }

    #[test]
    fn a_flood_is_cut_and_counted() {
        let start = Instant::now();
        let mut window = Window::new(start);
        assert_eq!(shown(&mut window, 3, false, start), ("GET\n".repeat(3), 0));
        assert_eq!(shown(&mut window, 100, false, start), ("GET\n".repeat(47), 53));
        assert_eq!(shown(&mut window, 7, false, start), (String::new(), 7));
        assert!(window.owes());
        let later = start + WINDOW;
        assert_eq!(shown(&mut window, 0, false, later), ("… 60 more requests\n".to_owned(), 0));
        assert!(!window.owes());
        assert_eq!(shown(&mut window, 2, false, later), ("GET\n".repeat(2), 0));
    }

    #[test]
    fn a_terminal_that_is_paused_is_given_the_number_afterwards() {
        let start = Instant::now();
        let mut window = Window::new(start);
        let later = start + 9 * WINDOW;
        assert_eq!(shown(&mut window, 1, true, later), (String::new(), 1));
        let expected = ("… 1 more request\nGET\n".to_owned(), 0);
        assert_eq!(shown(&mut window, 1, false, later), expected);
    }
}
