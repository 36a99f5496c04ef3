//! `WebSocket`s of the client: with our own server, and with a peer that plays a script. RFC 6455,
//! RFC 7692, RFC 8441.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gustnado::Routes;
use gustnado::client::{Client, ClientError, ClientOptions, Http2Use};
use gustnado::config::Config;
use gustnado::websocket::{
    CloseCode, DeflateOptions, MessageKind, OpenError, SendError, Topic, WebSocket, WebSocketError,
    WebSocketMessage, WebSocketRequest, websocket,
};
use gustnado_http::websocket::{Opcode, WebSocketHeader, write};
use gustnado_tasks::{sleep, spawn};

use crate::harness::folder::noise;
use crate::harness::{Server, Setup, wait_until};
use crate::script::{Act, Peer, Script, act, answer, client, in_task};

on_every_server!(
    messages_go_both_ways,
    more_than_fits_anywhere_goes_both_ways,
    messages_are_compressed_as_agreed,
    a_total_timeout_is_for_the_handshake,
    a_subprotocol_is_chosen,
    what_a_server_refuses_is_said,
    handshakes_that_are_none_are_refused,
    both_sides_close_with_their_codes,
    dropping_it_ends_the_connection,
    senders_of_other_tasks_reach_the_server,
    both_halves_are_used_in_two_tasks,
    a_sender_that_waits_learns_of_the_end,
    frames_are_masked_and_pings_answered,
    a_silent_server_is_pinged_and_given_up,
    servers_that_break_a_rule_are_told,
);

/// What the server's end of each socket has heard at its end.
type Closes = Arc<Mutex<Vec<(u16, String)>>>;

async fn echo(mut socket: WebSocket, closes: Closes) {
    while let Ok(Some(message)) = socket.recv().await {
        if message.text() == Some("close") {
            socket.close(CloseCode(4_001), "as asked");
        } else if socket.send(message).await.is_err() {
            break;
        }
    }
    if let Some(close) = socket.peer_close() {
        let mut closes = closes.lock().unwrap_or_else(PoisonError::into_inner);
        closes.push((close.code.0, close.reason));
    }
}

fn server(setup: Setup) -> (Server, Closes) {
    let closes = Closes::default();
    let all = Arc::clone(&closes);
    let endpoint = websocket(move |socket| echo(socket, Arc::clone(&all)))
        .subprotocols(&["chat", "old"])
        .deflate(Some(DeflateOptions { keeps_context: true, window_bits_max: 15 }));
    let config = Config { h2c: true, ..setup.patient_config() };
    (Server::routes(config, Routes::new().get("/echo", endpoint)), closes)
}

fn by_http2() -> Client {
    Client::new(ClientOptions { http2: Http2Use::Always, ..ClientOptions::default() })
}

fn url(server: &Server) -> String {
    format!("ws://{}/echo", server.address())
}

async fn open(client: &Client, url: &str) -> WebSocket {
    WebSocketRequest::new(client, url).open().await.expect("it is opened")
}

async fn text(socket: &mut WebSocket) -> String {
    match socket.recv().await {
        Ok(Some(WebSocketMessage::Text(text))) => text,
        other => panic!("no text, but {other:?}"),
    }
}

fn messages_go_both_ways(setup: Setup) {
    let (server, closes) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let mut socket = open(&client, &url).await;
            assert_eq!(socket.subprotocol(), None);
            for len in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
                let all = "x".repeat(len);
                socket.send_text(&all).await.expect("it is open");
                assert!(text(&mut socket).await == all, "{len}");
                let bytes = noise(1, len);
                socket.send(bytes.clone()).await.expect("it is open");
                let back = socket.recv().await.expect("no error").expect("a message");
                assert!(back == WebSocketMessage::Binary(bytes), "{len}");
            }
            // Pieces are one message.
            socket.send_piece(MessageKind::Text, "Zü".as_bytes(), false).await.expect("it is open");
            socket.send_piece(MessageKind::Text, b"rich", true).await.expect("it is open");
            assert_eq!(text(&mut socket).await, "Zürich");
            socket.end(CloseCode(3_000), "that is all").await;
        }
    });
    let all = vec![(3_000, "that is all".to_owned()); 2];
    wait_until("both ends are heard", || *closes.lock().expect("no panic") == all);
    server.wait_until_empty();
}

fn more_than_fits_anywhere_goes_both_ways(setup: Setup) {
    let (server, _) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let request = WebSocketRequest::new(&client, &url).deflate(None);
            let mut socket = request.open().await.expect("it is opened");
            let sender = socket.sender();
            let sending = spawn(async move {
                for round in 0..100 {
                    sender.send(noise(round, 100_000)).await.expect("it is open");
                }
            });
            // Nobody reads at first.
            sleep(Duration::from_millis(100)).await;
            for round in 0..100 {
                let back = socket.recv().await.expect("no error").expect("a message");
                assert!(back == WebSocketMessage::Binary(noise(round, 100_000)), "{round}");
            }
            _ = sending.expect("there is room for a task").await;
        }
    });
}

fn messages_are_compressed_as_agreed(setup: Setup) {
    let (server, _) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for (keeps_context, window_bits_max) in [(false, 15), (true, 15), (true, 9)] {
            let wanted = DeflateOptions { keeps_context, window_bits_max };
            for wanted in [Some(wanted), None] {
                let request = WebSocketRequest::new(&client(), &url).deflate(wanted);
                let mut socket = request.open().await.expect("it is opened");
                for _ in 0..3 {
                    let all = "Gustnado ".repeat(10_000);
                    socket.send_text(&all).await.expect("it is open");
                    assert!(text(&mut socket).await == all, "{wanted:?}");
                }
            }
        }
    });
    // Half of them were: 9 messages of 90 KB each way.
    server.wait_until_empty();
    let sent = server.stats().bytes_sent;
    assert!((810_000..900_000).contains(&sent), "{sent}");
}

fn a_total_timeout_is_for_the_handshake(setup: Setup) {
    let (server, _) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        let total_timeout = Some(Duration::from_millis(300));
        for http2 in [Http2Use::default(), Http2Use::Always] {
            let options = ClientOptions { http2, total_timeout, ..ClientOptions::default() };
            let mut socket = open(&Client::new(options), &url).await;
            sleep(Duration::from_millis(400)).await;
            socket.send("still open").await.expect("it is open");
            assert_eq!(text(&mut socket).await, "still open", "{http2:?}");
        }
    });
}

fn a_subprotocol_is_chosen(setup: Setup) {
    let (server, _) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let request = WebSocketRequest::new(&client, &url).subprotocols(&["new", "old"]);
            let socket = request.open().await.expect("it is opened");
            assert_eq!(socket.subprotocol().as_deref(), Some("old"));
        }
    });
}

async fn refused(request: WebSocketRequest) -> OpenError {
    request.open().await.expect_err("it is refused")
}

fn what_a_server_refuses_is_said(setup: Setup) {
    let (server, _) = server(setup);
    let (url, missing) = (url(&server), format!("ws://{}/missing", server.address()));
    let unknown = Server::routes(setup.config(), Routes::new());
    let h2 = format!("ws://{}/", unknown.address());
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let error = refused(WebSocketRequest::new(&client, &missing)).await;
            assert!(matches!(error, OpenError::Refused { status: 404 | 501 }), "{error}");
            let request = WebSocketRequest::new(&client, &url);
            let error = refused(request.header("Origin", "https://other.example")).await;
            assert!(matches!(error, OpenError::Refused { status: 403 }), "{error}");
        }
        let error = refused(WebSocketRequest::new(&client(), "wss:/a")).await;
        assert!(matches!(error, OpenError::Request(ClientError::Url { .. })), "{error}");
        // A server that speaks no HTTP/2.
        let error = refused(WebSocketRequest::new(&by_http2(), &h2)).await;
        assert!(matches!(error, OpenError::Request(_)), "{error}");
    });
}

/// The head of a response to a handshake.
fn accepted(head: &str, more: &str) -> String {
    let key = head.split("Sec-WebSocket-Key: ").nth(1).and_then(|rest| rest.split('\r').next());
    let accept = accept_of(key.expect("a key"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: WebSocket\r\nSec-WebSocket-Accept: {accept}\r\n{more}\r\n"
    )
}

/// As RFC 6455 §4.2.2 has it, by another implementation.
fn accept_of(key: &str) -> String {
    use std::process::{Command, Stdio};

    let script = "import sys, base64, hashlib; print(base64.b64encode(hashlib.sha1((sys.argv[1] \
                  + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode())";
    let python = Command::new("python3").args(["-c", script, key]).stdout(Stdio::piped()).output();
    String::from_utf8(python.expect("Python runs").stdout).expect("ASCII").trim().to_owned()
}

fn handshakes_that_are_none_are_refused(setup: Setup) {
    let with = |more: &'static str| {
        act(move |peer| {
            let head = peer.read_head();
            peer.send(accepted(&head, more));
        })
    };
    let acts: Vec<(Act, &str)> = vec![
        (with("Sec-WebSocket-Protocol: other\r\n"), "subprotocol"),
        (with("Sec-WebSocket-Extensions: x-other\r\n"), "extension"),
        (with("Sec-WebSocket-Extensions: permessage-deflate; what\r\n"), "extension"),
        (
            answer(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            ),
            "Accept",
        ),
        (
            answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h\r\n\r\n"),
            "protocol",
        ),
        (answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "200"),
        (answer("HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n"), "503"),
    ];
    let (acts, words): (Vec<Act>, Vec<&str>) = acts.into_iter().unzip();
    let script = Script::start(acts);
    let url = script.url("/");
    in_task(setup, async move {
        for word in words {
            let request = WebSocketRequest::new(&client(), &url).subprotocols(&["chat"]);
            let error = refused(request).await.to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    });
    script.end();
}

fn both_sides_close_with_their_codes(setup: Setup) {
    let (server, closes) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let mut socket = open(&client, &url).await;
            socket.send("close").await.expect("it is open");
            assert_eq!(socket.recv().await.expect("no error"), None);
            let close = socket.peer_close().expect("it has closed");
            assert_eq!((close.code.0, &*close.reason), (4_001, "as asked"));
            assert_eq!(socket.send("late").await, Err(SendError::Closed));
            socket.end(CloseCode::NORMAL, "").await;
        }
    });
    let all = vec![(4_001, String::new()); 2];
    wait_until("the answers are heard", || *closes.lock().expect("no panic") == all);
}

fn dropping_it_ends_the_connection(setup: Setup) {
    let (server, closes) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let mut socket = open(&client, &url).await;
            let sender = socket.sender();
            socket.send("hello").await.expect("it is open");
            assert_eq!(text(&mut socket).await, "hello");
            drop(socket);
            while !sender.is_closed() {
                sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(sender.send("late").await, Err(SendError::Closed));
        }
    });
    let all = vec![CloseCode::NORMAL.0; 2];
    let codes = |closes: &Closes| {
        closes.lock().expect("no panic").iter().map(|(code, _)| *code).collect::<Vec<_>>()
    };
    wait_until("the ends are seen", || codes(&closes) == all);
    server.wait_until_empty();
}

fn senders_of_other_tasks_reach_the_server(setup: Setup) {
    let (server, _) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let mut socket = open(&client, &url).await;
            let (sender, topic) = (socket.sender(), Topic::new());
            let subscription = topic.subscribe(&socket);
            _ = spawn(async move {
                sleep(Duration::from_millis(20)).await;
                sender.send("from a task").await.expect("it is open");
                sleep(Duration::from_millis(20)).await;
                topic.publish("x".repeat(5_000));
            });
            assert_eq!(text(&mut socket).await, "from a task");
            assert_eq!(text(&mut socket).await, "x".repeat(5_000));
            drop(subscription);
        }
    });
}

fn both_halves_are_used_in_two_tasks(setup: Setup) {
    let (server, closes) = server(setup);
    let url = url(&server);
    in_task(setup, async move {
        for client in [client(), by_http2()] {
            let (sender, mut receiver) = open(&client, &url).await.split();
            let receiving = spawn(async move {
                let mut texts = Vec::new();
                while let Ok(Some(message)) = receiver.recv().await {
                    texts.push(message.text().unwrap_or("?").to_owned());
                }
                (texts, receiver.peer_close())
            });
            for number in 0..50 {
                sender.send(number.to_string()).await.expect("it is open");
                if number % 10 == 0 {
                    sleep(Duration::from_millis(5)).await;
                }
            }
            sender.close(CloseCode(4_002), "all sent");
            let (texts, close) = receiving.expect("there is room").await.expect("no panic");
            assert_eq!(texts, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
            assert_eq!(close.expect("it has closed").code.0, 4_002);
            assert_eq!(sender.send("late").await, Err(SendError::Closed));
        }
    });
    let all = vec![(4_002, "all sent".to_owned()); 2];
    wait_until("the closes are heard", || *closes.lock().expect("no panic") == all);
    server.wait_until_empty();
}

fn a_sender_that_waits_learns_of_the_end(setup: Setup) {
    let unread = websocket(async |_socket: WebSocket| sleep(Duration::from_mins(1)).await);
    let server = Server::routes(setup.patient_config(), Routes::new().get("/echo", unread));
    let url = url(&server);
    in_task(setup, async move {
        let request = WebSocketRequest::new(&client(), &url).deflate(None);
        let request = request.close_timeout(Duration::from_millis(50));
        let (sender, receiver) = request.open().await.expect("it is opened").split();
        let sending = spawn(async move {
            loop {
                if let Err(error) = sender.send("x".repeat(500_000)).await {
                    return error;
                }
            }
        });
        // Until all buffers are full.
        sleep(Duration::from_millis(200)).await;
        drop(receiver);
        let error = sending.expect("there is room").await.expect("no panic");
        assert_eq!(error, SendError::Closed);
    });
}

/// A frame as a server sends it, unless it has a mask.
fn frame(opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut out = Vec::new();
    let header = WebSocketHeader { opcode, is_final: true, is_compressed: false, mask, len: 0 };
    write(header, payload, &mut out);
    out
}

/// Reads a short frame of the client. Returns its opcode, mask and payload.
fn read(peer: &mut Peer) -> (u8, [u8; 4], Vec<u8>) {
    let head = peer.read(2);
    assert!(head[1] & 0x80 != 0 && head[1] & 0x7f < 126, "{head:?}");
    let mask: [u8; 4] = peer.read(4).try_into().expect("four bytes");
    let mut payload = peer.read(usize::from(head[1] & 0x7f));
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    (head[0], mask, payload)
}

/// A server that has accepted, and has sent this with its head.
fn opened(first: Vec<u8>, then: impl FnOnce(&mut Peer) + Send + 'static) -> Act {
    act(move |peer| {
        let head = peer.read_head();
        peer.send([accepted(&head, "").into_bytes(), first].concat());
        then(peer);
    })
}

fn frames_are_masked_and_pings_answered(setup: Setup) {
    let first = [frame(Opcode::Text, b"first", None), frame(Opcode::Ping, b"why", None)].concat();
    let script = Script::start(vec![opened(first, |peer| {
        let texts = [read(peer), read(peer)];
        assert_eq!((texts[0].0, &*texts[0].2), (0x81, &b"hello"[..]));
        // It is read when something is received again.
        let pong = read(peer);
        assert_eq!((pong.0, &*pong.2), (0x8a, &b"why"[..]));
        assert!(texts[0].1 != texts[1].1 && texts[0].1 != pong.1, "each has its own mask");
        peer.send(frame(Opcode::Close, b"", None));
        assert_eq!(read(peer).2, 1000_u16.to_be_bytes());
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let mut socket = open(&client(), &url).await;
        assert_eq!(text(&mut socket).await, "first");
        socket.send("hello").await.expect("it is open");
        socket.send("hello").await.expect("it is open");
        assert_eq!(socket.recv().await.expect("no error"), None);
        assert_eq!(socket.peer_close().expect("closed").code, CloseCode::NO_STATUS);
        socket.end(CloseCode::NORMAL, "").await;
    });
    script.end();
}

fn a_silent_server_is_pinged_and_given_up(setup: Setup) {
    let script = Script::start(vec![opened(Vec::new(), |peer| {
        assert_eq!(read(peer).0, 0x89);
        peer.send(frame(Opcode::Pong, b"", None));
        assert_eq!(read(peer).0, 0x89);
        assert!(peer.is_closed(), "it is given up");
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let request = WebSocketRequest::new(&client(), &url);
        let ping = Some(Duration::from_millis(100));
        let request = request.ping(ping).ping_timeout(Duration::from_millis(100));
        let mut socket = request.open().await.expect("it is opened");
        let error = socket.recv().await.expect_err("the server is silent");
        assert!(matches!(error, WebSocketError::TimedOut), "{error}");
    });
    script.end();
}

fn servers_that_break_a_rule_are_told(setup: Setup) {
    let wrong = [
        (frame(Opcode::Text, b"masked", Some([1, 2, 3, 4])), 1002_u16),
        (frame(Opcode::Text, b"\xff", None), 1007),
        (vec![0xc1, 0], 1002),
        (frame(Opcode::Text, &[b'x'; 101], None), 1009),
    ];
    let acts = wrong.map(|(bytes, code)| {
        opened(bytes, move |peer| {
            let close = read(peer);
            assert_eq!((close.0, &close.2[..2]), (0x88, &code.to_be_bytes()[..]));
        })
    });
    let count = acts.len();
    let script = Script::start(acts.into());
    let url = script.url("/");
    in_task(setup, async move {
        for _ in 0..count {
            let request = WebSocketRequest::new(&client(), &url).deflate(None);
            let request = request.message_bytes_max(100);
            let mut socket = request.open().await.expect("it is opened");
            let error = socket.recv().await.expect_err("a rule is broken");
            assert!(matches!(error, WebSocketError::Violation(_)), "{error}");
            assert_eq!(socket.recv().await.expect("it was told"), None);
        }
    });
    script.end();
}
