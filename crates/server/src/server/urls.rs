//! URLs of a server.

use gustnado_tasks::Endpoint;

/// Returns the URL of an address such as `127.0.0.1:8080`, `[::]:80` or `unix:/p`.
///
/// For the address of all interfaces, which is not reachable itself, it has the loopback address.
///
/// - `has_tls`: whether it is of `https`.
pub(super) fn url(endpoint: &Endpoint, has_tls: bool) -> String {
    let endpoint = endpoint.resolved();
    let address = endpoint.to_string();
    let Endpoint::Tcp(_) = endpoint else { return address };
    let (host, port) = address.rsplit_once(':').unwrap_or((&address, "80"));
    let (place, note) = match host {
        "0.0.0.0" => ("127.0.0.1", " (every IPv4 interface)"),
        "[::]" => ("[::1]", " (every interface)"),
        host => (host, ""),
    };
    let (scheme, usual) = if has_tls { ("https", "443") } else { ("http", "80") };
    let port = if port == usual { String::new() } else { format!(":{port}") };
    format!("{scheme}://{place}{port}/{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_becomes_something_to_click() {
        for (address, shown) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("127.0.0.1:80", "http://127.0.0.1/"),
            ("[::1]:81", "http://[::1]:81/"),
            ("0.0.0.0:81", "http://127.0.0.1:81/ (every IPv4 interface)"),
            ("[::]:81", "http://[::1]:81/ (every interface)"),
        ] {
            let endpoint = Endpoint::Tcp(address.parse().expect("an address"));
            assert_eq!(url(&endpoint, false), shown);
        }
        let endpoint = |text: &str| Endpoint::Tcp(text.parse().expect("an address"));
        assert_eq!(url(&endpoint("127.0.0.1:443"), true), "https://127.0.0.1/");
        assert_eq!(url(&endpoint("[::1]:80"), true), "https://[::1]:80/");
        assert_eq!(url(&Endpoint::Unix("/run/g.sock".into()), false), "unix:/run/g.sock");
    }
}
