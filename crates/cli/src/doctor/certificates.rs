//! Certificates that the settings name: all that is wrong with each.

use super::facts::Facts;
use super::finding::Finding;
use crate::certificates::{CertificateWarning, NO_START, SeenCertificate};

const SUBJECT: &str = "certificate";

pub(super) fn all(facts: &Facts) -> impl Iterator<Item = Finding> {
    facts.certificates.iter().flat_map(|seen| {
        let SeenCertificate { file, summary, warnings, .. } = seen;
        match summary {
            Err(error) => vec![
                Finding::stops(SUBJECT, file.clone(), "cannot be used")
                    .by(format!("# {error}"))
                    .or_else(NO_START),
            ],
            Ok(summary) if warnings.is_empty() => {
                vec![Finding::good(SUBJECT, file.clone(), summary)]
            }
            Ok(_) => warnings.iter().map(|warning| wrong(file, warning)).collect(),
        }
    })
}

fn wrong(file: &str, warning: &CertificateWarning) -> Finding {
    let CertificateWarning { found, change, otherwise } = warning;
    let finding = if *otherwise == NO_START { Finding::stops } else { Finding::change };
    finding(SUBJECT, file.to_owned(), found).by(format!("# {change}")).or_else(otherwise)
}
