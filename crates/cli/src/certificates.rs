//! The certificates that the settings name: what each holds, and what is wrong with it.
//!
//! [`seen`] reads the files. A build without TLS sees none.

#[cfg(feature = "tls-any")]
mod reading;
#[cfg(feature = "tls-any")]
mod rules;

#[cfg(feature = "tls-any")]
pub(crate) use reading::seen;

use std::fmt::Write;

use crate::output::Paint;

/// A file of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenCertificate {
    /// Its path.
    pub(crate) file: String,
    /// In half a sentence: names, time that is left, kind of key; or why it cannot be read.
    pub(crate) summary: Result<String, String>,
    /// The same in full: a name and a value each.
    pub(crate) details: Vec<(&'static str, String)>,
    pub(crate) warnings: Vec<CertificateWarning>,
}

/// What happens with the worst ones.
pub(crate) const NO_START: &str = "the server does not start";

/// What is wrong with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateWarning {
    /// What it is.
    pub(crate) found: String,
    /// What to do.
    pub(crate) change: String,
    /// What happens if nothing is done.
    pub(crate) otherwise: &'static str,
}

/// No file is read in a build without TLS.
#[cfg(not(feature = "tls-any"))]
pub(crate) fn seen(
    _: &gustnado::config::Config,
    _: Option<&gustnado::site::SiteFile>,
) -> Vec<SeenCertificate> {
    Vec::new()
}

/// Formats all of them for `gustnado check`.
pub(crate) fn text(seen: &[SeenCertificate], paint: Paint) -> String {
    if seen.is_empty() {
        return String::new();
    }
    let mut page = format!("\n{}\n", paint.bold("Certificates"));
    for SeenCertificate { file, summary, details, .. } in seen {
        // Why it cannot be read is the error that ends the page.
        let unread = if summary.is_err() { ": cannot be used, see below" } else { "" };
        // Writing to a string cannot fail.
        _ = writeln!(page, "  {file}{unread}");
        for (name, value) in details {
            _ = writeln!(page, "    {}  {value}", paint.dim(&format!("{name:6}")));
        }
    }
    page
}

/// Returns a line for each thing that is wrong.
pub(crate) fn warnings(seen: &[SeenCertificate]) -> impl Iterator<Item = String> {
    seen.iter().flat_map(|SeenCertificate { file, warnings, .. }| {
        let line = move |warning: &CertificateWarning| {
            let CertificateWarning { found, change, otherwise } = warning;
            format!("{file}: {found}: {otherwise}; {change}")
        };
        warnings.iter().map(line)
    })
}
