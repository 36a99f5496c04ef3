use std::fs;
use std::path::PathBuf;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, date_time_ymd};

use super::*;

/// A certificate over SHA-1, by an authority with an RSA key of 1,024 bits. It was made by
/// `openssl x509 -req -sha1`.
fn old() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/certificate_summary/old.pem")
}

#[test]
fn a_weak_key_and_an_old_signature_are_told() {
    let chain = CertificateSummary::read_chain(&old()).expect("a chain");
    let [leaf, root] = &*chain else { panic!("two certificates: {chain:?}") };
    assert_eq!(leaf.subject, "CN=old.test,O=Example");
    assert_eq!(leaf.issuer, "CN=old authority");
    assert_eq!(leaf.names, ["old.test", "*.old.test", "10.0.0.1"]);
    assert_eq!((&*leaf.from, &*leaf.until), ("2026-11-25T17:46:02Z", "2081-08-28T17:46:02Z"));
    assert_eq!(leaf.not_after_s - leaf.not_before_s, 20_000 * 86_400);
    assert_eq!(
        (&*leaf.key, leaf.has_weak_key, leaf.has_sha1_signature),
        ("ECDSA P-384", false, true)
    );
    assert_eq!((&*root.key, root.has_weak_key), ("RSA of 1024 bits", true));
    assert!(!root.has_sha1_signature);
}

#[test]
fn a_certificate_that_cannot_be_served_with_is_told_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("future.pem");
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
    params.not_before = date_time_ymd(3000, 1, 1);
    fs::write(&path, params.self_signed(&key).expect("a certificate").pem()).expect("a file");
    let chain = CertificateSummary::read_chain(&path).expect("it need not be valid now");
    assert_eq!(
        (chain[0].from.as_str(), chain[0].key.as_str()),
        ("3000-01-01T00:00:00Z", "Ed25519")
    );
    assert!(CertificateSummary::read_chain(&folder.path().join("none.pem")).is_err());
}
