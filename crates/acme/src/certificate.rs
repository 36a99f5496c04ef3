//! Certificates: what the folder has, and what is made for an order.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use gustnado_tls::{certificate_names, certificates_in};
use instant_acme::CertificateIdentifier;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, PublicKeyData,
};
use x509_cert::Certificate;
use x509_cert::der::Encode;
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use crate::error::AcmeError;

/// The issuer of a certificate that stands in until there is one of an authority.
const PLACEHOLDER: &str = "Gustnado: no certificate of an authority yet";

/// A certificate of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldCertificate {
    /// In hexadecimal digits.
    pub(crate) serial: String,
    pub(crate) names: Vec<String>,
    pub(crate) not_before_s: i64,
    pub(crate) not_after_s: i64,
    /// It is one that the server has signed itself.
    pub(crate) is_placeholder: bool,
    /// By which the authority knows it (RFC 9773 §4.1).
    pub(crate) id: Option<CertificateIdentifier<'static>>,
}

impl HeldCertificate {
    /// Reads the certificate of a file, and nothing of its key. `None`: there is none.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    /// Reads the first certificate of a text in PEM.
    pub(crate) fn parse(pem: &str) -> Option<Self> {
        Some(Self::of(&certificates_in(pem).next()??))
    }

    fn of(certificate: &Certificate) -> Self {
        let tbs = &certificate.tbs_certificate;
        let seconds = |time: &x509_cert::time::Time| {
            i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
        };
        let serial = tbs.serial_number.as_bytes().iter().map(|byte| format!("{byte:02x}"));
        Self {
            serial: serial.collect(),
            names: certificate_names(certificate),
            not_before_s: seconds(&tbs.validity.not_before),
            not_after_s: seconds(&tbs.validity.not_after),
            is_placeholder: tbs.issuer.to_string().contains(PLACEHOLDER),
            id: id(certificate),
        }
    }

    /// Returns whether it is for all of these names, and for no other.
    pub(crate) fn has(&self, names: &[String]) -> bool {
        let all_of = |some: &[String], others: &[String]| {
            some.iter().all(|name| others.iter().any(|other| is_same(name, other)))
        };
        all_of(names, &self.names) && all_of(&self.names, names)
    }
}

/// Addresses have several spellings.
fn is_same(one: &str, other: &str) -> bool {
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}

fn id(certificate: &Certificate) -> Option<CertificateIdentifier<'static>> {
    let tbs = &certificate.tbs_certificate;
    let (_, issuer) = tbs.get::<AuthorityKeyIdentifier>().ok()??;
    let key = issuer.key_identifier?;
    // Behind its tag and its length, which is below 128: with the zero of a positive number.
    let serial = tbs.serial_number.to_der().ok()?;
    let id = CertificateIdentifier::new(key.as_bytes().into(), serial.get(2..)?.into());
    Some(id.into_owned())
}

/// Makes a certificate that stands in until there is one of an authority, with its key, in PEM.
pub(crate) fn placeholder(names: &[String]) -> Result<String, AcmeError> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, PLACEHOLDER);
    self_signed(&params)
}

/// Makes a key, and a request for a certificate of it in DER.
pub(crate) fn request(names: &[String]) -> Result<(KeyPair, Vec<u8>), AcmeError> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate()?;
    let request = params.serialize_request(&key)?.der().to_vec();
    Ok((key, request))
}

/// Makes the certificate that proves to an authority that a name is the server's (RFC 8737 §3),
/// with its key, in PEM.
pub(crate) fn proof(name: &str, digest: &[u8]) -> Result<String, AcmeError> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    self_signed(&params)
}

fn self_signed(params: &CertificateParams) -> Result<String, AcmeError> {
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(key_pem(&key)? + &pem("CERTIFICATE", certificate.der())?)
}

fn key_pem(key: &KeyPair) -> Result<String, AcmeError> {
    pem("PRIVATE KEY", key.serialized_der())
}

fn pem(label: &'static str, der: &[u8]) -> Result<String, AcmeError> {
    let encoded = encode_string(label, LineEnding::LF, der);
    encoded.map_err(|error| AcmeError::Unusable(error.to_string()))
}

/// Joins a key with what an authority has issued for it, once that fits. Returns both in PEM.
///
/// - `chain`: in PEM.
pub(crate) fn joined(key: &KeyPair, chain: &str, names: &[String]) -> Result<String, AcmeError> {
    let unusable = |why: &str| AcmeError::Unusable(why.to_owned());
    let all: Vec<Option<Certificate>> = certificates_in(chain).collect();
    let Some(Some(first)) = all.first() else { return Err(unusable("no certificate")) };
    let held = HeldCertificate::of(first);
    if !held.has(names) {
        return Err(unusable(&format!("a certificate for {}", held.names.join(", "))));
    }
    if all.iter().any(Option::is_none) {
        return Err(unusable("a malformed certificate"));
    }
    let public = &first.tbs_certificate.subject_public_key_info.subject_public_key;
    if key.der_bytes() != public.raw_bytes() {
        return Err(unusable("a certificate of another key"));
    }
    Ok(format!("{}{}\n", key_pem(key)?, chain.trim_end()))
}

/// Returns the name by which an authority asks for an IP address (RFC 8738 §6).
pub(crate) fn asked_name(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Err(_) => name.to_owned(),
        Ok(IpAddr::V4(v4)) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(v6)) => {
            let digits = v6.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            let digits: Vec<String> = digits.map(|digit| format!("{digit:x}")).collect();
            format!("{}.ip6.arpa", digits.join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_placeholder_is_known_as_one_and_has_its_names() {
        let all = names(&["a.test", "*.b.test", "192.0.2.1", "2001:db8::1"]);
        let held = HeldCertificate::parse(&placeholder(&all).expect("it is made")).expect("a PEM");
        assert!(held.is_placeholder && held.has(&all), "{held:?}");
        assert!(!held.has(&names(&["a.test"])), "there are more");
        assert!(!held.has(&names(&["a.test", "*.b.test", "192.0.2.1", "2001:db8::1", "c.test"])));
    }

    #[test]
    fn a_key_is_joined_with_its_own_certificate_alone() {
        let all = names(&["a.test"]);
        let made = || KeyPair::generate().expect("a key");
        let (key, other) = (made(), made());
        let params = CertificateParams::new(all.clone()).expect("a name");
        let chain = params.self_signed(&key).expect("a certificate");
        let chain = pem("CERTIFICATE", chain.der()).expect("PEM");
        let joined_pem = joined(&key, &chain, &all).expect("they fit");
        assert!(HeldCertificate::parse(&joined_pem).is_some());
        assert!(joined(&other, &chain, &all).is_err(), "of another key");
        assert!(joined(&key, &chain, &names(&["b.test"])).is_err(), "of another name");
        assert!(joined(&key, "nothing", &all).is_err());
        let broken =
            format!("{chain}-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
        assert!(joined(&key, &broken, &all).is_err(), "malformed behind it");
    }

    #[test]
    fn addresses_are_asked_for_by_their_names_in_reverse() {
        assert_eq!(asked_name("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        let v6 = asked_name("2001:db8::1");
        assert!(v6.starts_with("1.0.0.0.") && v6.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"), "{v6}");
        assert_eq!(asked_name("a.test"), "a.test");
    }
}
