//! Links: both address families and Unix sockets, large answers, files, outgoing connections.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use gustnado_tasks::{
    BoxTask, Connection, ConnectionError, Endpoint, ListenerHandle, Outbound, ProgressTimeout,
    Workers,
};

use crate::setup::{
    Setup, anywhere, connect, echo, echo_once, in_task, is_ended, read_some, start,
};

on_every_setup!(
    several_endpoints_are_served_at_once,
    many_clients_get_their_own_bytes_back,
    a_large_answer_reaches_a_slow_reader,
    a_file_is_sent_in_whole_and_one_that_shrank_ends_in_an_error,
    a_file_that_the_kernel_cannot_send_is_read_and_sent,
    a_link_connects_outwards_and_says_who_refuses,
);

const PATIENT: ProgressTimeout = ProgressTimeout { silence_ms: 10_000, rate_min: 0 };

fn several_endpoints_are_served_at_once(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("socket");
    let mut endpoints = vec![anywhere(), Endpoint::Unix(path.clone())];
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    if TcpListener::bind(v6).is_ok() {
        endpoints.push(Endpoint::Tcp(v6));
    } else {
        println!("not tried: this machine has no IPv6");
    }
    let workers = Workers::start(&setup.plan(2)).expect("workers start");
    let listen = |endpoint| {
        let serve = Box::new(|connection| Box::pin(echo(connection)) as BoxTask);
        workers.listen(endpoint, false, serve).expect("it can be bound")
    };
    let listeners: Vec<ListenerHandle> = endpoints.iter().map(listen).collect();
    for _ in 0..5 {
        let mut client = UnixStream::connect(&path).expect("the workers listen");
        client.write_all(b"unix").expect("the server is there");
        let mut answer = [0; 4];
        client.read_exact(&mut answer).expect("an echo comes");
        assert_eq!(&answer, b"unix");
    }
    for listener in &listeners {
        if let Endpoint::Tcp(address) = listener.endpoint() {
            let mut client = std::net::TcpStream::connect(address).expect("the workers listen");
            echo_once(&mut client);
        }
    }
    listeners.iter().for_each(ListenerHandle::stop);
    workers.stop(Duration::from_secs(5));
    assert!(!path.exists(), "the socket file stays behind");
}

fn many_clients_get_their_own_bytes_back(setup: Setup) {
    let workers = start(&setup.plan(2), echo);
    thread::scope(|scope| {
        for client in 0..40_u8 {
            let mut stream = connect(&workers);
            scope.spawn(move || {
                for round in 0..50_usize {
                    let sent = vec![client; 1 + round * 37];
                    stream.write_all(&sent).expect("the server is there");
                    let mut came = vec![0; sent.len()];
                    stream.read_exact(&mut came).expect("an echo comes");
                    assert_eq!(came, sent);
                }
            });
        }
    });
}

fn a_large_answer_reaches_a_slow_reader(setup: Setup) {
    const LEN: usize = 24 << 20;
    let workers = start(&setup.plan(2), |mut connection| async move {
        let mut out = Connection::outgoing();
        out.bytes.extend((0..LEN).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]));
        connection.send(out).await.expect("the reader stays");
    });
    let mut client = connect(&workers);
    let (mut came, mut piece) = (0, vec![0; 1 << 20]);
    loop {
        let len = read_some(&mut client, &mut piece).expect("the answer goes on");
        if len == 0 {
            break;
        }
        let wanted = |at: usize| at.to_le_bytes()[0] ^ at.to_le_bytes()[1];
        assert!((0..len).all(|at| piece[at] == wanted(came + at)), "wrong bytes after {came}");
        came += len;
        if came < LEN / 8 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(came, LEN);
}

fn a_file_is_sent_in_whole_and_one_that_shrank_ends_in_an_error(setup: Setup) {
    const LEN: u64 = 3 << 20;
    let workers = start(&setup.plan(2), |mut connection| async move {
        let mut file = tempfile::tempfile().expect("a temporary file can be made");
        file.write_all(&vec![b'f'; 3 << 20]).expect("there is room for it");
        let whole = connection.send_file(&file, &mut 0, LEN, PATIENT).await;
        assert!(whole.is_ok(), "{whole:?}");
        let short = connection.send_file(&file, &mut (LEN - 10), LEN + 10, PATIENT).await;
        assert!(matches!(short, Err(ConnectionError::FileTruncated)), "{short:?}");
        let mut out = Connection::outgoing();
        out.bytes.extend_from_slice(b"end");
        connection.send(out).await.expect("the reader stays");
    });
    let mut came = Vec::new();
    connect(&workers).read_to_end(&mut came).expect("the answer ends");
    assert_eq!(came.len() as u64, LEN + 10 + 3);
    assert!(came.ends_with(b"ffend"));
}

fn a_file_that_the_kernel_cannot_send_is_read_and_sent(setup: Setup) {
    // `sendfile` from it is EINVAL, as from files of some file systems; reading it is not.
    const ODD: &str = "/proc/self/auxv";
    let wanted = fs::read(ODD).expect("every process has one");
    let len = wanted.len() as u64;
    let workers = start(&setup.plan(1), move |mut connection| async move {
        let file = File::open(ODD).expect("every process has one");
        let sent = connection.send_file(&file, &mut 0, len, PATIENT).await;
        assert!(sent.is_ok(), "{sent:?}");
    });
    let mut came = Vec::new();
    connect(&workers).read_to_end(&mut came).expect("the answer ends");
    assert_eq!(came, wanted);
}

fn a_link_connects_outwards_and_says_who_refuses(setup: Setup) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let open = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
    let peer = thread::spawn(move || {
        let (mut stream, from) = listener.accept().expect("the link connects");
        stream.write_all(b"hello").expect("the link is there");
        stream.shutdown(Shutdown::Write).expect("it is connected");
        let mut came = String::new();
        stream.read_to_string(&mut came).expect("the link sends text");
        (came, from)
    });
    in_task(&setup.plan(1), async move {
        let source = SocketAddr::from(([127, 0, 0, 2], 0));
        let mut connection = Connection::connect(
            &open,
            &Outbound { source: Some(source), ..Outbound::default() },
            5_000,
        )
        .await
        .expect("somebody listens");
        let mut out = Connection::outgoing();
        let came = connection.recv(false).await.map(|piece| piece.bytes().to_vec());
        assert_eq!(came.expect("bytes come"), b"hello");
        assert!(connection.recv(false).await.is_ok_and(|piece| piece.bytes().is_empty()));
        out.bytes.extend_from_slice(b"goodbye");
        connection.send(out).await.expect("the peer still listens");
    });
    let (came, from) = peer.join().expect("the peer ends well");
    assert_eq!((came.as_str(), from.ip().to_string().as_str()), ("goodbye", "127.0.0.2"));
    // Of an address that no other test listens on: they would take a port that was just given up.
    let closed = TcpListener::bind("127.0.0.77:0").and_then(|listener| listener.local_addr());
    let closed = Endpoint::Tcp(closed.expect("a port is free"));
    in_task(&setup.plan(1), async move {
        let refused = Connection::connect(&closed, &Outbound::default(), 5_000).await;
        assert!(
            matches!(&refused, Err(ConnectionError::Broken(error))
            if error.kind() == std::io::ErrorKind::ConnectionRefused),
            "{refused:?}"
        );
    });
    let workers = start(&setup.plan(1), |connection| async move { drop(connection) });
    assert!(is_ended(&mut connect(&workers)));
}
