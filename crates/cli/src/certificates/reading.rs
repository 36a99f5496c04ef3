//! Finds the files of certificates in the settings, and reads them.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use gustnado::CertificateSummary;
use gustnado::config::Config;
use gustnado::site::SiteFile;

use super::SeenCertificate;
use super::rules::{CertificateFile, days, problems};
use crate::figures::counted;

/// Reads all certificates that the settings name.
///
/// - `site`: the configuration file, for the certificates of its sites.
pub(crate) fn seen(config: &Config, site: Option<&SiteFile>) -> Vec<SeenCertificate> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let sites: Vec<_> = site.into_iter().flat_map(SiteFile::certificates).collect();
    let usual = config.tls_cert.as_deref();
    files(usual, &sites).iter().map(|file| read(file, now_s)).collect()
}

/// - `usual`: the setting `tls-cert`.
/// - `sites`: the hosts of each site, and its own certificate.
fn files(usual: Option<&Path>, sites: &[(&[String], Option<&Path>)]) -> Vec<CertificateFile> {
    let lower = |host: &String| host.to_ascii_lowercase();
    let others = sites.iter().filter(|(_, own)| own.is_none());
    let others = others.flat_map(|(hosts, _)| *hosts).map(lower).collect();
    let usual = usual.map(|path| CertificateFile {
        path: path.to_owned(),
        hosts: others,
        is_of_site: false,
    });
    let own = sites.iter().filter_map(|(hosts, own)| {
        let hosts = hosts.iter().map(lower).collect();
        Some(CertificateFile { path: (*own)?.to_owned(), hosts, is_of_site: true })
    });
    usual.into_iter().chain(own).collect()
}

fn read(file: &CertificateFile, now_s: i64) -> SeenCertificate {
    let path = file.path.display().to_string();
    match CertificateSummary::read_chain(&file.path) {
        Ok(chain) => seen_chain(file, &chain, now_s),
        Err(error) => SeenCertificate {
            file: path,
            summary: Err(error.to_string()),
            details: Vec::new(),
            warnings: Vec::new(),
        },
    }
}

fn seen_chain(file: &CertificateFile, chain: &[CertificateSummary], now_s: i64) -> SeenCertificate {
    let path = file.path.display().to_string();
    let Some(own) = chain.first() else { unreachable!("a file without a certificate is an error") };
    let names = if own.names.is_empty() { "no name".to_owned() } else { own.names.join(", ") };
    let left = match own.not_after_s - now_s {
        left if left < 0 => "over".to_owned(),
        left => format!("{} left", counted(days(left).unsigned_abs(), "day")),
    };
    let mut details = vec![
        ("names", names.clone()),
        ("issuer", own.issuer.clone()),
        ("valid", format!("{} to {}, {left}", own.from, own.until)),
        ("key", own.key.clone()),
    ];
    if !file.hosts.is_empty() {
        details.insert(1, ("hosts", file.hosts.join(", ")));
    }
    let summary = Ok(format!("{names}; {left}; {}", own.key));
    let warnings = problems(file, chain, now_s);
    SeenCertificate { file: path, summary, details, warnings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_certificate_is_that_of_sites_without_one() {
        let (a, b) = (vec!["A.test".to_owned()], vec!["b.test".to_owned()]);
        let own = Path::new("b.pem");
        let found = files(Some(Path::new("usual.pem")), &[(&a, None), (&b, Some(own))]);
        let file = |path: &str, host: &str, is_of_site| CertificateFile {
            path: path.into(),
            hosts: vec![host.to_owned()],
            is_of_site,
        };
        assert_eq!(found, [file("usual.pem", "a.test", false), file("b.pem", "b.test", true)]);
        assert_eq!(files(None, &[(&a, None)]), []);
    }
}
