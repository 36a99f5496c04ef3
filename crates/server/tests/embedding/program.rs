//! A program of a few lines, as the documents show it: what it says when it starts, and when it
//! cannot.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/embed.rs"]
mod embed;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio, Termination};

use gustnado::{Request, Server};

/// Says in the process of the program where it is to listen.
const LISTEN: &str = "GUSTNADO_TEST_LISTEN";

/// The form of every example.
fn program(address: &str) -> gustnado::Result<()> {
    Server::new().workers(1).get("/", |_: &Request| "hello").listen(address)?.run()
}

/// (Run by the tests below, in a process of its own.)
#[test]
fn the_program_itself() {
    if let Ok(address) = std::env::var(LISTEN) {
        let code = program(&address).report();
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
}

/// Starts it.
fn start(address: &str) -> Child {
    let (_, place) = module_path!().split_once("::").expect("the name of this binary comes first");
    Command::new(std::env::current_exe().expect("the path of this test binary"))
        .args([&format!("{place}::the_program_itself"), "--exact", "--nocapture"])
        .env(LISTEN, address)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test binary runs once more")
}

#[test]
fn a_program_whose_port_is_taken_says_so_in_words() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it listens").to_string();
    let output = start(&address).wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let wanted = format!(
        "Error: cannot listen on {address}: another process listens there; end it, or take another \
         port with --port (0 picks a free one)\n"
    );
    assert_eq!(said, wanted);
}

#[test]
fn a_program_says_where_it_listens_until_it_is_told_to_stop() {
    let mut child = start("127.0.0.1:0");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
    lines.read_line(&mut said).expect("a line");
    let url = said.split(" listens on http://").nth(1).unwrap_or_else(|| panic!("{said}"));
    let address: SocketAddr = url.trim_end().trim_end_matches('/').parse().expect("an address");
    let mut client = TcpStream::connect(address).expect("it listens there");
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it takes a request");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn the_readme_shows_a_program_that_compiles() {
    let readme = include_str!("../../../../README.md");
    let section = readme.split_once("\n## Embed it\n").expect("the section").1;
    let code = section.split_once("```rust,no_run\n").expect("its code").1;
    let code = code.split_once("```\n").expect("its end").0;
    let example = include_str!("../../examples/embed.rs");
    assert_eq!(example.split_once("\n\n").expect("a line for people first").1, code);
}
