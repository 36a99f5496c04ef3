//! The same over HTTP/2: what gRPC, events and uploads are made of. (Whole programs, tonic's and
//! axum's examples among them, are in `conformance/program`.)

use std::convert::Infallible;
use std::future::pending;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, Version};
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::{get, post};
use futures_core::Stream;
use gustnado::config::Config;
use gustnado::{Routes, tower};
use gustnado_http::h2::ErrorCode;
use gustnado_http::h2::frame::{flag, kind};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::harness::alive::Alive;
use crate::harness::client::request;
use crate::harness::folder::noise;
use crate::harness::http2::Http2Client;
use crate::harness::transport::TransportKind;
use crate::harness::{Server, Setup, wait_until};
use crate::streams::{Pieces, Slow, slowly};

/// In clear, whatever the others speak: the client is one of frames.
fn serve(setup: Setup, app: Router) -> Server {
    let config = Config { h2c: true, tls_cert: None, tls_key: None, ..setup.patient_config() };
    let config = Config { limit_body_bytes: 8 << 20, ..config };
    Server::routes(config, Routes::new().fallback(tower(app)))
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from_static("0"))])
}

fn sum_of(answer: &[(String, String)]) -> Option<&str> {
    answer.iter().find(|(name, _)| name == "grpc-status").map(|(_, value)| value.as_str())
}

pub(crate) fn an_app_is_told_that_it_is_http2(setup: Setup) {
    let tell = async |version: Version, uri: Uri, fields: HeaderMap| {
        format!("{version:?} {uri} {:?} {:?}", fields["host"], fields["cookie"])
    };
    let server = serve(setup, Router::new().fallback(tell));
    let mut client = Http2Client::connect(server.address());
    let id = client.request("GET", "/p?q", &[("cookie", "a=1"), ("cookie", "b=2")], true);
    let text = client.answer(id).text();
    assert_eq!(text, "HTTP/2.0 /p?q \"gust.example\" \"a=1; b=2\"");
}

/// As a call of gRPC goes: each message is responded to before the next one is sent, and the status
/// is behind them.
pub(crate) fn a_call_both_ways_ends_with_trailers(setup: Setup) {
    let echo = async |body: Body| Body::new(body.with_trailers(async { Some(Ok(trailers())) }));
    let server = serve(setup, Router::new().route("/", post(echo)));
    let mut client = Http2Client::connect(server.address());
    // (TE is sent by gRPC, and by few others.)
    for fields in [&[("te", "trailers")][..], &[]] {
        let id = client.request("POST", "/", fields, false);
        assert_eq!(client.wait_for(id, |answer| answer.status == 200).body, b"");
        for count in 1..=20 {
            client.send_data(id, b"message", false);
            client.wait_for(id, |answer| answer.body.len() == 7 * count);
        }
        client.send_data(id, b"", true);
        let answer = client.answer(id);
        assert_eq!((answer.reset, sum_of(&answer.trailers)), (None, Some("0")), "{answer:?}");
    }
}

/// In either version: what a service of gRPC's web variant, or one that checks sums, reads.
pub(crate) fn trailers_of_a_request_are_its_last_frame(setup: Setup) {
    let tell = async |mut body: Body| {
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.expect("the body is whole");
            seen.push(match frame.into_data() {
                Ok(data) => format!("{data:?}"),
                Err(frame) => format!("{:?}", frame.into_trailers().expect("trailers")),
            });
        }
        format!("{} {}", seen.join(" "), http_body::Body::is_end_stream(&body))
    };
    let server = serve(setup, Router::new().route("/", post(tell)));
    let wanted = r#"b"body" {"x-sum": "4"} true"#;
    let mut client = Http2Client::connect(server.address());
    for (fields, wanted) in [(&b"\0\x05x-sum\x014"[..], wanted), (b"", r#"b"body" true"#)] {
        let id = client.request("POST", "/", &[], false);
        client.send_data(id, b"body", false);
        let flags = flag::END_HEADERS | flag::END_STREAM;
        client.send_frame(kind::HEADERS, flags, id, fields);
        assert_eq!(client.answer(id).text(), wanted);
    }
    if TransportKind::chosen() == TransportKind::Plain {
        let chunked = request("POST", "/", "Transfer-Encoding: chunked\r\n");
        let answer = server.ask(chunked.clone() + "4\r\nbody\r\n0\r\nX-Sum: 4\r\n\r\n");
        assert_eq!(answer.text(), wanted);
        assert_eq!(server.ask(chunked + "4\r\nbody\r\n0\r\n\r\n").text(), r#"b"body" true"#);
    }
}

/// A body that knows its length, and has trailers behind it.
struct Sized(Option<Bytes>, bool);

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.0.take() {
            Some(data) => Some(Frame::data(data)),
            None => take(&mut self.1).then(|| Frame::trailers(trailers())),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |data| data.len() as u64))
    }
}

pub(crate) fn trailers_follow_a_body_of_known_length(setup: Setup) {
    let of = |text: &'static str, has_trailers| {
        let content = (!text.is_empty()).then(|| Bytes::from(text));
        move || async move { Body::new(Sized(content, has_trailers)) }
    };
    let app = Router::new()
        .route("/short", get(of("short", true)))
        .route("/empty", get(of("", true)))
        .route("/none", get(of("none", false)))
        .route("/nothing", get(of("", false)));
    let server = serve(setup, app);
    let mut client = Http2Client::connect(server.address());
    for (target, text, status) in [
        ("/short", "short", Some("0")),
        ("/empty", "", Some("0")),
        ("/none", "none", None),
        ("/nothing", "", None),
    ] {
        let answer = client.ask(target);
        assert_eq!((answer.text().as_str(), sum_of(&answer.trailers)), (text, status), "{target}");
        let length = text.len().to_string();
        assert_eq!(answer.field("content-length"), Some(length.as_str()), "{target}");
    }
}

/// Words as events.
struct Words(Slow<Pieces>);

impl Stream for Words {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let word = ready!(Pin::new(&mut self.0).poll_next(context));
        let event = |word: Bytes| Event::default().data(String::from_utf8_lossy(&word));
        Poll::Ready(word.map(|word| word.map(event)))
    }
}

pub(crate) fn events_come_one_by_one_over_http2(setup: Setup) {
    let events = async || Sse::new(Words(slowly(Pieces::new(["one", "two", "three"]))));
    let server = serve(setup, Router::new().route("/", get(events)));
    let mut client = Http2Client::connect(server.address());
    let id = client.get("/");
    for count in 1..=3 {
        let answer = client.wait_for(id, |answer| answer.body.ends_with(b"\n\n"));
        assert_eq!(answer.field("content-type"), Some("text/event-stream"));
        assert!(answer.text().matches("data: ").count() <= count + 1, "{}", answer.text());
    }
    assert_eq!(client.answer(id).text(), "data: one\n\ndata: two\n\ndata: three\n\n");
}

pub(crate) fn uploads_are_extracted_over_http2(setup: Setup) {
    let form = async |mut form: Multipart| {
        let mut seen = String::new();
        while let Some(part) = form.next_field().await.expect("a good form") {
            let name = part.file_name().unwrap_or("").to_owned();
            let bytes = part.bytes().await.expect("a whole part").len().to_string();
            seen.extend([name, " ".to_owned(), bytes, "\n".to_owned()]);
        }
        seen
    };
    let app = Router::new()
        .route("/form", post(form))
        .route("/whole", post(async |body: Bytes| body))
        .layer(DefaultBodyLimit::disable());
    let server = serve(setup, app);
    let mut client = Http2Client::connect(server.address());
    let big = "x".repeat(1 << 20);
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"one\"; filename=\"a.txt\"\r\n\r\nfirst\r\n\
         --B\r\nContent-Disposition: form-data; name=\"two\"; filename=\"b.txt\"\r\n\r\n{big}\r\n\
         --B--\r\n"
    );
    let kind = [("content-type", "multipart/form-data; boundary=B")];
    let id = client.request("POST", "/form", &kind, false);
    assert_eq!(client.upload(id, body.as_bytes()).text(), "a.txt 5\nb.txt 1048576\n");
    let sent = noise(1, 3 << 20);
    let came = client.post_within_windows("/whole", &sent).body;
    assert!(came == sent, "{} bytes", came.len());
}

/// A stream that counts itself.
struct Held<S>(S, #[expect(dead_code, reason = "it is dropped with the stream")] Alive);

impl<S: Stream + Unpin> Stream for Held<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}

pub(crate) fn a_stream_that_is_reset_drops_the_service(setup: Setup) {
    let alive = Arc::new(AtomicUsize::new(0));
    let (whole, streamed) = (Arc::clone(&alive), Arc::clone(&alive));
    let app = Router::new()
        .route(
            "/whole",
            get(move || {
                let alive = Alive::new(&whole);
                async move {
                    let _alive = alive;
                    pending::<()>().await;
                }
            }),
        )
        .route(
            "/streamed",
            get(move || {
                let alive = Alive::new(&streamed);
                async move { Body::from_stream(Held(slowly(Pieces::new(["piece"; 1_000])), alive)) }
            }),
        )
        .route("/", get(async || "here"));
    let server = serve(setup, app);
    let mut client = Http2Client::connect(server.address());
    let (whole, streamed) = (client.get("/whole"), client.get("/streamed"));
    client.wait_for(streamed, |answer| !answer.body.is_empty());
    wait_until("both run", || alive.load(Ordering::SeqCst) == 2);
    for id in [whole, streamed] {
        client.reset(id, ErrorCode::Cancel);
    }
    wait_until("both are dropped", || alive.load(Ordering::SeqCst) == 0);
    assert_eq!(client.ask("/").text(), "here");
}

pub(crate) fn continue_is_said_over_http2_when_the_service_reads(setup: Setup) {
    let app = Router::new()
        .route("/read", post(async |text: String| text))
        .route("/echo", post(async |body: Body| body))
        .route(
            "/late",
            post(async |body: Body| {
                tokio::time::sleep(Duration::from_millis(50)).await;
                body
            }),
        )
        .route("/refuse", post(async || StatusCode::FORBIDDEN));
    let server = serve(setup, app);
    let mut client = Http2Client::connect(server.address());
    for target in ["/read", "/echo", "/late"] {
        let id = client.request("POST", target, &[("expect", "100-continue")], false);
        let told = client.wait_for(id, |answer| !answer.interim.is_empty());
        assert_eq!(told.interim, [(100, vec![])], "{target}");
        client.send_data(id, b"hello", true);
        assert_eq!(client.answer(id).text(), "hello", "{target}");
    }
    let id = client.request("POST", "/refuse", &[("expect", "100-continue")], false);
    let refused = client.wait_for(id, |answer| answer.is_whole);
    assert_eq!((refused.status, refused.interim), (403, vec![]));
}
