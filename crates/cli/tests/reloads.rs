//! Reloads that have a result: by the control socket (`gustnado reload`) and by the watch over the
//! configuration file.

mod gustnado;

use gustnado::{PATIENCE, Server, command, ended};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }
}

fn answer(text: &str) -> String {
    format!("[[route]]\npath = \"/x\"\nanswer = \"{text}\"\n")
}

/// Waits until the route `/x` has this text.
fn wait_for(server: &Server, text: &str) {
    let until = Instant::now() + PATIENCE;
    while !server.get("/x").ends_with(text) {
        assert!(Instant::now() < until, "{text} is not served: {}", server.get("/x"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reload_by_the_control_socket_waits_for_its_result() {
    let place = Place::new();
    let text = |own: &str| format!("port = 0\ncontrol = \"unix:x.sock\"\n{own}");
    let file = place.write("site.toml", &text(&answer("one")));
    let mut server = Server::start_by(&mut command(&["serve", &file]));
    let socket = place.path("x.sock");
    let mode = fs::metadata(&socket).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What is taken, and what needs a restart.
    place.write("site.toml", &text(&format!("workers = 3\nhidden = true\n{}", answer("two"))));
    let address = format!("unix:{}", socket.display());
    let found = ended(&mut command(&["reload", "--control", &address]));
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{found:?}");
    assert_eq!(
        found.stdout,
        format!("reloaded {file}\nchanged: hidden\nneeds a restart, and stays: workers\n")
    );
    assert!(server.get("/x").ends_with("two"), "it is in force when the command ends");
    // A mistake: each line, and what is served stays.
    place.write("site.toml", &text("prot = 1\nwokers = 1\n"));
    let found = ended(&mut command(&["reload", "--control", &address]));
    assert_eq!((found.code, found.stdout.as_str()), (Some(78), ""), "{found:?}");
    let lines: Vec<&str> = found.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            format!("gustnado: {file}:3: no key is called \"prot\"; did you mean \"port\"?"),
            format!("gustnado: {file}:4: no key is called \"wokers\"; did you mean \"workers\"?"),
            format!("gustnado: {file} was not taken; what was served before is served on"),
        ]
    );
    server.line_with("control: ");
    assert!(server.get("/x").ends_with("two"));
    // By the file, which names the socket.
    place.write("site.toml", &text(&answer("three")));
    let found = ended(&mut command(&["reload", &file]));
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(server.get("/x").ends_with("three"));
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0), "{:#?}", server.seen);
    assert!(!socket.exists(), "it is removed at the end");
    let found = ended(&mut command(&["reload", "--control", &address]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("no server is controlled there"), "{found:?}");
    let found = ended(&mut command(&["reload"]));
    assert_eq!(found.code, Some(2), "{found:?}");
    assert!(found.stderr.contains("name it with --control"), "{found:?}");
}

#[test]
fn the_page_of_counters_has_the_last_reload() {
    let place = Place::new();
    let text = |own: &str| {
        let control = place.path("x.sock").display().to_string();
        format!(
            "port = 0\ncontrol = \"{control}\"\nstats-path = \"/stats\"\n\
             metrics-path = \"/metrics\"\n{own}"
        )
    };
    let file = place.write("site.toml", &text(""));
    let server = Server::start_by(&mut command(&["serve", &file]));
    assert!(!server.get("/stats").contains("last_reload"), "{}", server.get("/stats"));
    assert!(!server.get("/metrics").contains("last_reload"), "{}", server.get("/metrics"));
    let taken = |kept: &str| format!("\"taken\":true,\"reason\":\"\",\"needs_restart\":[{kept}]}}");
    let refused = || "\"taken\":false,\"reason\":\"".to_owned();
    for (own, code, part, metric) in [
        ("prot = 1\n", 78, refused(), "0"),
        ("hidden = true\n", 0, taken(""), "1"),
        ("workers = 3\n", 0, taken("\"workers\""), "1"),
        ("prot = 1\n", 78, refused(), "0"),
    ] {
        place.write("site.toml", &text(own));
        assert_eq!(
            ended(&mut command(&[
                "reload",
                &file,
                "--control",
                &format!("{}", place.path("x.sock").display())
            ]))
            .code,
            Some(code)
        );
        let page = server.get("/stats");
        assert!(page.contains(",\"last_reload\":{\"at_s\":") && page.contains(&part), "{page}");
        let page = server.get("/metrics");
        let line = format!("\ngustnado_config_last_reload_successful {metric}\n");
        assert!(page.contains(&line), "{page}");
    }
}

#[test]
fn two_servers_are_not_controlled_at_one_place_and_what_is_left_is_replaced() {
    let place = Place::new();
    let socket = place.path("x.sock");
    let control = socket.to_str().expect("UTF-8");
    let mut first = Server::start(&["--control", control]);
    let found = ended(&mut command(&["--port", "0", "--control", control]));
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stderr.contains("another server is controlled there"), "{found:?}");
    let found = ended(&mut command(&["reload", "--control", control]));
    assert_eq!(found.code, Some(78), "there is no file: {found:?}");
    assert!(found.stderr.contains("no configuration file to read again"), "{found:?}");
    first.signal(Signal::KILL);
    first.wait();
    assert!(socket.exists(), "nothing has removed it");
    let mut second = Server::start(&["--control", control]);
    second.signal(Signal::QUIT);
    assert_eq!(second.wait(), Some(131));
    assert!(!socket.exists(), "it is removed by an end at once, too");
}

#[test]
fn a_change_is_seen_and_a_half_written_file_keeps_what_is_served() {
    let place = Place::new();
    let text = |own: &str| format!("port = 0\nwatch-config = true\ninclude = \"*.part\"\n{own}");
    let file = place.write("site.toml", &text(""));
    place.write("a.part", &answer("one"));
    let mut server = Server::start_by(&mut command(&["serve", &file]));
    wait_for(&server, "one");
    // In place, of a file that is included.
    place.write("a.part", &answer("two"));
    wait_for(&server, "two");
    server.line_with("watch: reloaded ");
    // Half written, in several steps: what is served stays, and it is said once.
    place.write("a.part", "[[route]]\npath = \"/x");
    server.line_with("watch: ");
    server.line_with("was not taken; what was served before is served on");
    place.write("a.part", "[[route]]\npath = \"/x ");
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(server.get("/x").ends_with("two"));
    place.write("a.part", &answer("three"));
    wait_for(&server, "three");
    let line = server.line_with("watch: ");
    assert!(line.contains("reloaded"), "the second half said nothing: {line}");
    // A file that is new by its pattern, and one that goes.
    place.write("b.part", "[headers]\nX-New = \"1\"\n");
    let until = Instant::now() + PATIENCE;
    while !server.get("/x").contains("X-New: 1") {
        assert!(Instant::now() < until, "the new file is not seen");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::remove_file(place.path("b.part")).expect("removed");
    while server.get("/x").contains("X-New: 1") {
        assert!(Instant::now() < until, "the file that went is not seen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kubernetes replaces a link to the folder of a volume: the file itself never changes.
#[test]
fn links_that_are_swapped_as_kubernetes_does_are_seen() {
    let place = Place::new();
    for (folder, text) in [("..one", "one"), ("..two", "two")] {
        fs::create_dir(place.path(folder)).expect("a folder");
        place.write(&format!("{folder}/site.toml"), &format!("port = 0\n{}", answer(text)));
    }
    symlink("..one", place.path("..data")).expect("a link");
    symlink("..data/site.toml", place.path("site.toml")).expect("a link");
    let file = place.path("site.toml");
    let arguments = ["serve", file.to_str().expect("UTF-8"), "--watch-config"];
    let server = Server::start_by(&mut command(&arguments));
    wait_for(&server, "one");
    symlink("..two", place.path("..data_tmp")).expect("a link");
    fs::rename(place.path("..data_tmp"), place.path("..data")).expect("swapped");
    wait_for(&server, "two");
}

#[test]
fn what_cannot_change_says_so_and_serving_goes_on() {
    let place = Place::new();
    let text = |own: &str| format!("port = 0\nwatch-config = true\n{own}");
    let file = place.write("site.toml", &text(&answer("one")));
    let mut server = Server::start_by(&mut command(&["serve", &file]));
    place.write("site.toml", &text(&format!("control = \"x.sock\"\n{}", answer("two"))));
    wait_for(&server, "two");
    let line = server.line_with("watch: reloaded ");
    assert!(line.contains("needs a restart, and stays: control"), "{line}");
}
