//! Where servers listen, and which of them are served together.

use super::*;

fn listen_of(import: &NginxImport) -> Vec<String> {
    parsed(import).over_defaults().config.listen
}

#[test]
fn what_is_for_https_alone_does_not_respond_in_clear() {
    let import = imported(
        "server { listen 80; server_name a.org; return 301 https://$host$request_uri; }
         server { listen 443 ssl; server_name a.org; ssl_certificate /c; root /a; }
         server { listen 80; server_name b.org; root /b; }",
    );
    assert_eq!(listen_of(&import), ["0.0.0.0:443 tls"], "{}", import.text);
    assert!(!import.text.contains("/b"), "{}", import.text);
    let reasons = reasons(&import);
    for part in [
        ":1: server: a redirect to https beside servers without it: left out",
        ":3: server: it listens elsewhere: import it into a file of its own",
    ] {
        assert!(reasons.contains(part), "{part}\n{reasons}");
    }
    let both = imported(
        "server { listen 80; listen 443 ssl; server_name a.org; ssl_certificate /c; root /a; }
         server { listen 443 ssl; server_name b.org; root /b; }",
    );
    assert_eq!(listen_of(&both), ["0.0.0.0:80 tls=false", "0.0.0.0:443 tls"], "{}", both.text);
    assert!(!both.text.contains("/b"), "{}", both.text);
}

#[test]
fn a_server_that_serves_nothing_in_clear_keeps_no_redirect_from_https() {
    let import = imported(
        "server { listen 80 default_server; listen 443 ssl default_server; ssl_certificate /c;
                  return 444; }
         server { listen 80; server_name a.org; return 301 https://$host$request_uri; }
         server { listen 443 ssl; server_name a.org; ssl_certificate /c; root /a; }",
    );
    let file = parsed(&import);
    assert!(file.over_defaults().config.https_redirect, "{}", import.text);
    assert_eq!(served(&file.main, "/x"), "403 403");
    assert_eq!(served(&file.sites[0], "/x"), "/a/x");
}

#[test]
fn the_default_listener_is_for_servers_without_one() {
    assert_eq!(listen_of(&imported("server { root /srv; }")), ["0.0.0.0:80"]);
    for listen in ["127.0.0.1:8000-8010", "127.0.0.1:8443 quic", "*:8000-8010", "127.0.0.1:99999"] {
        let import = imported(&format!("server {{ listen {listen}; root /srv; }}"));
        assert_eq!(import.text, CLOSED, "{listen}");
        let reasons = reasons(&import);
        assert!(reasons.contains("it listens nowhere that can be taken over"), "{reasons}");
        let text = format!("server {{ listen {listen}; root /a; }} server {{ root /b; }}");
        let import = imported(&text);
        assert_eq!(listen_of(&import), ["0.0.0.0:80"], "{listen}");
        assert_eq!(served(&parsed(&import).main, "/x"), "/b/x", "{listen}");
    }
}

#[test]
fn hosts_without_a_server_get_that_of_nginx_or_none() {
    let import = imported(
        "server { listen 443 ssl; listen 8443 ssl default_server; server_name a.org; root /a;
                  ssl_certificate /c; }
         server { listen 443 ssl default_server; listen 8443 ssl; server_name b.org; root /b; }",
    );
    let file = parsed(&import);
    assert_eq!(served(&file.main, "/x"), "403 403 Forbidden", "{}", import.text);
    let of_sites: Vec<_> = file.sites.iter().map(|site| served(site, "/x")).collect();
    assert_eq!(of_sites, ["/a/x", "/b/x"]);
    assert!(reasons(&import).contains("a server that was left out is for hosts without one: 403"));
    // Both stand on the same line.
    let import = imported(
        "server { listen 80; server_name a.org; root /a; } server { listen 80 default_server; \
         return 444; }",
    );
    assert_eq!(served_to(&import, "other.org"), "403 403", "{}", import.text);
    assert_eq!(served_to(&import, "a.org"), "/a/x", "{}", import.text);
}

/// Returns what the site of a host does for a path, or that of the main one.
fn served_to(import: &NginxImport, host: &str) -> String {
    let file = parsed(import);
    let is_it = |site: &&SiteSpec| site.hosts.iter().any(|known| known == host);
    served(file.sites.iter().find(is_it).unwrap_or(&file.main), "/x")
}

#[test]
fn a_redirect_to_https_beside_servers_without_it_is_that_of_its_hosts() {
    let shop = "server { listen 80; server_name shop.org; return 301 https://$host$request_uri; }";
    let by_host = "server { listen 80; server_name shop.org; if ($host = shop.org) { return 301 \
                   https://$host$request_uri; } return 404; }";
    for redirect in [shop, by_host] {
        let import = imported(&format!(
            "server {{ listen 80 default_server; server_name a.org; root /a; }} {redirect} \
             server {{ listen 443 ssl; server_name shop.org; ssl_certificate /c; root /s; }}"
        ));
        assert_eq!(listen_of(&import), ["0.0.0.0:80"], "{}", import.text);
        let to = "301 https://shop.org/{rest}";
        assert_eq!(served_to(&import, "shop.org"), to, "{}", import.text);
        assert_eq!(served_to(&import, "other.org"), "/a/x", "{}", import.text);
        let reasons = reasons(&import);
        assert!(!reasons.contains("a redirect to https beside"), "{reasons}");
    }
    let unknown = "server { listen 80 default_server; return 301 https://$host$request_uri; }";
    let import =
        imported(&format!("server {{ listen 80; server_name a.org; root /a; }}\n{unknown}"));
    assert_eq!(served_to(&import, "a.org"), "/a/x", "{}", import.text);
    assert_eq!(served_to(&import, "other.org"), "403 403 Forbidden", "{}", import.text);
    assert!(reasons(&import).contains("its target is not understood: 403"));
}

#[test]
fn hosts_of_a_server_that_is_left_out_get_no_files_of_another_one() {
    let main = "server { listen 80 default_server; listen 443 ssl default_server; ssl_certificate \
                /c; server_name a.org; root /a; }";
    for left_out in [
        "server { listen 80; server_name b.org; root /b; }",
        "server { listen 127.0.0.1:80; server_name b.org; root /b; }",
        "server { listen 443 ssl; server_name b.org; ssl_certificate /b; root /b; }",
        "server { listen 80; server_name b.org; return 301 https://$host$request_uri; }",
        "server { listen 80; server_name b.org; if ($scheme = http) { return 301 \
         https://$host$request_uri; } }",
    ] {
        let import = imported(&format!("{main} {left_out}"));
        assert_eq!(listen_of(&import), ["0.0.0.0:80 tls=false", "0.0.0.0:443 tls"], "{left_out}");
        assert_eq!(served_to(&import, "b.org"), "403 403 Forbidden", "{left_out}");
        assert_eq!(served_to(&import, "other.org"), "/a/x", "{left_out}");
        let reasons = reasons(&import);
        assert!(reasons.contains("its hosts get 403"), "{left_out}: {reasons}");
        assert!(!import.text.contains("\"/b\""), "{}", import.text);
    }
    // With nginx they reach the default server there.
    let elsewhere = "server { listen 8080; server_name b.org a.org; root /b; }";
    let import = imported(&format!("{main} {elsewhere}"));
    assert_eq!(served_to(&import, "b.org"), "/a/x", "{}", import.text);
    let pattern = "server { listen 80; server_name *.org; root /b; }";
    let import = imported(&format!("{main} {pattern}"));
    assert_eq!(served_to(&import, "a.org"), "/a/x", "{}", import.text);
    assert_eq!(served_to(&import, "*.org"), "403 403 Forbidden", "{}", import.text);
    let both = "server { listen 80; server_name b.org a.org; root /b; }";
    let import = imported(&format!("{main} {both}"));
    assert_eq!(served_to(&import, "a.org"), "/a/x", "{}", import.text);
    assert_eq!(served_to(&import, "b.org"), "403 403 Forbidden", "{}", import.text);
}

#[test]
fn options_of_an_address_and_repeated_names_are_no_mistakes() {
    let import = imported(
        "server { listen [::]:80 ipv6only=off; server_name a.org; root /a; }
         server { listen [::]:80; server_name .b.org x.org b.org X.org; root /b; }",
    );
    assert_eq!(listen_of(&import), ["[::]:80"], "{}", import.text);
    assert_eq!(parsed(&import).sites[0].hosts, ["b.org", "*.b.org", "x.org"]);
}

#[test]
fn a_status_that_there_is_not_is_another_one_of_its_class() {
    for status in [402, 418, 423, 424, 451, 499, 599] {
        let import = imported(&format!(
            "server {{ root /srv; error_page {status} /x.html; location /a/ {{ return {status} \
             x; }} }}"
        ));
        let site = parsed(&import).main;
        assert_eq!(served(&site, "/a/x"), "403 x", "{status}\n{}", import.text);
        assert_eq!(served(&site, "/b"), "/srv/b", "{status}\n{}", import.text);
        let reasons = reasons(&import);
        assert!(reasons.contains(&format!("there is no status {status} here: 403")), "{reasons}");
        assert!(reasons.contains(&format!("error_page {status} /x.html: it has")), "{reasons}");
    }
    let import = imported("server { location /a/ { return 299 x; } }");
    assert_eq!(served(&parsed(&import).main, "/a/x"), "200 x", "{}", import.text);
}

#[test]
fn ssl_is_on_for_all_listeners_of_a_server() {
    for own in ["ssl on; listen 8443;", "listen 8443; ssl on;", "listen 8443 ssl;"] {
        let import = imported(&format!("server {{ {own} ssl_certificate /c; root /srv; }}"));
        assert_eq!(listen_of(&import), ["0.0.0.0:8443 tls"], "{own}");
    }
}

#[test]
fn what_closes_all_is_told() {
    let all = syntax::parse(&Path::new("/n.conf").into(), "events { }").expect("it is read");
    let mut left = LeftOuts::default();
    let well = "server-name = \"x\"\n".to_owned();
    assert_eq!(checked(well.clone(), &all[0], &mut left), well);
    assert!(left.all.is_empty());
    assert_eq!(checked("frobnicate = 1\n".to_owned(), &all[0], &mut left), CLOSED);
    let told = left.all[0].to_string();
    assert!(told.starts_with("/n.conf:1: events: what was made of all is not well"), "{told}");
    assert!(told.contains("frobnicate"), "{told}");
}
