//! An imported configuration answers as nginx does, or closes more. Without nginx on this machine
//! the test is skipped.

mod gustnado;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gustnado::{PATIENCE, Server, command, ended};

const CONFIGURATION: &str = r#"
worker_processes 1;
pid FOLDER/nginx.pid;
error_log FOLDER/error.log;
events { }
http {
    access_log off;
    types {
        text/html html htm shtml; text/css css; application/javascript js mjs; text/plain txt;
        application/xhtml+xml xhtml; text/xml xml; image/svg+xml svg;
    }
    client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi; uwsgi_temp_path FOLDER/uwsgi; scgi_temp_path FOLDER/scgi;
    gzip on; gzip_types text/css; gzip_min_length 100;
    server {
        listen 127.0.0.1:PORT;
        server_name localhost;
        root FOLDER/www;
        index index.html;
        error_page 404 /404.html;
        add_header X-Content-Type-Options nosniff always;
        location / { try_files $uri $uri/ =404; }
        location /files/ { alias FOLDER/archive/; }
        location /static/ { gzip_static on; }
        location /app/ { try_files $uri $uri/ /app/index.html; }
        location /private/ { auth_basic "staff"; auth_basic_user_file FOLDER/users; }
        location /nobody/ { deny all; }
        location /local/ { allow 127.0.0.1; deny all; }
        location /others/ { deny 127.0.0.0/8; }
        location ~ \.(css|js)$ { expires 7d; }
        location ~ \.secret$ { return 403; }
        location = /health { default_type text/plain; return 200 "ok"; }
        location /old/ { rewrite ^/old/(.*)$ /new/$1 permanent; }
        location = /gone { return 410; }
    }
}
"#;

/// The password is "password".
const USERS: &str = "ann:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\n";

/// nginx, until the test ends.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts nginx as one process; `None`: it is not installed.
fn nginx(folder: &Path, file: &Path, port: u16) -> Option<Nginx> {
    let mut command = Command::new("nginx");
    command.args(["-g", "daemon off; master_process off;", "-e", "stderr", "-p"]);
    command.arg(folder).arg("-c").arg(file).stdin(Stdio::null()).stderr(Stdio::null());
    let running = Nginx(command.spawn().ok()?);
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "nginx does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(running)
}

fn written(folder: &Path) {
    let long = "body { color: red } ".repeat(50);
    for (name, text) in [
        ("users", USERS),
        ("www/index.html", "<h1>home</h1>"),
        ("www/404.html", "<h1>no such page</h1>"),
        ("www/app.css", long.as_str()),
        ("www/a.txt", "text"),
        ("www/x.secret", "secret"),
        ("www/sub/index.html", "sub"),
        ("www/static/a.css", long.as_str()),
        ("www/static/a.css.gz", "not really gzip, but sent as it is"),
        ("www/app/index.html", "<h1>app</h1>"),
        ("www/private/a.txt", "secret"),
        ("www/nobody/a.txt", "secret"),
        ("www/local/a.txt", "local"),
        ("www/others/a.txt", "others"),
        ("archive/a.txt", "archive"),
    ] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("written");
    }
}

/// What of a response is compared.
#[derive(Debug, PartialEq, Eq)]
struct Compared {
    status: String,
    fields: Vec<(String, String)>,
    /// Only of a success: pages for errors of the servers differ.
    content: String,
}

/// Asks a server, and returns what is compared of its response.
fn asked(address: &str, path: &str, fields: &str) -> Compared {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a bound");
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, content) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").to_owned();
    let compared = ["content-encoding", "cache-control", "x-content-type-options"];
    let mut fields: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        // What is closed has no fields here.
        .filter(|(name, _)| compared.contains(&name.as_str()) && !status.starts_with('4'))
        .collect();
    fields.sort();
    let is_compressed = fields.iter().any(|(name, _)| name == "content-encoding");
    let is_compared = status == "200" && !is_compressed || status == "404";
    let content = if is_compared { content.to_owned() } else { String::new() };
    Compared { status, fields, content }
}

#[test]
fn an_imported_configuration_answers_as_nginx_does() {
    let folder = tempfile::tempdir().expect("a folder");
    written(folder.path());
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    let shown = folder.path().display().to_string();
    let text = CONFIGURATION.replace("FOLDER", &shown).replace("PORT", &port.to_string());
    let file = folder.path().join("nginx.conf");
    fs::write(&file, text).expect("written");
    let Some(_nginx) = nginx(folder.path(), &file, port) else {
        println!("skipped: nginx is not installed");
        return;
    };
    let site = folder.path().join("site.toml").display().to_string();
    let file = file.display().to_string();
    let found = ended(&mut command(&["import", &file, "-o", &site]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let server = Server::start_by(&mut command(&["serve", &site, "--listen", "127.0.0.1:0"]));
    let of_nginx = format!("127.0.0.1:{port}");
    let right = "Authorization: Basic YW5uOnBhc3N3b3Jk\r\n";
    let wrong = "Authorization: Basic YW5uOndyb25n\r\n";
    let gzip = "Accept-Encoding: gzip\r\n";
    let page = "Accept: text/html\r\n";
    for (path, fields) in [
        ("/", ""),
        ("/", gzip),
        ("/a.txt", gzip),
        ("/app.css", ""),
        ("/app.css", gzip),
        ("/static/a.css", ""),
        ("/sub/", ""),
        ("/none", ""),
        ("/files/a.txt", ""),
        ("/app/users/7", page),
        ("/private/a.txt", ""),
        ("/private/a.txt", wrong),
        ("/private/a.txt", right),
        ("/nobody/a.txt", ""),
        ("/local/a.txt", ""),
        ("/others/a.txt", ""),
        ("/health", ""),
        ("/old/a", ""),
        ("/gone", ""),
    ] {
        let (theirs, ours) = (asked(&of_nginx, path, fields), asked(&server.address, path, fields));
        assert_eq!(ours, theirs, "{path} {fields:?}");
    }
    // What an expression closes is not there here.
    let secret = asked(&server.address, "/x.secret", "");
    assert_eq!(secret.status, "404", "{secret:?}");
    assert!(!secret.content.contains("secret"), "{secret:?}");
}
