//! Who may come: networks, passwords and rates, and what compresses.

use super::*;

/// Returns the settings of a route as text.
fn settings_of(file: &ConfigFile, path: &str) -> Vec<String> {
    let is_it = |route: &&RouteSpec| route.path == path;
    let route = file.main.routes.iter().find(is_it).unwrap_or_else(|| panic!("no route {path}"));
    let line = |one: &crate::file_settings::FileSetting| {
        format!("{}={}", one.name, one.value.to_string_lossy())
    };
    route.settings.iter().map(line).collect()
}

const GUARDED: &str = r#"
http {
    gzip on; gzip_types text/css application/json; gzip_min_length 500; gzip_comp_level 5;
    gzip_vary on; gzip_proxied any; gzip_static on;
    server {
        root /srv;
        allow 10.0.0.0/8; deny all;
        location / { }
        location /open/ { allow all; gzip off; limit_rate 100k; }
        location /staff/ { auth_basic "Staff only"; auth_basic_user_file users; }
        location /both/ { deny 192.0.2.1; allow 192.0.2.0/24; deny all; }
        location = /one.txt { allow all; }
        location /two.txt { allow all; }
        location ~ \.(css|js)$ { expires 7d; }
        location ~ \.pdf$ { allow all; }
    }
}
"#;

#[test]
fn who_may_come_is_taken_over_for_each_folder() {
    let import = imported_with(GUARDED, &|path| match path.to_str() {
        Some("/etc/nginx/users") => Ok("ann:$2y$05$abc\n".to_owned()),
        _ => Err("no such file".to_owned()),
    });
    let file = parsed(&import);
    let compression = [
        "precompressed=on",
        "compress=gzip",
        "compress-types=text/html,text/css,application/json",
        "compress-bytes-min=500",
        "compress-gzip-level=5",
    ];
    let has = |path: &str, expected: &[&str], not: &[&str]| {
        let found = settings_of(&file, path);
        let is_there = |text: &&str| found.iter().any(|one| one.starts_with(*text));
        assert!(expected.iter().all(is_there), "{path}: {found:?}");
        assert!(!not.iter().any(is_there), "{path}: {found:?}");
    };
    has("/", &["allow=10.0.0.0/8"], &["deny", "basic-auth"]);
    has("/", &compression, &["write-rate"]);
    has("/open", &["write-rate=100k", "precompressed=on"], &["allow", "deny", "compress="]);
    let both = ["basic-auth=/etc/nginx/users", "basic-auth-realm=Staff only", "allow=10.0.0.0/8"];
    has("/staff", &both, &["deny"]);
    has("/both", &["allow=192.0.2.0/24", "deny=192.0.2.1"], &["basic-auth"]);
    // A single file has no folder of its own, and must not have more readers than it had.
    for path in ["/one.txt", "/two.txt"] {
        assert_eq!(served(&file.main, path), "403 403 Forbidden", "{path}\n{}", import.text);
    }
    // Others may read it in nginx, which no folder can say: it is in none.
    for path in ["/x.pdf", "/open/x.pdf", "/staff/x.pdf"] {
        assert_eq!(served(&file.main, path), "404", "{path}\n{}", import.text);
    }
    // An expression without access of its own has that of the server, not that of the folder.
    assert_eq!(served(&file.main, "/x.css"), "/srv/x.css");
    for path in ["/open/x.css", "/staff/x.css", "/both/x.js"] {
        assert_eq!(served(&file.main, path), "404", "{path}\n{}", import.text);
    }
    let is_it = |route: &&RouteSpec| route.path == "/";
    let root = file.main.routes.iter().find(is_it).expect("a route");
    let rules: Vec<(&str, &str)> = root.cache.iter().map(|one| (&*one.path, &*one.value)).collect();
    assert_eq!(rules, [("/**.css", "max-age=604800"), ("/**.js", "max-age=604800")]);
}

#[test]
fn a_server_for_nobody_serves_nothing_and_one_with_a_password_asks_for_it_everywhere() {
    let closed = imported("server { root /srv; deny all; allow 10.0.0.1; location /a/ { } }");
    assert_eq!(served(&parsed(&closed).main, "/a/x"), "403 403 Forbidden");
    let text = "server { root /srv; auth_basic x; auth_basic_user_file /u; location /a/ { alias \
                /b/; } location /c/ { auth_basic off; } location /h { return 200 ok; } }";
    let import = imported_with(text, &|_| Ok("ann:$argon2id$x".to_owned()));
    let file = parsed(&import);
    for (path, is_asked) in [("/", true), ("/a", true), ("/c", false)] {
        let found = settings_of(&file, path);
        assert_eq!(found.contains(&"basic-auth=/u".to_owned()), is_asked, "{path}: {found:?}");
    }
    let weak = imported_with(text, &|_| Ok("ann:$apr1$x$y".to_owned()));
    assert_eq!(served(&parsed(&weak).main, "/a/x"), "403 403 Forbidden");
    assert!(reasons(&weak).contains("hashed by bcrypt or Argon2"), "{}", reasons(&weak));
}

const LIMITED: &str = r"
http {
    limit_req_zone $binary_remote_addr zone=slow:10m rate=30r/m;
    limit_req_zone $server_name zone=site:10m rate=10r/s;
    limit_req_status 429;
    server {
        root /srv;
        client_max_body_size 0;
        limit_conn perip 10;
        location /all/ { autoindex on; }
        location /slow/ { limit_req zone=slow burst=5 nodelay; client_max_body_size 8M; }
        location /later/ { limit_req zone=slow burst=5; client_body_timeout 1m; send_timeout 5; }
        location /site/ { autoindex on; limit_req zone=site; }
        location /none/ { autoindex on; limit_req zone=none; client_body_timeout 1d; }
    }
}
";

#[test]
fn limits_of_clients_and_bodies_are_taken_over_for_each_folder() {
    let import = imported(LIMITED);
    let file = parsed(&import);
    let limits = |path: &str| {
        let of = settings_of(&file, path).into_iter();
        of.filter(|one| one.contains("rate-") || one.contains("body") || one.contains("timeout"))
            .collect::<Vec<_>>()
    };
    assert!(limits("/all").is_empty());
    let rate = ["rate-limit=30/m", "rate-limit-burst=6"];
    assert_eq!(limits("/slow"), [&["limit-body-bytes=8m"], &rate[..]].concat());
    let times = ["body-timeout=60s", "write-timeout=5s"];
    assert_eq!(limits("/later"), [&times[..], &rate[..]].concat());
    assert!(limits("/site").is_empty() && limits("/none").is_empty());
    assert!(import.text.contains("limit-body-bytes = \"1t\""), "{}", import.text);
    let reasons = reasons(&import);
    for part in [
        "limit_conn perip 10: --connections-per-client limits",
        "limit_req zone=slow burst=5: requests beyond the rate are refused, not delayed",
        "limit_req zone=site: only rates of each address are taken over: left out",
        "limit_req zone=none: only rates of each address are taken over: left out",
        "client_body_timeout 1d: its setting takes no such value: left out",
    ] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
}

#[test]
fn a_rate_of_a_location_replaces_that_of_its_server() {
    let import = imported(
        r"http {
            limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/s;
            limit_req_zone $remote_addr zone=fast:1m rate=50r/s;
            server {
                root /srv;
                limit_req zone=slow;
                location /same/ { autoindex on; }
                location /other/ { limit_req zone=fast; limit_req zone=slow; }
            }
        }",
    );
    let file = parsed(&import);
    for (path, rate) in [("/same", "rate-limit=1/s"), ("/other", "rate-limit=50/s")] {
        assert!(settings_of(&file, path).contains(&rate.to_owned()), "{path}: {}", import.text);
    }
    let reasons = reasons(&import);
    assert!(reasons.contains("limit_req zone=slow: one rate counts for a location"), "{reasons}");
}

#[test]
fn files_are_looked_for_where_nginx_does_and_nowhere_else() {
    for (directives, expected) in [
        ("try_files $uri $uri/ =404;", &[][..]),
        ("try_files $uri $uri/ /index.html;", &["spa=index.html", "cache-control=off"]),
        ("try_files $uri /index.html;", &["spa=index.html", "cache-control=off"]),
        ("try_files $uri =404;", &["try-files=$uri"]),
        ("try_files $uri @app;", &["try-files=$uri"]),
        ("try_files $uri /app.php;", &["try-files=$uri"]),
        // A folder leads to itself again, which is an error.
        ("try_files $uri $uri/;", &["try-files=$uri"]),
        ("try_files $uri $uri.html;", &["try-files=$uri,$uri.html"]),
        ("try_files $uri/index.html =404;", &["try-files=$uri/index.html"]),
        ("try_files $uri/index.html /index.html;", &["try-files=$uri/index.html"]),
        ("try_files $uri.html $uri $uri/ =404;", &["try-files=$uri.html,$uri,$uri/"]),
    ] {
        let import = imported(&format!("server {{ root /srv; location / {{ {directives} }} }}"));
        let found = settings_of(&parsed(&import), "/");
        assert_eq!(found, expected, "{directives}\n{}", import.text);
    }
    let listed = imported("server { root /srv; autoindex on; try_files $uri /index.html; }");
    let found = settings_of(&parsed(&listed), "/");
    assert!(found.contains(&"try-files=$uri".to_owned()), "a folder is not listed: {found:?}");
    for closed in ["try_files $uri/ =404;", "try_files $uri/ /index.html;"] {
        let import = imported(&format!("server {{ root /srv; location / {{ {closed} }} }}"));
        assert_eq!(served(&parsed(&import).main, "/a"), "403 403 Forbidden", "{closed}");
    }
}

#[test]
fn lists_are_of_clients_behind_a_proxy_only_where_the_server_finds_them_out_alike() {
    let known = "set_real_ip_from 10.0.0.5; set_real_ip_from unix:; real_ip_recursive on; \
                 real_ip_header X-Forwarded-For;";
    let guarded = "location /admin/ { allow 10.0.0.0/8; deny all; } location /pub/ { deny \
                   192.0.2.1; }";
    let of = |http: &str, server: &str| {
        imported(&format!("http {{ {http} server {{ root /srv; {server} {guarded} }} }}"))
    };
    let import = of(known, "");
    let file = parsed(&import);
    assert_eq!(file.over_defaults().config.forwarded_allow_ips, ["10.0.0.5", "unix"]);
    assert_eq!(settings_of(&file, "/admin"), ["allow=10.0.0.0/8"]);
    assert_eq!(settings_of(&file, "/pub"), ["deny=192.0.2.1"]);
    assert!(import.left.is_empty(), "{}", reasons(&import));
    for (http, server) in [
        ("set_real_ip_from 10.0.0.5; real_ip_header X-Forwarded-For;", ""),
        ("set_real_ip_from 10.0.0.5; real_ip_recursive on;", ""),
        ("set_real_ip_from lb.example; real_ip_header X-Forwarded-For; real_ip_recursive on;", ""),
        ("set_real_ip_from 10.0.0.5; real_ip_header CF-Connecting-IP; real_ip_recursive on;", ""),
        ("set_real_ip_from 10.0.0.5; real_ip_header proxy_protocol; real_ip_recursive on;", ""),
        ("", known),
        (known, "set_real_ip_from 10.0.0.6;"),
        (known, "real_ip_recursive off;"),
        ("real_ip_header X-Forwarded-For; real_ip_recursive on;", "set_real_ip_from 10.0.0.5;"),
    ] {
        let import = of(http, server);
        let site = parsed(&import).main;
        for path in ["/admin/x", "/pub/x"] {
            assert_eq!(served(&site, path), "403 403 Forbidden", "{http} {server} {path}");
        }
        assert_eq!(served(&site, "/x"), "/srv/x", "{http} {server}");
        let reasons = reasons(&import);
        assert!(reasons.contains("say by forwarded-allow-ips whose word counts"), "{reasons}");
        assert!(reasons.contains("are about addresses that a proxy names"), "{reasons}");
    }
    let unused = of("real_ip_header X-Forwarded-For;", "");
    assert_eq!(served(&parsed(&unused).main, "/admin/x"), "/srv/admin/x", "{}", unused.text);
}
