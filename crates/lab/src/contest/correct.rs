//! The correct content of every page, and the length of its encoded forms: what the responses of
//! all contenders are compared with.

use std::collections::BTreeMap;

use super::file::{ContestSpec, PageSpec, WantedContent};
use super::folders;
use super::probe::{self, ProbeResponse};

/// What is known of correct responses.
#[derive(Debug)]
pub(super) struct CorrectContent {
    /// The correct content by page, as far as it is known.
    content: BTreeMap<Option<PageSpec>, Vec<u8>>,
    /// Lengths of the first correct responses in a content coding.
    encoded: BTreeMap<WantedContent, usize>,
}

impl CorrectContent {
    /// Begins with the pages that the contest makes.
    ///
    /// # Errors
    /// A page is a file that cannot be read.
    pub(super) fn of(contest: &ContestSpec) -> std::io::Result<Self> {
        let mut known = BTreeMap::new();
        for page in folders::pages(contest) {
            if let Some(bytes) = folders::content(contest, page.as_ref())? {
                known.insert(page, bytes);
            }
        }
        Ok(Self { content: known, encoded: BTreeMap::new() })
    }

    /// Bytes of a response as it is sent; 0 if they are not known yet.
    pub(super) fn body_bytes(&self, wanted: &WantedContent) -> u64 {
        let encoded = self.encoded.get(wanted).copied();
        let bytes = encoded.or_else(|| self.content.get(&wanted.page).map(Vec::len));
        bytes.unwrap_or(0) as u64
    }

    /// Compares a response. If nothing is known to compare it with, it is the measure of all
    /// others.
    ///
    /// # Errors
    /// A sentence with the difference.
    pub(super) fn compare(
        &mut self,
        contest: &ContestSpec,
        wanted: &WantedContent,
        found: &ProbeResponse,
    ) -> Result<(), String> {
        let page = &wanted.page;
        let accepts = |status| contest.accepts(page.as_ref(), status);
        // Before the coding: a page for an error has none.
        probe::check_status(found, accepts)?;
        let decoded = probe::decoded(found, wanted.coding)?;
        if let Some(expected) = self.content.get(page) {
            probe::compare_content(&decoded, expected)?;
        }
        if wanted.coding.is_some() {
            let first = self.encoded.get(wanted).copied().unwrap_or(found.body.len());
            probe::compare_lengths(found.body.len(), first, contest.size_tolerance)?;
            self.encoded.insert(wanted.clone(), first);
        }
        self.content.entry(page.clone()).or_insert(decoded);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gustnado_compress::{Level, compress};
    use gustnado_http::content_coding::ContentCoding;

    use super::*;
    use crate::contest::file;

    fn contest() -> ContestSpec {
        let text = "[page]\npath = \"x\"\n[[contender]]\npreset = \"gustnado\"\n[[scenario]]\n\
                    name = \"one\"\ncoding = \"gzip\"\n";
        file::parse(Path::new("c.toml"), text).expect("it is right")
    }

    fn gzip(level: u8, content: &[u8]) -> ProbeResponse {
        let level = Level { gzip: level, ..Level::default() };
        let body = compress(ContentCoding::Gzip, level, content).expect("it is encoded");
        ProbeResponse { status: 200, coding: "gzip".to_owned(), body }
    }

    #[test]
    fn encoded_responses_have_one_content_and_about_one_length() {
        let contest = contest();
        let wanted = contest.scenarios[0].representation();
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|at| (at * at / 7).to_string().into_bytes()).collect();
        let mut correct = CorrectContent::of(&contest).expect("there is no file");
        let first = gzip(6, &text);
        assert_eq!(correct.compare(&contest, &wanted, &first), Ok(()));
        assert_eq!(correct.body_bytes(&wanted), first.body.len() as u64);
        assert_eq!(correct.compare(&contest, &wanted, &gzip(7, &text)), Ok(()));
        let quick = correct.compare(&contest, &wanted, &gzip(1, &text)).expect_err("longer");
        assert!(quick.contains("that size_tolerance allows"), "{quick}");
        let mut other = text.clone();
        other[9_000] ^= 1;
        let other = correct.compare(&contest, &wanted, &gzip(6, &other)).expect_err("other bytes");
        assert_eq!(other, "its bytes differ from byte 9000 on");
        let plain = ProbeResponse { status: 200, coding: String::new(), body: text.clone() };
        let found = correct.compare(&contest, &wanted, &plain).expect_err("not encoded");
        assert_eq!(found, "expected Content-Encoding gzip, found none");
        let missing = ProbeResponse { status: 404, ..plain.clone() };
        let found = correct.compare(&contest, &wanted, &missing).expect_err("not found");
        assert_eq!(found, "expected status 200, found 404");
        // The same page without a coding is compared with the same content.
        let identity = WantedContent { coding: None, ..wanted };
        assert_eq!(correct.compare(&contest, &identity, &plain), Ok(()));
        assert_eq!(correct.body_bytes(&identity), text.len() as u64);
    }
}
