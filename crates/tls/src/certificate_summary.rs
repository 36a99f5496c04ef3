//! What a file of certificates holds, for people: names, issuer, time, key and signature.
//!
//! Nothing is refused here: what cannot be served with is told, too.

use std::path::Path;

use x509_cert::Certificate;
use x509_cert::der::asn1::UintRef;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Reader, SliceReader};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::identity::{IdentityError, certificate_names, parse_chain, read_chain, seconds};

/// RSA keys of fewer bits are weak: no public authority has issued any since 2014.
const RSA_BITS_MIN: usize = 2_048;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// Kinds of keys, and curves of [`ELLIPTIC`] ones.
const NAMES: [(ObjectIdentifier, &str); 4] = [
    (ObjectIdentifier::new_unwrap("1.3.101.112"), "Ed25519"),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"), "ECDSA P-256"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.34"), "ECDSA P-384"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), "ECDSA P-521"),
];
/// Signatures over SHA-1, by RSA and by ECDSA.
const SHA1: [ObjectIdentifier; 2] = [
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"),
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.1"),
];

/// One certificate of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// Its subject (RFC 4514).
    pub subject: String,
    /// Its issuer (RFC 4514).
    pub issuer: String,
    /// The host names and IP addresses that it is for.
    pub names: Vec<String>,
    /// Its first second, as text: `2026-11-22T00:00:00Z`.
    pub from: String,
    /// Its last second, as text.
    pub until: String,
    /// Its first second, in seconds since 1970.
    pub not_before_s: i64,
    /// Its last second, in seconds since 1970.
    pub not_after_s: i64,
    /// The kind of its key: `ECDSA P-256`, `RSA of 2048 bits`.
    pub key: String,
    /// Whether that is RSA of fewer than 2,048 bits.
    pub has_weak_key: bool,
    /// Whether its issuer has signed it over SHA-1. A root's signature proves nothing, and does not
    /// count.
    pub has_sha1_signature: bool,
}

impl CertificateSummary {
    /// Reads all certificates of a file, the server's own first.
    ///
    /// # Errors
    /// [`IdentityError`]: the file cannot be read, or holds no certificate that can be parsed.
    pub fn read_chain(path: &Path) -> Result<Vec<Self>, IdentityError> {
        let chain = parse_chain(path, &read_chain(path)?)?;
        Ok(chain.iter().map(Self::of).collect())
    }

    fn of(certificate: &Certificate) -> Self {
        let own = &certificate.tbs_certificate;
        let (from, until) = (&own.validity.not_before, &own.validity.not_after);
        let (key, has_weak_key) = key(&own.subject_public_key_info);
        let is_root = own.subject == own.issuer;
        Self {
            subject: own.subject.to_string(),
            issuer: own.issuer.to_string(),
            names: certificate_names(certificate),
            from: from.to_string(),
            until: until.to_string(),
            not_before_s: seconds(from),
            not_after_s: seconds(until),
            key,
            has_weak_key,
            has_sha1_signature: !is_root && SHA1.contains(&certificate.signature_algorithm.oid),
        }
    }
}

/// Returns the kind of a key, and whether it is weak.
fn key(info: &SubjectPublicKeyInfoOwned) -> (String, bool) {
    let algorithm = &info.algorithm;
    if algorithm.oid == RSA {
        let bits = rsa_bits(info.subject_public_key.raw_bytes());
        return match bits {
            Some(bits) => (format!("RSA of {bits} bits"), bits < RSA_BITS_MIN),
            None => ("RSA".to_owned(), false),
        };
    }
    let curve = || algorithm.parameters.as_ref()?.decode_as::<ObjectIdentifier>().ok();
    let oid = if algorithm.oid == ELLIPTIC { curve() } else { None }.unwrap_or(algorithm.oid);
    let known = NAMES.iter().find(|(known, _)| *known == oid);
    (known.map_or_else(|| format!("kind {oid}"), |(_, name)| (*name).to_owned()), false)
}

/// Returns the bits of the modulus of a key (RFC 8017 §A.1.1).
fn rsa_bits(key: &[u8]) -> Option<usize> {
    let modulus = |reader: &mut SliceReader<'_>| {
        reader.sequence(|numbers| {
            let modulus = UintRef::decode(numbers)?;
            UintRef::decode(numbers)?;
            let unused = modulus.as_bytes().first().map_or(0, |first| first.leading_zeros());
            Ok(modulus.as_bytes().len() * 8 - unused as usize)
        })
    };
    modulus(&mut SliceReader::new(key).ok()?).ok()
}

#[cfg(test)]
#[path = "certificate_summary/tests.rs"]
mod tests;
