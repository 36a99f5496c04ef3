//! Which connections the HTTP client makes, keeps and uses again, and how long it waits on them.
//! RFC 9110 §9.2.2; RFC 9112 §9.

use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use gustnado::Endpoint;
use gustnado::client::{ClientError, TimeoutPhase, UrlError};
use gustnado::config::{Config, Io, SchedulerKind};
use gustnado_http::method::Method;
use gustnado_tasks::{sleep, spawn};

use crate::harness::{Server, Setup};
use crate::script::{
    HELLO, Pieces, Script, act, answer, client, get, hasty, in_task, refused, text,
};

on_every_server!(
    a_kept_connection_that_was_closed_is_made_anew_where_that_does_no_harm,
    a_request_alone_has_a_connection_of_its_own,
    a_body_left_unread_closes_its_connection,
    connections_are_kept_within_bounds,
    a_connection_that_said_too_much_is_not_used_again,
    a_slow_server_runs_into_each_time_out,
    a_caller_that_takes_its_time_does_not,
    an_answer_can_be_read_by_another_task,
    who_is_not_there_is_said,
);

#[test]
fn a_plain_thread_asks_inside_block_on() {
    let server = Setup { io: Io::Auto, scheduler: SchedulerKind::Pool }.default_site();
    let url = format!("http://{}/echo", server.address());
    let client = client();
    for _ in 0..3 {
        let asked = async {
            for text in ["one", "two"] {
                let mut answer = client.post(&url).body(text).send().await?;
                assert_eq!(answer.text(9).await?, text);
            }
            assert_eq!(client.connections_kept(), 1);
            Ok::<_, ClientError>(())
        };
        gustnado_tasks::block_on(asked).expect("no worker yet").expect("answers come");
    }
    assert_eq!(client.connections_kept(), 0, "they end with the tasks of their worker");
    assert_eq!(server.stats().connections_accepted, 3);
    server.wait_until_empty();
}

fn a_kept_connection_that_was_closed_is_made_anew_where_that_does_no_harm(setup: Setup) {
    // Closed while nothing was under way, or just when the second request came.
    let closes_idle = || answer(HELLO);
    let closes_late = || {
        act(|peer| {
            peer.read_head();
            peer.send(HELLO);
            peer.read_head();
        })
    };
    let script = Script::start(vec![
        closes_idle(),
        closes_late(), // GET: once more
        closes_late(), // PUT: once more
        closes_late(), // POST: not again
        act(|peer| {
            peer.read_head();
            peer.send(HELLO);
            peer.read_head();
            peer.send("HTTP/1.1 2"); // something was heard: not again
        }),
        answer(HELLO),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await, "hello");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(get(&client, &url).await, "hello");
        assert_eq!(get(&client, &url).await, "hello");
        let put = client.request(Method::Put, &url).body("body");
        assert_eq!(text(put.send().await).await, "hello");
        let error = refused(client.post(&url).body("body").send().await);
        let is_end =
            matches!(error, ClientError::Closed { received: 0, .. } | ClientError::Broken { .. });
        assert!(is_end, "{error:?}");
        assert_eq!(get(&client, &url).await, "hello");
        let error = refused(client.get(&url).send().await);
        assert!(matches!(error, ClientError::Closed { received: 10, .. }), "{error:?}");
        assert_eq!(get(&client, &url).await, "hello");
    });
    script.end();
}

fn a_request_alone_has_a_connection_of_its_own(setup: Setup) {
    let script = Script::start(vec![
        act(|peer| {
            peer.read_head();
            peer.send(HELLO);
            assert!(peer.is_closed(), "kept, and not used by the other");
        }),
        act(|peer| {
            assert!(peer.read_head().contains("\r\nConnection: close\r\n"));
            assert_eq!(peer.read(1), b"x");
            peer.send(HELLO);
            assert!(peer.is_closed(), "it was told that this was the last");
        }),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await, "hello");
        assert_eq!(text(client.post(&url).alone().body("x").send().await).await, "hello");
        assert_eq!(client.connections_kept(), 1);
    });
    script.end();
}

fn a_body_left_unread_closes_its_connection(setup: Setup) {
    let script = Script::start(vec![
        act(|peer| {
            peer.read_head();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
            while peer.send_unless_closed([b'x'; 10_000]) {}
        }),
        act(|peer| {
            peer.read_head();
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
            assert!(peer.is_closed());
        }),
        answer(HELLO),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        let mut large = client.get(&url).send().await.expect("an answer");
        large.next().await.expect("there is more").expect("bytes");
        drop(large);
        drop(client.get(&url).send().await.expect("an answer"));
        assert_eq!(client.connections_kept(), 0);
        assert_eq!(get(&client, &url).await, "hello");
    });
    script.end();
}

fn connections_are_kept_within_bounds(setup: Setup) {
    let server = Server::start(Config { host: "0.0.0.0".to_owned(), ..setup.config() });
    let port = server.address().port();
    let url = format!("http://127.0.0.1:{port}/");
    let client = hasty(|options| {
        options.kept_per_host_max = 2;
        options.kept_max = 3;
        options.keep_timeout = Duration::from_millis(400);
    });
    in_task(setup, async move {
        let host = |name: &str| format!("http://{name}:{port}/");
        let tasks = (0..5).map(|_| {
            let (client, url) = (client.clone(), url.clone());
            spawn(async move { get(&client, &url).await.len() }).expect("a slot")
        });
        for task in tasks.collect::<Vec<_>>() {
            assert!(task.await.expect("no panic") > 0);
        }
        assert!((1..=2).contains(&client.connections_kept()), "{}", client.connections_kept());
        for name in ["localhost", "LOCALHOST", "127.0.0.2", "127.0.0.3", "[::ffff:127.0.0.1]"] {
            get(&client, &host(name)).await;
        }
        assert_eq!(client.connections_kept(), 3);
        let began = Instant::now();
        while client.connections_kept() > 0 {
            assert!(began.elapsed() < Duration::from_secs(5), "kept for ever");
            sleep(Duration::from_millis(20)).await;
        }
        get(&client, &url).await;
        assert_eq!(client.connections_kept(), 1, "a new rack after the old one");
        drop(client);
        sleep(Duration::from_millis(20)).await;
    });
    server.wait_until_empty();
}

fn a_connection_that_said_too_much_is_not_used_again(setup: Setup) {
    let script = Script::start(vec![
        act(|peer| {
            peer.read_head();
            peer.send(format!("{HELLO}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
            assert!(peer.is_closed());
        }),
        act(|peer| {
            peer.read_head();
            peer.send(HELLO);
            thread::sleep(Duration::from_millis(30));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
            assert!(peer.is_closed());
        }),
        answer(HELLO),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = client();
        assert_eq!(get(&client, &url).await, "hello");
        assert_eq!(client.connections_kept(), 0);
        assert_eq!(get(&client, &url).await, "hello");
        sleep(Duration::from_millis(100)).await;
        assert_eq!(get(&client, &url).await, "hello");
    });
    script.end();
}

fn a_slow_server_runs_into_each_time_out(setup: Setup) {
    let waits = |parts: &'static [&'static str], every_ms| {
        act(move |peer| {
            peer.read_head();
            for part in parts {
                thread::sleep(Duration::from_millis(every_ms));
                if !peer.send_unless_closed(part) {
                    return;
                }
            }
            while !peer.read_some().is_empty() {}
        })
    };
    let dripping: &[&str] = &["HTTP/1.1 200 OK\r\nX: ", "a", "a", "a", "a", "a", "a", "a"];
    let bytes: &[&str] = &["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "a", "a", "a", "a", "a"];
    let script = Script::start(vec![
        waits(&[], 0),
        waits(dripping, 30),
        waits(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na"], 0),
        waits(bytes, 30),
    ]);
    let url = script.url("/");
    in_task(setup, async move {
        let short = Duration::from_millis(100);
        let expired = |error: ClientError, wanted: TimeoutPhase, began: Instant| {
            let took = began.elapsed();
            // Times are whole milliseconds, and a busy thread has looked at its clock before.
            let nearly = took + Duration::from_millis(20);
            assert!(nearly >= short && took < 50 * short, "{took:?}: {error}");
            assert!(
                matches!(&error, ClientError::Timeout { waiting, after, .. }
                    if *waiting == wanted && *after == short),
                "{error}"
            );
            assert!(error.is_timeout());
        };
        let client = hasty(|options| {
            options.head_timeout = short;
            options.idle_timeout = short;
        });
        for _ in 0..2 {
            let began = Instant::now();
            expired(refused(client.get(&url).send().await), TimeoutPhase::Head, began);
        }
        let mut answer = client.get(&url).send().await.expect("a head");
        let began = Instant::now();
        let error = answer.bytes(9).await.expect_err("no more comes");
        expired(error, TimeoutPhase::Bytes, began);
        let began = Instant::now();
        let mut answer = client.get(&url).total_timeout(short).send().await.expect("a head");
        let error = answer.bytes(9).await.expect_err("not all of it in time");
        expired(error, TimeoutPhase::Total, began);
    });
    script.end();
}

fn a_caller_that_takes_its_time_does_not(setup: Setup) {
    let script = Script::start(vec![act(|peer| {
        peer.read_head();
        assert_eq!(peer.read_until(b"0\r\n\r\n"), b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
        thread::sleep(Duration::from_millis(450));
        peer.send("1\r\ny\r\n0\r\n\r\n");
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| {
            options.head_timeout = Duration::from_millis(200);
            options.idle_timeout = Duration::from_millis(200);
        });
        let slow = Pieces::new(["a", "b"]).every(Duration::from_millis(250));
        let mut answer = client.post(&url).stream(None, slow).send().await.expect("an answer");
        assert_eq!(answer.next().await.expect("more").expect("bytes"), "x");
        sleep(Duration::from_millis(400)).await;
        assert_eq!(answer.next().await.expect("more").expect("bytes"), "y");
        assert!(answer.next().await.is_none());
    });
    script.end();
}

fn an_answer_can_be_read_by_another_task(setup: Setup) {
    let script = Script::start(vec![act(|peer| {
        peer.read_head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na");
        while !peer.read_some().is_empty() {}
    })]);
    let url = script.url("/");
    in_task(setup, async move {
        let client = hasty(|options| {
            options.head_timeout = Duration::from_millis(150);
            options.idle_timeout = Duration::from_millis(400);
        });
        let mut answer = client.get(&url).send().await.expect("an answer");
        let began = Instant::now();
        let reader = spawn(async move {
            assert_eq!(answer.next().await.expect("more").expect("bytes"), "a");
            // Half of the waiting is this task's, half is another one's, whose alarm it must be.
            let waited = gustnado_tasks::timeout(Duration::from_millis(200), answer.next()).await;
            assert!(waited.is_none());
            spawn(async move { answer.next().await }).expect("a slot").await.expect("no panic")
        });
        let end = reader.expect("a slot").await.expect("no panic");
        let error = end.expect("not the end").expect_err("no more comes");
        assert!(error.is_timeout() && began.elapsed() < Duration::from_secs(2), "{error}");
    });
    script.end();
}

fn who_is_not_there_is_said(setup: Setup) {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
    let closed = closed.expect("a free port");
    in_task(setup, async move {
        let client = hasty(|options| options.connect_timeout = Duration::from_millis(300));
        let error = refused(client.get(&format!("http://{closed}/")).send().await);
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(&closed.to_string()), "{error}");
        let error = refused(client.get("http://nobody.invalid/").send().await);
        let is_unknown = matches!(error, ClientError::Resolve { .. }) || error.is_timeout();
        assert!(is_unknown, "{error}");
        let path = Endpoint::Unix("/nobody/listens/here".into());
        let error = refused(client.get("http://a/").via(path).send().await);
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
        for (url, wanted) in [
            #[cfg(not(feature = "tls-any"))]
            ("https://a/", UrlError::Tls),
            ("ftp://a/", UrlError::Scheme),
            ("http://u:secret@a/", UrlError::UserInformation),
            ("http://a b/", UrlError::Host),
            ("http://a/ b", UrlError::Target),
            ("http://a/\r\nX: y", UrlError::Target),
        ] {
            let error = refused(client.get(url).send().await);
            assert!(matches!(error, ClientError::Url { error, .. } if error == wanted), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    });
    let nowhere = client().get("http://127.0.0.1/").send();
    let mut nowhere = std::pin::pin!(nowhere);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let outcome = std::future::Future::poll(nowhere.as_mut(), &mut context);
    assert!(
        matches!(outcome, std::task::Poll::Ready(Err(ClientError::NoWorker))),
        "a plain thread has no sockets"
    );
}
