//! Pages for errors: the setting, and what their files may be.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;

use super::access::StatusRange;
use super::fields::list;
use super::tunable::{SettingGroup, Tunable};

/// The most bytes of a page.
const PAGE_BYTES_MAX: u64 = 1 << 20;

pub(super) const ERROR_PAGE: Tunable = Tunable {
    name: "error-page",
    group: SettingGroup::Output,
    default: "",
    doc: "Files with pages for errors, such as 404=404.html or 5xx=50x.html",
    field: list!(
        error_page_files,
        "a status with a file, such as 404=404.html or 5xx=50x.html",
        is_error_page
    ),
};

/// Returns the statuses of a page, and its file.
#[doc(hidden)]
pub fn error_page_of(text: &str) -> Option<(StatusRange, &str)> {
    let (statuses, file) = text.split_once('=')?;
    let (statuses, file) = (error_statuses(statuses.trim())?, file.trim());
    (!file.is_empty()).then_some((statuses, file))
}

/// Reads the statuses of a page: `404`, `4xx`, `5xx`.
pub(crate) fn error_statuses(text: &str) -> Option<StatusRange> {
    StatusRange::parse(text).filter(|range| range.first >= 400)
}

fn is_error_page(text: &str) -> bool {
    error_page_of(text).is_some()
}

/// Returns the content of a page.
///
/// # Errors
/// Why there is none, and the remedy.
#[doc(hidden)]
pub fn error_page_content(file: &Path) -> Result<Bytes, String> {
    let failed = |error: std::io::Error| format!("{error}; name a file that can be read");
    let meta = std::fs::metadata(file).map_err(failed)?;
    if !meta.is_file() {
        return Err("it is no file; name one".to_owned());
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    opened.take(PAGE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > PAGE_BYTES_MAX {
        return Err("expected at most 1 MiB, found more; make it shorter".to_owned());
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_statuses_of_errors_and_a_file() {
        let of = |text: &str| error_page_of(text).map(|(range, file)| format!("{range} {file}"));
        assert_eq!(of("404=404.html").as_deref(), Some("404 404.html"));
        assert_eq!(of("5xx = a=b.html").as_deref(), Some("5xx a=b.html"));
        for text in ["", "404", "404=", "=a", "200=a", "3xx=a", "600=a", "6xx=a", "x=a", "404.html"]
        {
            assert_eq!(of(text), None, "{text:?}");
        }
    }
}
