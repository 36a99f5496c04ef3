//! `gustnado passwd` and `gustnado sign`, and what start and `check` say of files that are wrong.

mod gustnado;

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use gustnado::{Server, command, ended};

/// Runs `passwd` with a password on its standard input, and returns its line.
fn passwd(words: &[&str], password: &str) -> Result<String, String> {
    let mut command = command(&[&["passwd"], words].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(password.as_bytes()).expect("it reads that");
    drop(input);
    let found = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    if found.status.success() { Ok(text(found.stdout)) } else { Err(text(found.stderr)) }
}

#[test]
fn a_line_of_passwd_opens_a_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users");
    let argon2 = passwd(&["ann"], "open sesame\n").expect("a line");
    let bcrypt = passwd(&["bob", "--bcrypt"], "open sesame").expect("a line");
    assert!(argon2.starts_with("ann:$argon2id$v=19$m=19456,t=2,p=1$"), "{argon2}");
    assert!(bcrypt.starts_with("bob:$2y$12$"), "{bcrypt}");
    fs::write(&users, argon2 + &bcrypt).expect("a file");
    fs::write(folder.path().join("a.txt"), "a file").expect("a file");
    let (folder, users) = (folder.path().to_str(), users.to_str());
    let (folder, users) = (folder.expect("UTF-8"), users.expect("UTF-8"));
    let server = Server::start(&[folder, "--basic-auth", users]);
    assert!(server.get("/a.txt").contains(" 401 "));
    // `ann:open sesame`, `bob:open sesame` and `bob:open`.
    for (sent, status) in [
        ("YW5uOm9wZW4gc2VzYW1l", " 200 "),
        ("Ym9iOm9wZW4gc2VzYW1l", " 200 "),
        ("Ym9iOm9wZW4=", " 401 "),
    ] {
        let request = format!(
            "GET /a.txt HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {sent}\r\nConnection: close\r\n\
             \r\n"
        );
        let (mut stream, mut answer) = (server.connect(), String::new());
        stream.write_all(request.as_bytes()).expect("it is sent");
        stream.read_to_string(&mut answer).expect("it is received");
        assert!(answer.contains(status), "{answer}");
    }
}

#[test]
fn what_cannot_be_a_line_is_said() {
    for (words, password, part) in [
        (&["a:b"][..], "x\n", "without colons"),
        (&["ann"], "\n", "found none; type one"),
        (&["ann", "--bcrypt"], &*"x".repeat(73), "leave out --bcrypt"),
    ] {
        let error = passwd(words, password).expect_err("it is refused");
        assert!(error.starts_with("gustnado: ") && error.contains(part), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_signed_url_is_let_through_for_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    fs::write(&keys, "0123456789abcdef0123456789abcdef\n").expect("a file");
    fs::write(folder.path().join("a.txt"), "a file").expect("a file");
    let (folder, keys) = (folder.path().to_str(), keys.to_str());
    let (folder, keys) = (folder.expect("UTF-8"), keys.expect("UTF-8"));
    let server = Server::start(&[folder, "--signed-urls", keys]);
    let sign =
        |lasts: &str| ended(&mut command(&["sign", "/a.txt", "--key", keys, "--for", lasts]));
    let url = sign("1h").stdout;
    assert!(server.get(url.trim_end()).contains(" 200 "), "{url}");
    assert!(server.get("/a.txt").contains(" 403 "));
    let upload = ended(&mut command(&["sign", "/a.txt", "--key", keys, "--method", "PUT"])).stdout;
    assert!(server.get(upload.trim_end()).contains(" 403 "), "{upload}");
    let wrong = sign("soon");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("--for: expected a time such as"), "{}", wrong.stderr);
}

#[test]
fn a_file_that_is_wrong_is_said_before_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let users = write("users", "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n");
    let keys = write("keys", "short\n");
    for (words, part) in [
        (["--basic-auth", &users], "line 1: expected a hash of bcrypt or Argon2, found SHA-1"),
        (["--basic-auth", "/none/such"], "name a file that can"),
        (["--signed-urls", &keys], "line 1: expected a key of at least 32 characters"),
        (["--rate-limit", "10/y"], "expected a rate such as 10/s"),
        (["--allow", "10.0.0.1/8"], "expected an address"),
        (["--cors", "example.org"], "expected an origin such as"),
    ] {
        let found = ended(&mut command(&[&["check"], &words[..]].concat()));
        assert_ne!(found.code, Some(0), "{words:?}");
        assert!(found.stderr.contains(part), "{words:?}: {}", found.stderr);
    }
    let found = ended(&mut command(&["check", "--cors", "any", "--cors-credentials"]));
    assert!(found.stderr.contains("name them in cors"), "{}", found.stderr);
}

/// What is in effect, written as a file, is the same again.
#[test]
fn settings_of_sites_and_routes_are_written_as_they_were_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let line = passwd(&["ann"], "x\n").expect("a line");
    write("users", &line);
    let text = "port = 0\nbasic-auth = \"users\"\nallow = [\"127.0.0.1\"]\nrate-limit = \"100/s\"\n\
                [[rewrite]]\nfrom = \"/a/{*rest}\"\nto = \"/b/{rest}\"\n\
                [[header]]\nstatus = [404, \"5xx\"]\ntype = \"text/*\"\nmethods = \"GET\"\n\
                set = { X-A = \"1\" }\nadd = { X-B = \"2\" }\nremove = [\"X-C\"]\n\
                [[route]]\npath = \"/b/{*rest}\"\nanswer = \"open\"\nbasic-auth = \"off\"\n\
                allow = []\nrate-limit = \"off\"\nlimit-body-bytes = \"1k\"\n";
    let first = write("first.toml", text);
    let effective = |file: &str| ended(&mut command(&["check", "--effective", file])).stdout;
    let written = effective(&first);
    let second = write("second.toml", &written);
    let kept = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let lines = lines.map(|line| line.split("  # ").next().unwrap_or_default().to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(kept(&written), kept(&effective(&second)));
    for part in ["basic-auth = \"off\"", "allow = []", "limit-body-bytes = \"1k\"", "[[rewrite]]"] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let server = Server::start_by(&mut command(&[&second]));
    assert!(server.get("/a/x").contains(" 200 "));
    assert!(server.get("/x").contains(" 401 "));
}
