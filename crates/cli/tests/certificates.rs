//! `gustnado check` and `gustnado doctor`: certificates that the settings name.

mod gustnado;

use std::fs;
use std::path::{Path, PathBuf};

use gustnado::{command, ended};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

/// Writes a certificate with its key into one file.
fn write(folder: &Path, file: &str, names: &[&str], from_year: i32, until_year: i32) -> PathBuf {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.not_before = date_time_ymd(from_year, 1, 1);
    params.not_after = date_time_ymd(until_year, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let path = folder.join(file);
    fs::write(&path, pem + &key.serialize_pem()).expect("a file");
    path
}

const SITES: &str = "
root = \".\"
tls-cert = \"usual.pem\"

[[site]]
hosts = [\"plain.test\"]
root = \".\"

[[site]]
hosts = [\"shop.test\", \"www.shop.test\"]
root = \".\"

[site.tls]
cert = \"shop.pem\"
";

#[test]
fn check_shows_every_certificate_and_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "usual.pem", &["usual.test"], 2020, 2900);
    write(folder.path(), "shop.pem", &["shop.test", "old.test"], 2020, 2900);
    let file = folder.path().join("site.toml");
    fs::write(&file, SITES).expect("a file");
    let found = ended(&mut command(&["check", "--config", file.to_str().expect("UTF-8")]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let (_, certificates) = found.stdout.split_once("\nCertificates\n").expect("a part of its own");
    for expected in [
        "usual.pem\n    names   usual.test\n    hosts   plain.test\n    issuer  CN=rcgen",
        "shop.pem\n    names   shop.test, old.test\n    hosts   shop.test, www.shop.test\n",
        "    valid   2020-01-01T00:00:00Z to 2900-01-01T00:00:00Z, ",
        " days left\n    key     ECDSA P-256\n",
    ] {
        assert!(certificates.contains(expected), "{expected}: {found:?}");
    }
    for expected in [
        "usual.pem: it has no name for the host plain.test: clients that ask for that host refuse",
        "shop.pem: it has no name for the host www.shop.test: ",
        "shop.pem: no host of its site has its name old.test: ",
    ] {
        assert!(found.stderr.contains(expected), "{expected}: {found:?}");
    }
    assert_eq!(found.stderr.matches("warning: ").count(), 3, "{found:?}");
}

#[test]
fn check_shows_a_certificate_that_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let over = write(folder.path(), "over.pem", &["a.test"], 2000, 2001);
    let of_tomorrow = write(folder.path(), "tomorrow.pem", &["a.test"], 2899, 2900);
    let missing = folder.path().join("missing.pem");
    for (path, told, warned) in [
        (&over, "2001-01-01T00:00:00Z, over\n", "it was valid until 2001-01-01T00:00:00Z: "),
        (&of_tomorrow, " days left\n", "on, and the clock is before that: "),
        (&missing, "missing.pem: cannot be used, see below\n", "missing.pem: cannot be read: "),
    ] {
        let flags = ["check", "--tls-cert", path.to_str().expect("UTF-8")];
        let found = ended(&mut command(&flags));
        assert_eq!(found.code, Some(78), "{found:?}");
        assert!(found.stdout.contains(told) && found.stderr.contains(warned), "{found:?}");
    }
}

#[test]
fn without_certificates_there_is_no_such_part() {
    let found = ended(&mut command(&["check"]));
    assert!(!found.stdout.contains("\nCertificates\n"), "{found:?}");
}

#[test]
fn doctor_looks_at_certificates_and_at_the_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "usual.pem", &["plain.test"], 2020, 2900);
    write(folder.path(), "shop.pem", &["shop.test"], 2020, 2900);
    let file = folder.path().join("site.toml");
    fs::write(&file, SITES).expect("a file");
    let flags = ["doctor", "--config", file.to_str().expect("UTF-8")];
    let found = ended(&mut command(&flags));
    assert_eq!(found.code, Some(0), "{found:?}");
    let line = |start: &str, words: &str| {
        let mut lines = found.stdout.lines();
        assert!(lines.any(|line| line.starts_with(start) && line.contains(words)), "{found:?}");
    };
    line("ok      certificate", "usual.pem: plain.test; ");
    line("change  certificate", "shop.pem: it has no name for the host www.shop.test");
    line("ok      time", "Z: no file to compare it with is younger");
    let over = write(folder.path(), "over.pem", &["a.test"], 2000, 2001);
    let found = ended(&mut command(&["doctor", "--tls-cert", over.to_str().expect("UTF-8")]));
    assert!(found.stdout.contains("\nstops   certificate"), "{found:?}");
    assert!(
        found.stdout.ends_with("No server starts with a certificate that is marked `stops`.\n"),
        "{found:?}"
    );
}
