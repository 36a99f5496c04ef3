//! Versions of TLS, and what is said of directives that are left out.

use super::*;

#[test]
fn the_lowest_version_of_tls_is_taken_over_and_what_else_is_left_out_of_it_is_said() {
    let version = |protocols: &str| {
        let import = imported(&format!(
            "user www-data; http {{ access_log /var/log/a.log; ssl_protocols {protocols};
                 ssl_ciphers HIGH; server {{ listen 80; root /srv; access_log off; }} }}"
        ));
        let reasons = reasons(&import);
        for part in [":1: user www-data: ", ":1: access_log /var/log/a.log: ", ":2: ssl_ciphers "] {
            assert!(reasons.contains(part), "{part}: {reasons}");
        }
        assert_eq!(reasons.contains("ssl_protocols"), protocols == "TLSv1", "{reasons}");
        let file = parsed(&import);
        assert_eq!(served(&file.main, "/a"), "/srv/a");
        let mut settings = file.settings.settings.iter();
        let of_tls = settings.find(|one| one.name == "tls-version-min");
        of_tls.map(|one| one.value.to_string_lossy().into_owned())
    };
    assert_eq!(version("TLSv1.2 TLSv1.3").as_deref(), Some("1.2"));
    assert_eq!(version("TLSv1 TLSv1.1 TLSv1.2").as_deref(), Some("1.2"));
    assert_eq!(version("TLSv1.3").as_deref(), Some("1.3"));
    assert_eq!(version("TLSv1"), None);
}

#[test]
fn versions_of_tls_that_one_server_asks_for_are_not_those_of_all() {
    let reasons_of = |of_all: &str, of_one: &str| {
        let import = imported(&format!(
            "http {{ {of_all} server {{ listen 80; root /srv; {of_one} }}
                 server {{ listen 80; server_name b; root /srv; }} }}"
        ));
        assert!(!import.text.contains("1.3") || of_all.contains("1.3"), "{}", import.text);
        reasons(&import)
    };
    let (new, both) = ("ssl_protocols TLSv1.3;", "ssl_protocols TLSv1.2 TLSv1.3;");
    let (of_one, of_all) = ("tls-version-min is 1.2 for", "tls-version-min is 1.3 for");
    assert!(reasons_of("", new).contains(of_one) && reasons_of(both, new).contains(of_one));
    assert!(reasons_of(new, both).contains(of_all));
    assert!(!reasons_of("", both).contains("tls-") && !reasons_of(new, new).contains("tls-"));
}
