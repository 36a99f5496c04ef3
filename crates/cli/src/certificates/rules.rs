//! What is wrong with a certificate. Pure functions of what was read, and of the clock.

use std::path::PathBuf;

use gustnado::CertificateSummary;

use super::{CertificateWarning, NO_START};
use crate::figures::counted;

const DAY_S: i64 = 86_400;
/// A certificate that ends sooner is warned of, as at the start of the server.
const WARN_BEFORE_S: i64 = 14 * DAY_S;

/// A file of the settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CertificateFile {
    pub(super) path: PathBuf,
    /// The hosts that it is presented for.
    pub(super) hosts: Vec<String>,
    /// Whether it is presented for no other host.
    pub(super) is_of_site: bool,
}

/// Returns everything that is wrong with a chain.
///
/// - `chain`: at least the server's own certificate.
pub(super) fn problems(
    file: &CertificateFile,
    chain: &[CertificateSummary],
    now_s: i64,
) -> Vec<CertificateWarning> {
    let own = &chain[0];
    let mut found: Vec<CertificateWarning> = time(own, now_s).into_iter().collect();
    let is_unnamed = |host: &&String| !own.names.iter().any(|name| covers(name, host));
    found.extend(file.hosts.iter().filter(is_unnamed).map(|host| CertificateWarning {
        found: format!("it has no name for the host {host}"),
        change: "get one for all hosts of the site".to_owned(),
        otherwise: "clients that ask for that host refuse it",
    }));
    if file.is_of_site {
        let is_no_host = |name: &&String| !file.hosts.iter().any(|host| overlap(name, host));
        found.extend(own.names.iter().filter(is_no_host).map(|name| CertificateWarning {
            found: format!("no host of its site has its name {name}"),
            change: "add that to the site's `hosts`, or leave it out of the certificate".to_owned(),
            otherwise: "it is not presented to clients that ask for that name",
        }));
    }
    for (at, certificate) in chain.iter().enumerate() {
        found.extend(strength(at + 1, certificate));
    }
    found
}

fn time(own: &CertificateSummary, now_s: i64) -> Option<CertificateWarning> {
    if now_s < own.not_before_s {
        return Some(CertificateWarning {
            found: format!("it is valid from {} on, and the clock is before that", own.from),
            change: "`date -u` shows the clock; `gustnado doctor` says whether it is right"
                .to_owned(),
            otherwise: NO_START,
        });
    }
    let renew = "renew it: the server reads the new file by itself".to_owned();
    match own.not_after_s - now_s {
        left if left < 0 => Some(CertificateWarning {
            found: format!("it was valid until {}", own.until),
            change: renew,
            otherwise: NO_START,
        }),
        left if left < WARN_BEFORE_S => Some(CertificateWarning {
            found: format!("it ends in {}", counted(days(left).unsigned_abs(), "day")),
            change: renew,
            otherwise: "clients refuse it from then on",
        }),
        _ => None,
    }
}

/// Returns whole days.
pub(super) fn days(seconds: i64) -> i64 {
    seconds / DAY_S
}

/// Returns what is weak about a certificate of the chain.
///
/// - `number`: its place, from 1.
fn strength(number: usize, certificate: &CertificateSummary) -> Vec<CertificateWarning> {
    let mut found = Vec::new();
    let new_one = "have it issued again".to_owned();
    if certificate.has_weak_key {
        found.push(CertificateWarning {
            found: format!("certificate {number} has a weak key, {}", certificate.key),
            change: format!("{new_one}, for an ECDSA key or RSA of 2048 bits"),
            otherwise: "clients refuse it",
        });
    }
    if certificate.has_sha1_signature {
        found.push(CertificateWarning {
            found: format!("certificate {number} is signed over SHA-1"),
            change: new_one,
            otherwise: "clients refuse it",
        });
    }
    found
}

/// Returns whether a certificate's name is good for a host (RFC 9525 §6.3). `*.a.test` is good for
/// one label before `a.test`; a site with such a host wants the same.
fn covers(name: &str, host: &str) -> bool {
    let below = || {
        let (label, rest) = host.split_once('.')?;
        Some(!label.is_empty() && name.strip_prefix("*.")? == rest)
    };
    name == host || below().unwrap_or(false)
}

/// Returns whether clients that ask for a name get to a host.
fn overlap(name: &str, host: &str) -> bool {
    let is_below = host.strip_prefix('*').is_some_and(|end| name.ends_with(end));
    covers(name, host) || is_below
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn certificate(names: &[&str]) -> CertificateSummary {
        CertificateSummary {
            subject: "CN=a.test".to_owned(),
            issuer: "CN=authority".to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            from: "2026-01-01T00:00:00Z".to_owned(),
            until: "2028-01-01T00:00:00Z".to_owned(),
            not_before_s: NOW_S - 1,
            not_after_s: NOW_S + 60 * DAY_S,
            key: "ECDSA P-256".to_owned(),
            has_weak_key: false,
            has_sha1_signature: false,
        }
    }

    fn told(hosts: &[&str], is_of_site: bool, chain: &[CertificateSummary]) -> Vec<String> {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let file = CertificateFile { path: "a.pem".into(), hosts, is_of_site };
        problems(&file, chain, NOW_S).into_iter().map(|warning| warning.found).collect()
    }

    #[test]
    fn a_good_certificate_has_nothing() {
        let own = certificate(&["a.test", "*.a.test"]);
        assert_eq!(told(&["a.test", "x.a.test"], true, &[own]), [""; 0]);
        let own = certificate(&["anything.test"]);
        assert_eq!(told(&[], false, &[own]), [""; 0], "it is for all hosts");
    }

    #[test]
    fn time_is_told_before_it_is_over() {
        let with = |not_before_s, not_after_s| {
            let own = certificate(&[]);
            told(&[], false, &[CertificateSummary { not_before_s, not_after_s, ..own }])
        };
        let (past, end) = (NOW_S - 1, NOW_S + WARN_BEFORE_S);
        assert_eq!(with(past, end), [""; 0]);
        assert_eq!(with(past, end - 1), ["it ends in 13 days"]);
        assert_eq!(with(past, NOW_S + DAY_S), ["it ends in 1 day"]);
        assert_eq!(with(past, NOW_S - 1), ["it was valid until 2028-01-01T00:00:00Z"]);
        let early = "it is valid from 2026-01-01T00:00:00Z on, and the clock is before that";
        assert_eq!(with(NOW_S + 1, end), [early]);
    }

    #[test]
    fn names_and_hosts_have_to_fit() {
        let own = certificate(&["a.test", "*.b.test"]);
        assert_eq!(
            told(&["a.test", "x.y.b.test"], true, &[own]),
            ["it has no name for the host x.y.b.test", "no host of its site has its name *.b.test"]
        );
        let own = certificate(&["x.b.test"]);
        assert_eq!(
            told(&["*.b.test"], true, std::slice::from_ref(&own)),
            ["it has no name for the host *.b.test"],
            "but x.b.test is one of its hosts"
        );
        assert_eq!(told(&["c.test"], false, &[own]), ["it has no name for the host c.test"]);
    }

    #[test]
    fn every_certificate_of_the_chain_has_to_be_strong() {
        let own = CertificateSummary { has_sha1_signature: true, ..certificate(&[]) };
        let key = "RSA of 1024 bits".to_owned();
        let issuer = CertificateSummary { key, has_weak_key: true, ..certificate(&[]) };
        assert_eq!(
            told(&[], false, &[own, issuer]),
            [
                "certificate 1 is signed over SHA-1",
                "certificate 2 has a weak key, RSA of 1024 bits"
            ]
        );
    }
}
