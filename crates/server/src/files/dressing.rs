//! What the answers of a folder have besides: field lines and pages that a site's owner said.

use bytes::Bytes;
use gustnado_config::Headers;
use gustnado_http::response_writer::{Opening, ResponseWriter, WrittenHead, has_field};
use gustnado_http::status::Status;

use crate::status_page::{Turn, status_page, status_page_saying};

/// The field by which browsers are told to believe the content type. Every file has it.
const NOSNIFF: &str = "X-Content-Type-Options";

/// What the page says for a folder without an index.
const NO_INDEX: &str = "This folder has no index.html. The server lists what is in a folder if it \
    is started with --listing.";

/// Lines and pages of one folder.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Dressing {
    /// Ready field lines for every answer.
    pub(super) lines: Box<[u8]>,
    /// Whether somebody says `X-Content-Type-Options` already.
    pub(super) says_nosniff: bool,
    pages: Vec<StaticPage>,
}

/// A page for one status of 400 and above, or for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticPage {
    /// `None` is the page for every status that has none of its own.
    pub(crate) status: Option<Status>,
    pub(crate) content_type: String,
    pub(crate) content: Bytes,
}

impl Dressing {
    /// - `common`: ready field lines that every answer of the server has anyway.
    pub(crate) fn new(fields: &Headers, pages: &[StaticPage], common: &[u8]) -> Self {
        let lines = fields.lines();
        let says_nosniff = has_field(&lines, NOSNIFF) || has_field(common, NOSNIFF);
        Self { lines: lines.into(), says_nosniff, pages: pages.to_vec() }
    }

    /// Writes the answer for a status: the page for it, or the plain one.
    pub(super) fn status_page(
        &self,
        out: &mut Vec<u8>,
        status: Status,
        turn: &Turn<'_>,
        head_only: bool,
        extra: &[(&str, &[u8])],
    ) -> WrittenHead {
        let with_lines;
        let turn = if self.lines.is_empty() {
            turn
        } else {
            with_lines = self.common_with(turn);
            &Turn { common: &with_lines, ..*turn }
        };
        let of = |wanted| self.pages.iter().rev().find(|page| page.status == wanted);
        let Some(page) = of(Some(status)).or_else(|| of(None)).filter(|_| status.is_error()) else {
            return status_page(out, status, turn, head_only, extra);
        };
        let mut answer = ResponseWriter::start(out, status, turn.common, turn.persist);
        let kind: (&str, &[u8]) = ("Content-Type", page.content_type.as_bytes());
        for (name, value) in extra.iter().chain([&kind]) {
            let outcome = answer.field(name, value);
            debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
        }
        answer.content_length(page.content.len() as u64);
        let written = answer.finish();
        if !head_only {
            out.extend_from_slice(&page.content);
        }
        written
    }

    /// Writes the answer for a folder without an index that is not listed: the owner's page for
    /// 404, or one that says what was looked for.
    pub(super) fn no_index(
        &self,
        out: &mut Vec<u8>,
        turn: &Turn<'_>,
        head_only: bool,
    ) -> WrittenHead {
        let status = Status::NOT_FOUND;
        let has_own = |page: &StaticPage| page.status.is_none_or(|own| own == status);
        if self.pages.iter().any(has_own) {
            return self.status_page(out, status, turn, head_only, &[]);
        }
        let common = self.common_with(turn);
        let turn = Turn { common: &common, ..*turn };
        status_page_saying(NO_INDEX, out, (status, head_only), &turn, &[])
    }

    /// The lines of every answer of the server, and those of this folder.
    fn common_with(&self, turn: &Turn<'_>) -> Opening {
        Opening::new(&[turn.common.lines(), &self.lines].concat())
    }
}
