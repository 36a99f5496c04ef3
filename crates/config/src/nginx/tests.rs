//! Imports of configurations as they are in use.

mod fields;
mod guards;
mod includes;
mod listeners;
mod nested;
mod random;
mod types;
mod versions;

use super::*;
use crate::config_file::{RouteAction, RouteSpec, SiteSpec};
use crate::forbidden::is_forbidden;

fn imported(text: &str) -> NginxImport {
    imported_with(text, &|_| Err("no such file".to_owned()))
}

fn imported_with(text: &str, read: &dyn Fn(&Path) -> Result<String, String>) -> NginxImport {
    import(Path::new("/etc/nginx/nginx.conf"), text, read).expect("it is nginx's syntax")
}

fn parsed(import: &NginxImport) -> ConfigFile {
    ConfigFile::parse(Path::new("site.toml"), &import.text, ValueChecks::NONE)
        .unwrap_or_else(|error| panic!("{error}\n{}", import.text))
}

/// What the main site does for a path: a folder's file, a status with its text or target, or 404.
fn served(site: &SiteSpec, path: &str) -> String {
    let routes = site.routes.iter();
    let exact = routes.clone().find(|route| route.path == path);
    let by_rest = |route: &&RouteSpec| {
        let base = route.path.strip_suffix("{*rest}");
        base.is_some_and(|base| path.starts_with(base))
    };
    let by_folder = |route: &&RouteSpec| {
        let is_folder = matches!(route.action, RouteAction::Folder(_));
        let base = route.path.trim_end_matches('/');
        is_folder
            && path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
    };
    let longest = routes.filter(|one| by_rest(one) || by_folder(one));
    let longest = longest.max_by_key(|route| route.path.trim_end_matches("{*rest}").len());
    let Some(route) = exact.or(longest) else { return "404".to_owned() };
    match &route.action {
        RouteAction::Folder(folder) => {
            let rest = path[route.path.trim_end_matches('/').len()..].trim_start_matches('/');
            let forbidden = route.settings.iter().find(|one| one.name == "forbidden");
            let forbidden: Vec<String> =
                forbidden.iter().flat_map(|one| &one.items).map(|(text, _)| text.clone()).collect();
            let names_directory = path.ends_with('/');
            let rest = rest.trim_end_matches('/');
            if is_forbidden(&forbidden, rest.as_bytes(), names_directory) {
                return "404".to_owned();
            }
            folder.join(rest).display().to_string()
        }
        RouteAction::Redirect { to, status } => format!("{} {to}", status.code()),
        RouteAction::Text { text, status, .. } => format!("{} {text}", status.code()),
    }
}

/// The rules for `Cache-Control` of a folder.
fn rules_of(route: &RouteSpec) -> Vec<(&str, &str)> {
    route.cache.iter().map(|rule| (&*rule.path, &*rule.value)).collect()
}

fn reasons(import: &NginxImport) -> String {
    import.left.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const LARAVEL: &str = r#"
server {
    listen 80;
    listen [::]:80;
    server_name example.com;
    root /srv/example.com/public;

    add_header X-Frame-Options "SAMEORIGIN";
    add_header X-Content-Type-Options "nosniff";

    index index.php;
    charset utf-8;

    location / {
        try_files $uri $uri/ /index.php?$query_string;
    }

    location = /favicon.ico { access_log off; log_not_found off; }
    location = /robots.txt  { access_log off; log_not_found off; }

    error_page 404 /index.php;

    location ~ ^/index\.php(/|$) {
        fastcgi_pass unix:/var/run/php/php8.2-fpm.sock;
        fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name;
        include fastcgi_params;
        fastcgi_hide_header X-Powered-By;
    }

    location ~ /\.(?!well-known).* {
        deny all;
    }
}
"#;

#[test]
fn of_laravel_the_files_are_served_and_no_program_is() {
    let import = imported(LARAVEL);
    let file = parsed(&import);
    let root = "/srv/example.com/public";
    for (path, expected) in [
        ("/app.css", format!("{root}/app.css")),
        ("/favicon.ico", format!("{root}/favicon.ico")),
        ("/index.php", "404".to_owned()),
        ("/index.php/user", "404".to_owned()),
        ("/other.php", "404".to_owned()),
        ("/x/y.PHP", "404".to_owned()),
        ("/.env", format!("{root}/.env")), // It is hidden, which is not a route's matter.
    ] {
        assert_eq!(served(&file.main, path), expected, "{path}\n{}", import.text);
    }
    assert!(!file.over_defaults().config.routes.hidden);
    assert!(file.main.routes[0].headers.is_empty(), "{}", import.text);
    let rule = &file.main.routes[0].header_rules[0];
    assert!([200, 304].iter().all(|code| rule.statuses.iter().any(|one| one.has(*code))));
    assert!(![400, 404, 500].iter().any(|code| rule.statuses.iter().any(|one| one.has(*code))));
    let headers: Vec<_> = rule.set.iter().collect();
    assert_eq!(headers, [("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "SAMEORIGIN")]);
    let listen = &file.over_defaults().config.listen;
    assert_eq!(listen, &["0.0.0.0:80", "[::]:80 v6only"]);
    let reasons = reasons(&import);
    let line = "/etc/nginx/nginx.conf:24: fastcgi_pass unix:/var/run/php/php8.2-fpm.sock: programs \
                are not run, and their sources are not served; what it stands in responds with 403";
    assert!(reasons.contains(line), "{reasons}");
    // The page is a program: its source must not be what a 404 shows.
    let with_page = imported_with(LARAVEL, &|path| match path.extension() {
        Some(end) if end == "php" => Ok("<?php secret".to_owned()),
        _ => Err("no such file".to_owned()),
    });
    assert!(!with_page.text.contains("error-page"), "{}", with_page.text);
    assert!(reasons.contains(":15: try_files $uri $uri/ /index.php?$query_string: "), "{reasons}");
}

const WORDPRESS: &str = r#"
http {
    include mime.types;
    gzip on;
    upstream php { server unix:/tmp/php-cgi.socket; }
    client_max_body_size 13m;
    server {
        server_name blog.example.org;
        root /var/www/wordpress;
        index index.php;
        location = /favicon.ico { log_not_found off; access_log off; }
        location / { try_files $uri $uri/ /index.php?$args; }
        location ~ \.php$ {
            include fastcgi.conf;
            fastcgi_intercept_errors on;
            fastcgi_pass php;
        }
        location ~* \.(js|css|png|jpg|jpeg|gif|ico)$ { expires max; log_not_found off; }
        location ~* /(?:uploads|files)/.*\.php$ { deny all; }
        location /wp-content/uploads { autoindex off; add_header X-U "1"; }
        location /wp-admin { auth_basic "x"; auth_basic_user_file /etc/nginx/htpasswd; }
        location ^~ /static/ { alias /srv/static/; expires 30d; }
    }
}
"#;

#[test]
fn of_wordpress_what_has_a_password_is_closed_and_programs_are_nowhere() {
    let import = imported(WORDPRESS);
    let file = parsed(&import);
    for (path, expected) in [
        ("/readme.html", "/var/www/wordpress/readme.html"),
        ("/a/b.css", "/var/www/wordpress/a/b.css"),
        ("/wp-config.php", "404"),
        ("/wp-config.php/x", "404"),
        ("/wp-content/uploads/a.png", "/var/www/wordpress/wp-content/uploads/a.png"),
        ("/wp-content/uploads/evil.php", "404"),
        ("/wp-admin", "403 403 Forbidden"),
        ("/wp-admin/", "403 403 Forbidden"),
        ("/wp-admin/x.css", "403 403 Forbidden"),
        // The prefix has no slash at its end, so that it is for these as well.
        ("/wp-admin-x/a", "404"),
        ("/wp-admin.txt", "404"),
        ("/static/a.js", "/srv/static/a.js"),
        ("/static/a.php", "404"),
    ] {
        assert_eq!(served(&file.main, path), expected, "{path}\n{}", import.text);
    }
    assert_eq!(file.over_defaults().config.limit_body_bytes, 13 << 20);
    let of_static = file.main.routes.iter().find(|route| route.path == "/static");
    let of_static = of_static.expect("a route");
    assert_eq!(rules_of(of_static), [("/**", "max-age=2592000")]);
    assert!(of_static.headers.is_empty() && of_static.header_rules.is_empty());
    let reasons = reasons(&import);
    let part =
        ": auth_basic_user_file /etc/nginx/htpasswd: no such file; what it stands in responds";
    assert!(reasons.contains(part) && !reasons.contains("gzip"), "{reasons}");
    let of_root = file.main.routes.iter().find(|route| route.path == "/").expect("a route");
    let value = |name: &str| of_root.settings.iter().find(|one| one.name == name);
    assert_eq!(value("compress").expect("a setting").value, "gzip");
    assert_eq!(value("compress-types").expect("a setting").value, "text/html");
    assert_eq!(
        rules_of(of_root)[..2],
        [("/**.js", "max-age=315360000"), ("/**.css", "max-age=315360000")]
    );
    assert!(!reasons.contains("location ~*"), "{reasons}");
}

const SPA: &str = r#"
server { listen 80; server_name app.example.org; return 301 https://$host$request_uri; }
server {
    listen 443 ssl http2;
    server_name app.example.org;
    ssl_certificate /etc/ssl/app.pem;
    ssl_certificate_key /etc/ssl/app.key;
    root /srv/app/dist;
    location / { try_files $uri $uri/ /index.html; }
    location /assets/ { expires 1y; add_header Cache-Control "public, immutable"; }
    location = /health { default_type text/plain; return 200 "ok"; }
    location /old/ { rewrite ^/old/(.*)$ /new/$1 permanent; }
    location /api/ { proxy_pass http://127.0.0.1:3000; }
}
"#;

#[test]
fn redirects_come_before_what_is_served() {
    let import = imported(
        "server {
            root /srv;
            rewrite ^/a/(.*)$ /b/$1 permanent;
            rewrite ^/once$ /twice redirect;
            rewrite ^/once$ /never permanent;
            location / { rewrite ^/x/(.*)$ /y/$1 permanent; try_files $uri =404; }
            location /a/inner/ { alias /inner/; }
            location /a { alias /all-of-a/; }
            location = /once { return 200 once; }
            location /api/ { proxy_pass http://x; }
            location /dl/ { rewrite ^/dl/old/(.*)$ /dl/$1 redirect; alias /files/; }
            location = /one { rewrite ^/one$ /two permanent; }
            location /all/ { rewrite ^ https://b.example permanent; }
            location /old { rewrite ^/(.*)$ https://b.example/$1 permanent; }
            location = /whole { rewrite ^ https://b.example$request_uri permanent; }
            location /odd/ { rewrite ^/elsewhere$ /x permanent; alias /odd/; }
        }",
    );
    let file = parsed(&import);
    for (path, expected) in [
        ("/a/x", "301 /b/{rest}"),
        ("/a/inner/x", "301 /b/{rest}"),
        ("/once", "302 /twice"),
        ("/x/1", "301 /y/{rest}"),
        ("/plain", "/srv/plain"),
        ("/api/x", "403 403 Forbidden"),
        ("/dl/old/1", "302 /dl/{rest}"),
        ("/dl/1", "/files/1"),
        ("/one", "301 /two"),
        ("/all/x", "301 https://b.example"),
        ("/old", "301 https://b.example/old"),
        ("/old/x", "301 https://b.example/old/{rest}"),
        ("/whole", "301 https://b.example/whole"),
        ("/odd/x", "403 403 Forbidden"),
    ] {
        assert_eq!(served(&file.main, path), expected, "{path}\n{}", import.text);
    }
    for all in ["rewrite ^ https://b.example permanent;", "rewrite ^/(.*)$ /b permanent;"] {
        let import = imported(&format!("server {{ root /srv; {all} location /c/ {{ }} }}"));
        assert!(served(&parsed(&import).main, "/c/x").starts_with("301 "), "{}", import.text);
    }
    for odd in ["rewrite ^/a(.*)b$ /$1 permanent;", "rewrite ^/a/(.*) /b/$1 last;"] {
        let import = imported(&format!("server {{ root /srv; {odd} }}"));
        assert_eq!(served(&parsed(&import).main, "/x"), "403 403 Forbidden", "{}", import.text);
        assert!(!import.left.is_empty());
    }
}

#[test]
fn of_an_application_with_https_the_redirect_is_a_setting() {
    let import = imported(SPA);
    let file = parsed(&import);
    let config = file.over_defaults().config;
    assert!(config.https_redirect);
    assert_eq!(config.listen, ["0.0.0.0:80 tls=false", "0.0.0.0:443 tls"]);
    for (path, expected) in [
        ("/a.js", "/srv/app/dist/a.js"),
        ("/assets/x.js", "/srv/app/dist/assets/x.js"),
        ("/health", "200 ok"),
        ("/old/x", "301 /new/{rest}"),
        ("/api/users", "403 403 Forbidden"),
    ] {
        assert_eq!(served(&file.main, path), expected, "{path}\n{}", import.text);
    }
    let of_root = file.main.routes.iter().find(|route| route.path == "/").expect("a route");
    let value = |name: &str| of_root.settings.iter().find(|one| one.name == name);
    assert_eq!(value("spa").expect("a setting").value, "index.html");
    assert_eq!(value("cache-control").expect("a setting").value, "off");
    assert!(value("try-files").is_none(), "{}", import.text);
    let of_assets = file.main.routes.iter().find(|route| route.path == "/assets").expect("a route");
    assert_eq!(rules_of(of_assets), [("/**", "max-age=31536000, public, immutable")]);
    assert!(of_assets.headers.is_empty(), "a 404 is not kept for a year: {}", import.text);
}

const PROXY: &str = r"
user www-data;
worker_processes auto;
events { worker_connections 768; }
http {
    map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    upstream app { server 127.0.0.1:8000; keepalive 32; }
    server {
        listen 80 default_server;
        server_name _;
        return 444;
    }
    server {
        listen 80;
        server_name app.example.org .example.net;
        location /static/ { root /srv/app; }
        location @app { proxy_pass http://app; }
        location / {
            proxy_set_header Host $host;
            proxy_pass http://app;
        }
    }
    server { listen 127.0.0.1:8081; server_name admin; root /srv/admin; }
    server { listen 80; server_name app.example.org; root /srv/wrong; }
}
";

#[test]
fn of_a_reverse_proxy_only_its_files_are_left() {
    let import = imported(PROXY);
    let file = parsed(&import);
    assert_eq!(served(&file.main, "/x"), "403 403");
    assert_eq!(file.sites.len(), 1, "{}", import.text);
    let site = &file.sites[0];
    assert_eq!(site.hosts, ["app.example.org", "example.net", "*.example.net"]);
    assert_eq!(served(site, "/static/a.css"), "/srv/app/static/a.css");
    assert_eq!(served(site, "/"), "403 403 Forbidden");
    assert_eq!(served(site, "/users"), "403 403 Forbidden");
    let reasons = reasons(&import);
    for part in [
        ":23: server: it listens elsewhere: import it into a file of its own",
        ":24: server: no host of its own leads to it: left out",
        ": proxy_pass http://app: requests are not forwarded",
    ] {
        assert!(reasons.contains(part), "{part}: {reasons}");
    }
    assert!(!import.text.contains("/srv/admin") && !import.text.contains("/srv/wrong"));
}

/// Each is a directive that closes what it stands in.
#[test]
fn what_is_not_understood_closes_its_location_and_in_a_server_all_of_it() {
    for directive in [
        "auth_basic x;",
        "allow 10.1.1.1; deny 10.0.0.0/8;",
        "allow example.org;",
        "auth_basic x; auth_basic_user_file /no/such/file;",
        "auth_basic $realm;",
        "set_real_ip_from 10.0.0.0/8; deny 192.0.2.1;",
        "set_real_ip_from 10.0.0.0/8; allow 10.0.0.0/8; deny all;",
        "deny all;",
        "internal;",
        "proxy_pass http://x;",
        "fastcgi_pass x;",
        "uwsgi_pass x;",
        "auth_request /x;",
        "if ($arg_x) { return 403; }",
        "limit_except GET { deny all; }",
        "rewrite ^/x/(.*) /y/$1 last;",
        "root $document_root/x;",
        "root html;",
        "root /srv/../etc;",
        "alias /srv/$1;",
        "include /no/such/snippet.conf;",
        "add_header X $request_id;",
        "secure_link $arg_md5;",
        "location /a/b { }",
        "try_files /other$uri =404;",
        "return 200 $uri;",
        "frobnicate;",
        "content_by_lua_block { ngx.say(1) }",
        "satisfy any;",
        "valid_referers none;",
    ] {
        let text = format!("server {{ root /srv; location /a/ {{ {directive} }} }}");
        let import = imported(&text);
        let file = parsed(&import);
        assert_eq!(served(&file.main, "/a/x"), "403 403 Forbidden", "{directive} {}", import.text);
        assert_eq!(served(&file.main, "/b"), "/srv/b", "{directive}");
        let is_told = !import.left.is_empty() || ["deny all;", "internal;"].contains(&directive);
        assert!(is_told, "{directive}");
        if directive.starts_with("location") {
            continue;
        }
        let import = imported(&format!("server {{ root /srv; {directive} location /b/ {{ }} }}"));
        let file = parsed(&import);
        for path in ["/", "/a", "/b/x"] {
            assert_eq!(served(&file.main, path), "403 403 Forbidden", "{directive} {path}");
        }
        let import = imported(&format!("http {{ {directive} server {{ root /srv; }} }}"));
        assert_eq!(served(&parsed(&import).main, "/a"), "403 403 Forbidden", "{directive}");
    }
}

#[test]
fn a_regular_expression_never_leaves_readable_what_it_is_for() {
    for (expression, closed, open) in [
        ("~ \\.php$", &["/a.php", "/p/b.php", "/q/c.php", "/A.PHP"][..], &["/a.txt"][..]),
        ("~* \\.(ini|log)$", &["/a.ini", "/p/x.LOG"], &["/ini"]),
        ("~ ^/(private|data)/", &["/private/x", "/data/"], &["/public/x"]),
        ("~ ^/p/secret", &["/p/secret", "/p/secrets/x"], &["/p/x"]),
        ("~ ^/(?<x>[a-z]+)/hidden$", &["/p/hidden", "/q/hidden", "/z/hidden"], &["/x"]),
        ("~ \\1broken(", &["/a", "/p/b", "/q/c"], &[]),
        ("~ /\\.git", &["/.git/config", "/p/.git"], &["/p/git"]),
    ] {
        let text = format!(
            "server {{ root /srv; location /p/ {{ autoindex on; }} location /q/ {{ alias /srv/q/; \
             }} location {expression} {{ fastcgi_pass x; }} location ^~ /strong/ {{ alias \
             /srv/s/; }} }}"
        );
        let import = imported(&text);
        let file = parsed(&import);
        for path in closed {
            assert_eq!(served(&file.main, path), "404", "{expression} {path}\n{}", import.text);
        }
        for path in open {
            let found = served(&file.main, path);
            assert!(found.starts_with("/srv"), "{expression} {path}: {found}\n{}", import.text);
        }
        assert_eq!(served(&file.main, "/strong/a.ini"), "/srv/s/a.ini", "{expression}");
    }
}

#[test]
fn www_is_redirected_and_pages_for_errors_are_taken() {
    let text = "server { listen 80; server_name example.org www.example.org; root /srv; \
                if ($host = www.example.org) { return 301 https://example.org$request_uri; } \
                error_page 404 /404.html; error_page 500 502 /50x.html; \
                location = / { return 302 /start/; } location = /x { return 410; } }\n\
                server { server_name other.org; root /other; location /a { alias /b; } }";
    let read = |path: &Path| match path.to_str() {
        Some("/srv/404.html") => Ok("gone".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let import = imported_with(text, &read);
    assert!(import.text.contains("[[error-page]]\nstatus = 404\nfile = \"/srv/404.html\"\n"));
    let without_page = import.text.replace("file = \"/srv/404.html\"", "file = \"/dev/null\"");
    let text = without_page.replace("[[error-page]]\nstatus = 404\nfile = \"/dev/null\"\n", "");
    let file =
        ConfigFile::parse(Path::new("x.toml"), &text, ValueChecks::NONE).expect("it is well");
    let of = |host: &str| {
        let is_it = |site: &&SiteSpec| site.hosts.iter().any(|known| known == host);
        file.sites.iter().find(is_it).expect("a site")
    };
    assert_eq!(served(of("www.example.org"), "/x"), "301 https://example.org/{rest}");
    assert_eq!(served(&file.main, "/x"), "410 410");
    assert_eq!(served(of("other.org"), "/a/x"), "/b/x");
    assert_eq!(served(of("other.org"), "/ab"), "404", "nginx looks for /bb");
    let reasons = reasons(&import);
    assert!(reasons.contains("/srv/50x.html cannot be read"), "{reasons}");
    assert!(reasons.contains("location = /: a folder has that path: 404"), "{reasons}");
}
