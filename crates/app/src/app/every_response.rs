//! The fields that every response has, made once a second for each worker.

use std::cell::RefCell;
use std::rc::Rc;

use gustnado_http::date::imf_fixdate;
use gustnado_http::fields::Fields;
use gustnado_http::h2::hpack::ResponseLines;
use gustnado_web::response::ResponsePrefix;

use super::App;

thread_local! {
    /// The field lines of every response, for one second.
    static PREFIX: RefCell<Rc<ResponsePrefix>> = RefCell::default();
    /// The same of responses that must not ask for https.
    static PLAIN_PREFIX: RefCell<Rc<ResponsePrefix>> = RefCell::default();
    /// The same as HTTP/2 has them.
    static LINES: RefCell<Option<Rc<ResponseLines>>> = const { RefCell::new(None) };
}

/// Drops what the running thread has of them.
pub(super) fn forget() {
    PREFIX.take();
    PLAIN_PREFIX.take();
    LINES.take();
}

impl App {
    /// Returns the field lines of every response, rebuilt once a second per worker.
    ///
    /// For one caller, where this is inlined: it is a part of every turn. All others use
    /// [`App::late_response_prefix`].
    #[inline]
    pub fn response_prefix(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        PREFIX.with_borrow_mut(|prefix| self.refreshed(prefix, unix_secs))
    }

    /// Returns the same for a response that a turn has not begun with.
    #[inline(never)]
    pub fn late_response_prefix(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        PREFIX.with_borrow_mut(|prefix| self.refreshed(prefix, unix_secs))
    }

    #[inline]
    fn refreshed(&self, prefix: &mut Rc<ResponsePrefix>, unix_secs: u64) -> Rc<ResponsePrefix> {
        if prefix.unix_secs != unix_secs {
            *prefix = self.next_prefix(unix_secs);
        }
        Rc::clone(prefix)
    }

    /// Returns the same for a response that goes out without https: it must not be asked for there
    /// (RFC 6797 §7.2).
    #[cold]
    pub fn plain_response_prefix(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        PLAIN_PREFIX.with_borrow_mut(|prefix| {
            if prefix.unix_secs != unix_secs {
                *prefix = Rc::new(self.new_prefix(unix_secs, ""));
            }
            Rc::clone(prefix)
        })
    }

    #[cold]
    #[inline(never)]
    fn next_prefix(&self, unix_secs: u64) -> Rc<ResponsePrefix> {
        Rc::new(self.new_prefix(unix_secs, &self.hsts_line))
    }

    /// Returns the fields of every response as HTTP/2 has them, rebuilt once a second per worker.
    #[inline]
    pub fn response_lines(&self, unix_secs: u64) -> Rc<ResponseLines> {
        LINES.with_borrow_mut(|kept| match kept {
            Some(lines) if lines.is(self.number, unix_secs) => Rc::clone(lines),
            _ => Rc::clone(kept.insert(Rc::new(self.new_lines(unix_secs)))),
        })
    }

    /// Returns whether responses that came by https ask clients to stay with it.
    #[inline]
    pub fn has_hsts(&self) -> bool {
        !self.hsts_line.is_empty()
    }

    /// Returns the fields of a response that came without https: it must not ask for that (RFC 6797
    /// §7.2).
    #[cold]
    pub fn plain_response_lines(&self, unix_secs: u64) -> Rc<ResponseLines> {
        Rc::new(self.lines_with("", self.plain_number, unix_secs))
    }

    #[cold]
    fn new_lines(&self, unix_secs: u64) -> ResponseLines {
        self.lines_with(&self.hsts_line, self.number, unix_secs)
    }

    fn lines_with(&self, more: &str, number: u32, unix_secs: u64) -> ResponseLines {
        let text = [&*self.shared.lines(), more.as_bytes()].concat();
        let mut fixed = Fields::new();
        for line in text.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            if let Ok(name) = std::str::from_utf8(&line[..colon]) {
                fixed.add_trusted(name, line[colon + 1..].trim_ascii());
            }
        }
        ResponseLines::new(number, fixed, unix_secs, imf_fixdate(unix_secs))
    }

    fn new_prefix(&self, unix_secs: u64, more: &str) -> ResponsePrefix {
        let mut lines = self.shared.lines().to_vec();
        lines.extend_from_slice(more.as_bytes());
        lines.extend_from_slice(b"Date: ");
        lines.extend_from_slice(&imf_fixdate(unix_secs));
        lines.extend_from_slice(b"\r\n");
        ResponsePrefix::new(unix_secs, &lines)
    }
}
