//! URLs that are signed, and what each of them opens.

use std::time::{Duration, SystemTime};

use gustnado::config::{Archives, Listing};
use gustnado::{UrlKeys, signed_url, signed_url_for};

use super::access::{PATHS, file, served};
use crate::harness::client::request;
use crate::harness::{Folder, Server, Setup};

on_every_server!(
    a_signed_url_opens_one_path_for_a_time,
    a_signed_url_opens_nothing_else_at_its_path,
    a_signed_url_may_be_rewritten,
);

const KEYS: &str = "# the new one, and the old one\nnew-0123456789abcdef0123456789abcdef\n\
                    old-0123456789abcdef0123456789abcdef\n";

fn a_signed_url_opens_one_path_for_a_time(setup: Setup) {
    let folder = Folder::new();
    let path = file(&folder, KEYS);
    let server =
        served(setup, &folder, |config| config.routes.access.signed_urls = Some(path.clone()));
    let keys = UrlKeys::read(&path).expect("two keys");
    let now = SystemTime::now();
    let (soon, past) = (now + Duration::from_mins(1), now - Duration::from_secs(1));
    let old = b"old-0123456789abcdef0123456789abcdef";
    for (path, status) in PATHS {
        let sign = |key: &[u8], end| signed_url(path, key, end).expect("it can be signed");
        let good = sign(keys.first(), soon);
        assert_eq!(server.get(&good).status, status, "{good}");
        assert_eq!(server.get(&sign(old, soon)).status, status);
        assert_eq!(server.get(&format!("{good}&more=1")).status, 403, "it is not signed");
        assert_eq!(server.get(&sign(keys.first(), past)).status, 410, "{path}");
        for bad in [path.to_owned(), good.replacen(path, "/other", 1), sign(b"another key", soon)] {
            assert_eq!(server.get(&bad).status, 403, "{bad}");
        }
    }
    let good = signed_url("/a.txt", keys.first(), soon).expect("it can be signed");
    let mut client = server.connect();
    client.send(request("HEAD", &good, ""));
    assert_eq!(client.read_head().status, 200, "as for GET");
    let stats = server.stats();
    assert_eq!((stats.access_refused_expired, stats.access_refused_signature), (6, 24));
}

/// A signature for a page opens neither an archive of its folder nor a place for uploads.
fn a_signed_url_opens_nothing_else_at_its_path(setup: Setup) {
    let folder = Folder::new();
    folder.file("album/b.txt", "another file");
    let path = file(&folder, KEYS);
    let server = served(setup, &folder, |config| {
        config.routes.access.signed_urls = Some(path.clone());
        config.routes.listing = Listing::On;
        config.routes.archives = Archives::Zip;
        config.routes.upload = true;
    });
    let keys = UrlKeys::read(&path).expect("two keys");
    let soon = SystemTime::now() + Duration::from_mins(1);
    let sign = |method: &str, url: &str| {
        signed_url_for(method, url, keys.first(), soon).expect("it can be signed")
    };
    let page = sign("GET", "/album/");
    assert_eq!(server.get(&page).status, 200);
    for more in ["archive=zip", "format=json"] {
        assert_eq!(server.get(&format!("{page}&{more}")).status, 403, "{more}");
        assert_eq!(server.get(&sign("GET", &format!("/album/?{more}"))).status, 200, "{more}");
    }
    let put = |url: &str| server.ask(request("PUT", url, "Content-Length: 3\r\n") + "new").status;
    assert_eq!(put(&sign("GET", "/album/c.txt")), 403);
    assert_eq!(put(&sign("POST", "/album/c.txt")), 403);
    assert_eq!(put(&sign("PUT", "/album/c.txt")), 201);
    assert_eq!(server.get(&sign("GET", "/album/c.txt")).text(), "new");
}

/// What is signed is the URL that a client has, and not what becomes of it.
fn a_signed_url_may_be_rewritten(setup: Setup) {
    let folder = Folder::new();
    folder.file("docs/v2/a.txt", "the second");
    let path = file(&folder, KEYS);
    let keys = UrlKeys::read(&path).expect("two keys");
    let text = "root = \"root\"\nsigned-urls = \"entries\"\n\
                [[rewrite]]\nfrom = \"/latest/{*rest}\"\nto = \"/docs/v2/{rest}\"\n\
                [[rewrite]]\nfrom = \"/one\"\nto = \"/docs/v2/a.txt?x=1\"\n";
    let server = Server::built(setup.described(&folder, text));
    let soon = SystemTime::now() + Duration::from_mins(1);
    for url in ["/latest/a.txt", "/one", "/one?y=2", "/docs/v2/a.txt"] {
        let signed = signed_url(url, keys.first(), soon).expect("it can be signed");
        assert_eq!(server.get(&signed).text(), "the second", "{url}");
        assert_eq!(server.get(url).status, 403);
        let other = signed.replacen(url, "/latest/a.txt?y=2", 1);
        assert_eq!(server.get(&other).status, 403, "{other}");
    }
}
