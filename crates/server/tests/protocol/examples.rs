//! The examples, as they are shown to people.

#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/chat.rs"]
mod chat;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/echo_client.rs"]
mod echo_client;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/echo_server.rs"]
mod echo_server;
#[expect(dead_code, reason = "an example's `main` is for people")]
#[path = "../../examples/upload.rs"]
mod upload;

use std::net::TcpListener;
use std::time::Duration;

use gustnado::protocol::{Backoff, Port, Retry};

use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::{Client, Folder, Server, Setup};
use crate::tape::{Tape, connect, engine};

fn lines(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

pub(crate) fn the_echo_examples_speak_with_each_other(setup: Setup) {
    let (server, client, tape) = (engine(setup), engine(setup), Tape::default());
    let port = echo_server::serve(&server, "127.0.0.1:0").expect("a port");
    let noted = tape.clone();
    let tell = move |line: &str| noted.note(line);
    let address = port.address().to_string();
    let said = lines(&["hello", "", "world"]);
    echo_client::talk(&client, &address, said, Retry::default(), tell).expect("an address");
    client.run();
    assert_eq!(*tape.entries(), ["hello", "", "world"]);
}

pub(crate) fn the_echo_client_waits_for_its_server(setup: Setup) {
    let (server, client, tape) = (engine(setup), engine(setup), Tape::default());
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let noted = tape.clone();
    let tell = move |line: &str| noted.note(line);
    let retry = Retry::new(Backoff { initial: Duration::from_millis(10), ..Backoff::default() });
    let said = lines(&["at last"]);
    echo_client::talk(&client, &free.to_string(), said, retry, tell).expect("an address");
    tape.wait_for(&format!("{free}: no connection could be made"));
    echo_server::serve(&server, &free.to_string()).expect("the port is free");
    tape.wait_for("at last");
    client.run();
}

fn enter(port: &Port, name: &str) -> Client {
    let mut client = connect(port);
    expect(&mut client, "What is your name?");
    client.send(format!("{name}\r\n"));
    expect(&mut client, &format!("{name} is here."));
    client
}

fn expect(client: &mut Client, line: &str) {
    let came = client.take(line.len() + 2).expect("a line");
    assert_eq!(String::from_utf8_lossy(&came), format!("{line}\r\n"));
}

pub(crate) fn a_chat_is_heard_by_all(setup: Setup) {
    let engine = engine(setup);
    let port = chat::serve(&engine, "127.0.0.1:0").expect("a port");
    let mut anna = enter(&port, "Anna");
    let mut bert = enter(&port, "Bert");
    expect(&mut anna, "Bert is here.");
    let mut cleo = connect(&port);
    expect(&mut cleo, "What is your name?");
    cleo.send("Anna\r\n");
    expect(&mut cleo, "Another name, please.");
    cleo.send("Cleo\r\n");
    for client in [&mut anna, &mut bert, &mut cleo] {
        expect(client, "Cleo is here.");
    }
    for round in 0..50 {
        anna.send(format!("round {round}\r\n"));
        for client in [&mut anna, &mut bert, &mut cleo] {
            expect(client, &format!("Anna: round {round}"));
        }
    }
    drop(bert);
    expect(&mut anna, "Bert has left.");
    expect(&mut cleo, "Bert has left.");
    // Whoever says too much at once is out; the others stay.
    cleo.send([b'x'; 1_001]);
    cleo.send_unless_closed("\r\n");
    cleo.expect_end("a line with one byte too many");
    expect(&mut anna, "Cleo has left.");
}

pub(crate) fn an_upload_is_listed_and_served(setup: Setup) {
    let folder = Folder::new();
    let server = Server::routes(setup.config(), upload::routes(&folder.root()));
    let mut client = server.connect();
    let page = client.get("/");
    assert!(page.text().contains("enctype=multipart/form-data"), "{}", page.text());
    let big = noise(1, 1_500_000);
    let files: [(&str, &[u8]); 3] =
        [("a <b> & c.html", b"<script>alert(1)</script>"), ("../../big.bin", &big), ("", b"")];
    let mut body = Vec::new();
    for (name, data) in files {
        let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"";
        body.extend([head.as_bytes(), name.as_bytes(), b"\"\r\n\r\n", data, b"\r\n"].concat());
    }
    body.extend(b"--x--\r\n");
    let fields = format!(
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n",
        body.len()
    );
    let answer = client.ask([request("POST", "/", &fields).as_bytes(), &body].concat());
    assert_eq!((answer.status, answer.expect_field("location")), (303, "/"));
    let page = client.get("/").text();
    let listed =
        "<li><a href=\"/files/a%20%3Cb%3E%20%26%20c.html\">a &lt;b> &amp; c.html</a> 25 bytes";
    assert!(page.contains(listed), "{page}");
    assert!(page.contains("<a href=\"/files/big.bin\">big.bin</a> 1500000 bytes"), "{page}");
    assert_eq!(page.matches("<li>").count(), 2, "{page}");
    assert!(client.get("/files/big.bin").body == big);
    let inert = client.get("/files/a%20%3Cb%3E%20%26%20c.html");
    assert_eq!(inert.expect_field("content-security-policy"), "sandbox");
    let long = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 104857601\r\n";
    assert_eq!(client.ask(request("POST", "/", long)).status, 413);
}
