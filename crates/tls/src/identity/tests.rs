use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;

fn provider() -> CryptoProvider {
    crate::crypto::provider()
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("before the sun has gone")
}

/// A folder of its own, which goes with it.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("gustnado-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// A root, a certificate that it has issued, and that one's key, in PEM.
fn chain() -> (String, String, String) {
    let root_key = KeyPair::generate().expect("a key");
    let mut root = CertificateParams::new(Vec::<String>::new()).expect("no names");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(rcgen::DnType::CommonName, "the root");
    let root_pem = root.self_signed(&root_key).expect("a certificate").pem();
    let issuer = Issuer::new(root, root_key);
    let key = KeyPair::generate().expect("a key");
    let names = vec!["Example.org".to_owned(), "*.example.org".to_owned(), "127.0.0.1".to_owned()];
    let leaf = CertificateParams::new(names).expect("good names");
    let leaf_pem = leaf.signed_by(&key, &issuer).expect("a certificate").pem();
    (root_pem, leaf_pem, key.serialize_pem())
}

#[test]
fn a_chain_and_its_key_are_read_with_the_names_they_are_for() {
    let files = Files::new("read");
    let (root, leaf, key) = chain();
    let certificates = files.write("chain.pem", &format!("{leaf}{root}"));
    let key = files.write("key.pem", &key);
    let identity =
        SiteIdentity::read(&certificates, &key, &provider(), now_s()).expect("it is good");
    assert_eq!(identity.names, ["example.org", "*.example.org", "127.0.0.1"]);
    // Openssl's lines end with LF alone, and ours do.
    assert_eq!(*identity.pem, *leaf.replace("\r\n", "\n"), "its issuers are left out");
    assert_eq!(identity.ends_soon(now_s()), None);
    assert_eq!(identity.ends_soon(identity.not_after_s - 60), Some(60));
}

#[test]
fn what_cannot_be_used_is_named_with_its_file() {
    let files = Files::new("refused");
    let (root, leaf, key) = chain();
    let (_, _, other_key) = chain();
    let good = files.write("leaf.pem", &leaf);
    let good_key = files.write("key.pem", &key);
    let read = |certificates: &PathBuf, key: &PathBuf, now_s| {
        SiteIdentity::read(certificates, key, &provider(), now_s)
            .expect_err("it is bad")
            .to_string()
    };
    let now = now_s();
    let refused = |certificates: &PathBuf, key: &PathBuf, now_s, expected: &str| {
        let message = read(certificates, key, now_s);
        assert!(message.contains(expected), "{message}");
    };
    let missing = files.0.join("missing.pem");
    refused(&missing, &good_key, now, "missing.pem: cannot be read");
    refused(&files.write("empty.pem", ""), &good_key, now, "empty.pem: expected a certificate");
    refused(&good, &good, now, "leaf.pem: expected a private key");
    refused(&good, &files.write("other.pem", &other_key), now, "other.pem: the key is not that");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    refused(
        &good,
        &files.write("secret.pem", encrypted),
        now,
        "secret.pem: the private key is encr",
    );
    refused(
        &files.write("turned.pem", &format!("{root}{leaf}")),
        &good_key,
        now,
        "turned.pem: cert",
    );
    refused(&good, &good_key, 4_000_000_000_000, "leaf.pem: the certificate is valid from");
    let half = files.write("half.pem", &leaf[..leaf.len() / 2]);
    refused(&half, &good_key, now, "half.pem: expected PEM");
}
