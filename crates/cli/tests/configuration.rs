//! `--config`: what a file says, what is wrong with it, and HUP, which has it read again.

mod gustnado;

use gustnado::{Server, command, ended};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file at once, as a careful writer does.
    fn write(&self, name: &str, text: &str) -> String {
        let (fresh, path) = (self.path("fresh"), self.path(name));
        fs::write(&fresh, text).expect("written");
        fs::rename(&fresh, &path).expect("in its place");
        path.to_str().expect("UTF-8").to_owned()
    }
}

const ANSWER: &str = "[[route]]\npath = \"/x\"\nanswer = \"one\"\n";

#[test]
fn serve_takes_a_file_by_flag_by_variable_or_as_its_argument() {
    let place = Place::new();
    let file = place.write("site.toml", &format!("port = 0\n{ANSWER}"));
    for server in [
        Server::start_by(&mut command(&["serve", "--config", &file])),
        Server::start_by(command(&["serve"]).env("GUSTNADO_CONFIG", &file)),
        Server::start_by(&mut command(&[&file])),
    ] {
        let answer = server.get("/x");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\none"), "{answer}");
    }
}

#[test]
fn a_folder_is_listed_by_the_setting_or_by_its_own_word() {
    let place = Place::new();
    for folder in ["open", "shut", "usual"] {
        fs::create_dir(place.path(folder)).expect("a folder");
        fs::write(place.path(folder).join("a.txt"), "a").expect("written");
    }
    let route = |name: &str, word: &str| {
        format!("[[route]]\npath = \"/{name}\"\nfolder = \"{name}\"\n{word}\n")
    };
    let routes =
        [route("open", "listing = \"on\""), route("shut", "listing = \"off\""), route("usual", "")];
    for (setting, usual) in [("on", true), ("off", false)] {
        let text = format!("port = 0\nlisting = \"{setting}\"\n{}", routes.concat());
        let file = place.write("site.toml", &text);
        let effective = ended(&mut command(&["check", "--effective", &file])).stdout;
        let again = place.write("again.toml", &effective);
        for file in [file, again] {
            let server = Server::start_by(&mut command(&[&file]));
            for (name, is_listed) in [("open", true), ("shut", false), ("usual", usual)] {
                let answer = server.get(&format!("/{name}/"));
                assert_eq!(answer.contains("a.txt"), is_listed, "{name} {setting}: {answer}");
            }
        }
    }
    let of_site = routes.concat().replace("[[route]]", "[[site.route]]");
    let text = format!("port = 0\n[[site]]\nhosts = \"x\"\nlisting = \"on\"\n{of_site}");
    let file = place.write("site.toml", &text);
    let effective = ended(&mut command(&["check", "--effective", &file])).stdout;
    for file in [file, place.write("again.toml", &effective)] {
        let server = Server::start_by(&mut command(&[&file]));
        for (name, is_listed) in [("open", true), ("shut", false), ("usual", true)] {
            let answer = server.get(&format!("/{name}/"));
            assert_eq!(answer.contains("a.txt"), is_listed, "{name}: {answer}");
        }
    }
    let wrong = place.write("site.toml", &route("open", "listing = \"maybe\""));
    let found = ended(&mut command(&["check", &wrong])).stderr;
    assert!(
        found.contains(":4: route.listing: expected one of auto, on, off, found \"maybe\""),
        "{found}"
    );
}

#[test]
fn a_flag_is_over_a_variable_which_is_over_the_file() {
    let place = Place::new();
    let file = place.write("site.toml", "workers = 1\nslots = 11\nbacklog = 21\n");
    let found = ended(
        command(&["check", "--config", &file, "--workers", "3"])
            .env("GUSTNADO_WORKERS", "2")
            .env("GUSTNADO_SLOTS", "12"),
    );
    assert_eq!(found.code, Some(0), "{found:?}");
    for (name, value, origin) in [
        ("workers", "3", "flag --workers".to_owned()),
        ("slots", "12", "environment GUSTNADO_SLOTS".to_owned()),
        ("backlog", "21", format!("file {file}:3")),
        ("io", "", "default".to_owned()),
    ] {
        let start = format!("  {name} ");
        let line = found.stdout.lines().find(|line| line.starts_with(&start)).expect("a line");
        assert!(line.contains(value) && line.contains(&origin), "{line}");
    }
    assert!(found.stderr.contains("3 settings, 0 routes, 0 sites; all is well"), "{found:?}");
}

#[test]
fn check_prints_every_mistake_with_its_line_and_exits_78() {
    let place = Place::new();
    let file = place.write("site.toml", "prot = 1\nworkers = \"x\"\n[[route]]\npath = \"/\"\n");
    for arguments in [&["check", &file][..], &["check", "--config", &file], &["serve", &file]] {
        let found = ended(&mut command(arguments));
        assert_eq!((found.code, found.stdout.as_str()), (Some(78), ""), "{found:?}");
        let lines: Vec<&str> = found.stderr.lines().collect();
        let expected = [
            format!("gustnado: {file}:1: no key is called \"prot\"; did you mean \"port\"?"),
            format!(
                "gustnado: {file}:2: workers: expected a whole number from 1 to 1024, or auto, \
                 found \"x\"; leave it out for auto"
            ),
            format!(
                "gustnado: {file}:3: route: expected one of folder, redirect and answer, found \
                 none; name one"
            ),
        ];
        assert_eq!(lines, expected);
    }
    let found = ended(&mut command(&["check", "--config", "/no/such.toml"]));
    assert_eq!(found.code, Some(78), "{found:?}");
    assert!(found.stderr.contains("/no/such.toml: no such file"), "{found:?}");
}

#[test]
fn what_is_in_effect_can_be_fed_back() {
    let place = Place::new();
    fs::create_dir(place.path("public")).expect("a folder");
    let file = place.write(
        "site.toml",
        "root = \"public\"\n[headers]\nX-Y = \"z\"\n[[route]]\npath = \"/a/{b}\"\n\
         redirect = \"/{b}\"\n[[site]]\nhosts = [\"a.org\"]\n[[site.route]]\npath = \"/\"\n\
         answer = \"line\\none \\\"quoted\\\"\"\n",
    );
    let first = ended(&mut command(&["check", &file, "--effective", "--workers", "3"]));
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("workers = 3  # flag --workers\n"), "{}", first.stdout);
    assert!(first.stdout.contains(&format!("[[route]]  # file {file}:5\n")), "{}", first.stdout);
    let other = Place::new();
    let again = other.write("again.toml", &first.stdout);
    let second = ended(&mut command(&["check", &again, "--effective"]));
    assert_eq!(second.code, Some(0), "{second:?}");
    let values = |text: &str| {
        let value = |line: &str| line.split("  # ").next().unwrap_or_default().to_owned();
        // (What all sockets of the machine hold changes at any moment.)
        let lines = text.lines().filter(|line| !line.starts_with("# sockets hold"));
        lines.map(value).collect::<Vec<_>>()
    };
    assert_eq!(values(&first.stdout), values(&second.stdout));
}

#[test]
fn included_files_and_values_of_the_environment_are_served_and_secrets_are_not_shown() {
    let place = Place::new();
    fs::create_dir(place.path("sites")).expect("a folder");
    let file = place.write(
        "site.toml",
        "port = \"${WEB_PORT:-0}\"\ninclude = \"sites/*.toml\"\n\
         server-name = \"${SERVER_TOKEN}\"\n",
    );
    let route =
        |path: &str, text: &str| format!("[[route]]\npath = \"{path}\"\nanswer = \"{text}\"\n");
    place.write("sites/a.toml", &route("/a", "${GREETING}"));
    place.write("sites/b.toml", &route("/b", "$${GREETING}"));
    let with_variables = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("GREETING", "hello \"you\"").env("SERVER_TOKEN", "hunter2");
        command
    };
    let server = Server::start_by(&mut with_variables(&["serve", &file]));
    assert!(server.get("/a").ends_with("\r\n\r\nhello \"you\""), "{}", server.get("/a"));
    assert!(server.get("/b").ends_with("\r\n\r\n${GREETING}"), "{}", server.get("/b"));
    for arguments in [&["check", &file][..], &["check", "--effective", &file]] {
        let found = ended(&mut with_variables(arguments));
        assert_eq!(found.code, Some(0), "{found:?}");
        assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
        let origin = format!("file {file}:3, environment SERVER_TOKEN");
        let line = found.stdout.lines().find(|line| line.contains(&origin)).expect("an origin");
        assert!(line.contains("${SERVER_TOKEN}"), "{line}");
    }
    let found = ended(&mut command(&["check", &file]));
    assert_eq!(found.code, Some(78), "{found:?}");
    let part = format!("{file}:3: the variable SERVER_TOKEN is not set; set it, or write ");
    assert!(found.stderr.contains(&part), "{found:?}");
    place.write("sites/a.toml", "\nprot = 1\n");
    let found = ended(&mut with_variables(&["check", &file]));
    let part = "sites/a.toml:2: no key is called \"prot\"; did you mean \"port\"?";
    assert!(found.stderr.contains(part), "{found:?}");
}

#[test]
fn the_schema_is_kept_in_step() {
    let found = ended(&mut command(&["schema"]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/site.schema.json");
    let kept = fs::read_to_string(kept).expect("docs/site.schema.json is there");
    assert_eq!(kept, found.stdout, "run `gustnado schema > docs/site.schema.json`");
}

#[test]
fn the_sample_and_every_example_of_the_documentation_are_well() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let sample = docs.join("sample/site.toml");
    let found = ended(&mut command(&["check", sample.to_str().expect("UTF-8")]));
    assert_eq!(found.code, Some(0), "{found:?}");
    let page = fs::read_to_string(docs.join("configuration.md")).expect("it is there");
    let place = Place::new();
    for folder in ["public", "shop", "docs"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    place.write("404.html", "lost");
    place.write("50x.html", "oops");
    place.write("oops.html", "oops");
    let mut examples = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        let file = place.write("example.toml", text);
        let found = ended(&mut command(&["check", &file]));
        assert_eq!(found.code, Some(0), "{text}\n{found:?}");
        examples += 1;
    }
    assert!(examples >= 5, "only {examples} examples were found");
}

#[test]
fn a_listener_that_fails_has_its_line() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let text = format!("listen = [\n  \"127.0.0.1:0\",\n  \"{address}\",\n]\n");
    let file = place.write("site.toml", &text);
    let found = ended(&mut command(&["serve", &file]));
    assert_eq!(found.code, Some(1), "{found:?}");
    let start = format!("gustnado: {file}:3: cannot listen on {address}: ");
    assert!(found.stderr.starts_with(&start), "{found:?}");
}

#[test]
fn hup_says_what_is_different_and_what_needs_a_restart() {
    let place = Place::new();
    let file = place.write("site.toml", &format!("port = 0\n{ANSWER}"));
    let mut server = Server::start_by(&mut command(&["serve", &file]));
    let socket = place.path("x.sock");
    let text = "listen = [\"127.0.0.1:0\", \"unix:x.sock\"]\nheader-timeout = \"5s\"\n\
                backlog = 77\n[[route]]\npath = \"/x\"\nanswer = \"two\"\n";
    place.write("site.toml", text);
    server.signal(Signal::HUP);
    let line = server.line_with("HUP: reloaded ");
    assert!(line.contains("header-timeout"), "{line}");
    assert!(line.contains("needs a restart, and stays: backlog"), "{line}");
    assert!(line.contains(&format!("listens on unix:{} now", socket.display())), "{line}");
    assert!(server.get("/x").ends_with("two"));
    place.write("site.toml", "[[route]]\npath = \"/x\"\nanswer = 5\n");
    server.signal(Signal::HUP);
    let line = server.line_with("site.toml:3: ");
    assert!(line.contains("route.answer: expected text in quotes, found 5"), "{line}");
    server.line_with("was not taken; what was served before is served on");
    assert!(server.get("/x").ends_with("two"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    assert!(!socket.exists(), "the socket's file is removed");
}

/// Sends requests on one connection without a pause. Returns the number of responses.
fn hammer(address: &str, done: &AtomicBool, asked: &AtomicU64) -> Result<u64, String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let stream = TcpStream::connect(address).map_err(|error| failed("connect", error))?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a bound");
    let mut input = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut output = stream;
    let mut answers = 0;
    while !done.load(Ordering::Relaxed) {
        let path = if answers % 2 == 0 { "/x" } else { "/file" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        output.write_all(request.as_bytes()).map_err(|error| failed("send", error))?;
        let (mut length, mut line) = (0, String::new());
        input.read_line(&mut line).map_err(|error| failed("receive", error))?;
        if !line.starts_with("HTTP/1.1 200 ") {
            return Err(format!("answer {answers} to {path} was {line:?}"));
        }
        loop {
            line.clear();
            input.read_line(&mut line).map_err(|error| failed("receive", error))?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().map_err(|_| line.clone())?;
            }
            if line.starts_with("Connection: close") {
                return Err(format!("answer {answers} to {path} closes"));
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).map_err(|error| failed("receive", error))?;
        let is_known = [&b"even"[..], b"odd", b"content"].contains(&body.as_slice());
        if !is_known {
            return Err(format!("answer {answers} to {path} was {:?}", body.escape_ascii()));
        }
        answers += 1;
        asked.fetch_add(1, Ordering::Relaxed);
    }
    Ok(answers)
}

/// The file of each round: another response, other settings, another folder, more and fewer sites.
fn round(number: usize) -> String {
    let odd = number % 2 == 1;
    let name = if odd { "odd" } else { "even" };
    let extra = if odd { "[[site]]\nhosts = \"a.org\"\nroot = \"odd\"\n" } else { "" };
    format!(
        "port = 0\nroot = \"{name}\"\nheader-timeout = {}\n[headers]\nX-Round = \"{number}\"\n\
         [[route]]\npath = \"/x\"\nanswer = \"{name}\"\n{extra}",
        5 + number
    )
}

#[test]
fn reloading_under_load_loses_nothing() {
    for scheduler in ["pool", "queue-shared"] {
        let place = Place::new();
        for folder in ["odd", "even"] {
            fs::create_dir(place.path(folder)).expect("a folder");
            fs::write(place.path(folder).join("file"), "content").expect("a file");
        }
        let file = place.write("site.toml", &round(0));
        let flags = ["serve", &file, "--scheduler", scheduler, "--workers", "2"];
        let mut server = Server::start_by(&mut command(&flags));
        let (done, asked) = (AtomicBool::new(false), AtomicU64::new(0));
        let address = server.address.clone();
        let outcomes = std::thread::scope(|scope| {
            let hammers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| hammer(&address, &done, &asked))).collect();
            for number in 1..=30 {
                let is_broken = number % 7 == 3;
                let text = if is_broken { "port = \n".to_owned() } else { round(number) };
                place.write("site.toml", &text);
                let before = asked.load(Ordering::Relaxed);
                server.signal(Signal::HUP);
                let part = if is_broken { "was not taken" } else { "HUP: reloaded" };
                server.line_with(part);
                // Some requests come under each of them.
                let until = Instant::now() + Duration::from_secs(10);
                while asked.load(Ordering::Relaxed) < before + 16 && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            done.store(true, Ordering::Relaxed);
            hammers.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
        });
        for outcome in &outcomes {
            let answers = outcome.as_ref().expect("nothing was lost, and no connection was cut");
            assert!(*answers >= 30, "{outcomes:?}");
        }
        assert!(server.get("/x").ends_with("even"), "round 30 counts");
        server.signal(Signal::TERM);
        assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    }
}

/// What editors with a TOML language server say: taplo reads the schema as they do.
#[test]
#[ignore = "needs taplo 0.9 (pip install taplo); run with --ignored where it is installed"]
fn taplo_takes_what_the_reader_takes_and_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = fs::canonicalize(root).expect("the sources are there");
    let schema = format!("file://{}/docs/site.schema.json", root.display());
    let lint = |file: &Path| {
        let mut taplo = std::process::Command::new("taplo");
        taplo.args(["lint", "--schema", &schema]).arg(file);
        taplo.output().expect("taplo is installed").status.success()
    };
    let kinds = ["static", "spa", "python", "behind-proxy"];
    let templates = kinds.map(|kind| root.join(format!("crates/cli/src/init/{kind}.toml")));
    for file in [root.join("docs/sample/site.toml")].iter().chain(&templates) {
        assert!(lint(file), "{}", file.display());
    }
    let place = Place::new();
    for (text, is_well) in [
        ("workers = \"${N:-2}\"\nhidden = \"${H:-true}\"\ninclude = \"a/*.toml\"\n", true),
        ("prot = 1\n", false),
        ("hidden = \"maybe\"\n", false),
        ("workers = \"many\"\n", false),
        ("[[route]]\npath = \"/\"\n", false),
        ("[[site]]\nroot = \"x\"\n", false),
    ] {
        let file = place.write("a.toml", text);
        assert_eq!(lint(Path::new(&file)), is_well, "{text}");
    }
}
