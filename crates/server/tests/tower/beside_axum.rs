//! Apps as axum's examples build them, each served here and by `axum::serve`: the same requests
//! get the same answers. What frames them (a length or chunks) and names the server may differ.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::JsonRejection;
use axum::extract::{
    ConnectInfo, DefaultBodyLimit, Form, FromRequestParts, MatchedPath, Multipart, OriginalUri,
    Path, Query, Request, State,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse, Redirect, Response, Sse};
use axum::routing::{any, get, post};
use axum::{BoxError, Json, Router};
use gustnado::{Routes, tower};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tower_http::compression::CompressionLayer;

use crate::harness::client::request;
use crate::harness::{Answer, Client, Server, Setup};
use crate::streams::{Pieces, slowly};

type Made = (&'static str, Router, Vec<String>);

/// Whatever else an app is asked.
fn usual(target: &str) -> Vec<String> {
    let methods =
        ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "get"];
    let mut all: Vec<String> = methods.map(|method| request(method, target, "")).into();
    all.push(request("GET", "/not/there?x=%20", ""));
    all.push(request("GET", &format!("http://gust.example{target}"), ""));
    all.push(request("OPTIONS", "*", ""));
    all.push(request("GET", target, "Connection: close\r\n"));
    all
}

fn with_body(method: &str, target: &str, kind: &str, body: &str) -> [String; 2] {
    let kind = format!("Content-Type: {kind}\r\n");
    let sized = format!("{kind}Content-Length: {}\r\n", body.len());
    let chunks = format!("{kind}Transfer-Encoding: chunked\r\n");
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    [request(method, target, &sized) + body, request(method, target, &chunks) + &chunk]
}

fn apps() -> Vec<Made> {
    let mut all = pages();
    all.extend(bodies());
    all.extend(middleware());
    all.extend(streams());
    all
}

#[derive(Deserialize)]
struct Page {
    page: Option<u32>,
}

/// An extractor of the app's own, as in `versioning`.
struct Version(String);

impl<S: Send + Sync> FromRequestParts<S> for Version {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let Path(params) = Path::<BTreeMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        match params.get("version") {
            Some(version) if version.starts_with('v') => Ok(Self(version.clone())),
            _ => Err((StatusCode::NOT_FOUND, "unknown version").into_response()),
        }
    }
}

fn pages() -> Vec<Made> {
    let hello = Router::new().route("/", get(async || Html("<h1>Hello, World!</h1>")));
    let missing = async |uri: Uri| (StatusCode::NOT_FOUND, format!("nothing at {uri}"));
    let head = async |method: Method| match method {
        Method::HEAD => [("x-some-header", "header from HEAD")].into_response(),
        _ => ([("x-some-header", "header from GET")], "body from GET").into_response(),
    };
    let version = async |Version(version): Version| version;
    let typed =
        async |Path(id): Path<u32>, Query(page): Query<Page>| format!("{id} {:?}", page.page);
    let places =
        async |path: MatchedPath, OriginalUri(uri): OriginalUri| format!("{} {uri}", path.as_str());
    let peer = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.ip().to_string();
    let nested = Router::new().route("/{id}", get(places));
    let moved = Router::new()
        .route("/", get(async || Redirect::permanent("/new")))
        .route("/none", any(async || StatusCode::NO_CONTENT))
        .route("/same", get(async || StatusCode::NOT_MODIFIED))
        .route("/odd", get(async || StatusCode::from_u16(299).expect("a status")));
    vec![
        ("hello-world", hello.clone(), usual("/")),
        ("global-404-handler", hello.fallback(missing), usual("/")),
        ("handle-head-request", Router::new().route("/", get(head)), usual("/")),
        (
            "versioning",
            Router::new().route("/{version}/foo", get(version)),
            ["/v1/foo", "/1/foo"].map(usual).concat(),
        ),
        (
            "customize-path-rejection",
            Router::new().route("/users/{id}", get(typed)),
            ["/users/7?page=2", "/users/x", "/users/7?page=x", "/users/%ff"].map(usual).concat(),
        ),
        ("nested paths", Router::new().nest("/api", nested), usual("/api/a%2fb")),
        ("connect-info", Router::new().route("/", get(peer)), usual("/")),
        ("redirects", moved, ["/", "/none", "/same", "/odd"].map(usual).concat()),
    ]
}

#[derive(Clone, Deserialize, Serialize)]
struct Todo {
    text: String,
    #[serde(default)]
    completed: bool,
}

type Todos = Arc<Mutex<Vec<Todo>>>;

fn todos() -> Router {
    let list = async |State(todos): State<Todos>| {
        let todos: Vec<Todo> = todos.lock().expect("no panic").clone();
        Json(todos)
    };
    let add = async |State(todos): State<Todos>, Json(todo): Json<Todo>| {
        todos.lock().expect("no panic").push(todo.clone());
        (StatusCode::CREATED, Json(todo))
    };
    let clear = async |State(todos): State<Todos>| {
        todos.lock().expect("no panic").clear();
        StatusCode::NO_CONTENT
    };
    Router::new().route("/todos", get(list).post(add).delete(clear)).with_state(Todos::default())
}

fn bodies() -> Vec<Made> {
    let form = async |Form(todo): Form<Todo>| todo.text;
    let told = async |payload: Result<Json<Todo>, JsonRejection>| match payload {
        Ok(Json(todo)) => (StatusCode::OK, todo.text),
        Err(rejection) => (rejection.status(), format!("custom: {}", rejection.body_text())),
    };
    let parts = async |mut parts: Multipart| {
        let mut told = String::new();
        while let Ok(Some(part)) = parts.next_field().await {
            let name = part.name().unwrap_or_default().to_owned();
            let length = part.bytes().await.map_or(0, |bytes| bytes.len());
            told = format!("{told}{name}: {length}\n");
        }
        told
    };
    let store = async |body: Bytes| body.len().to_string();
    let limited = Router::new().route("/", post(store)).layer(DefaultBodyLimit::max(1_000));
    let json = |target, body: &str| with_body("POST", target, "application/json", body);
    let large = format!(r#"{{"text": "{}"}}"#, "x".repeat(1_500_000));
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n12345\r\n--b--\r\n";
    let of_form = "application/x-www-form-urlencoded";
    vec![
        (
            "todos",
            todos(),
            [
                json("/todos", r#"{"text": "a"}"#).to_vec(),
                json("/todos", r#"{"text": 1}"#).to_vec(),
                json("/todos", "{").to_vec(),
                usual("/todos"),
            ]
            .concat(),
        ),
        ("readme", todos(), json("/todos", &large).to_vec()),
        (
            "customize-extractor-error",
            Router::new().route("/", post(told)),
            [json("/", r#"{"text": "a"}"#).to_vec(), json("/", "[").to_vec(), usual("/")].concat(),
        ),
        (
            "form",
            Router::new().route("/", post(form)),
            [
                with_body("POST", "/", of_form, "text=a+b%21&completed=true").to_vec(),
                with_body("POST", "/", of_form, "other=1").to_vec(),
                with_body("POST", "/", "text/plain", "text=a").to_vec(),
                usual("/"),
            ]
            .concat(),
        ),
        (
            "multipart-form",
            Router::new().route("/", post(parts)),
            with_body("POST", "/", "multipart/form-data; boundary=b", multipart).to_vec(),
        ),
        (
            "key-value-store",
            limited,
            [1_000, 2_000]
                .map(|bytes| with_body("POST", "/", "text/plain", &"x".repeat(bytes)).to_vec())
                .concat(),
        ),
    ]
}

/// Reads a body in the middleware, as in `consume-body-in-extractor-or-middleware`.
async fn buffered(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match to_bytes(body, 5_000).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(error) => {
            let error: BoxError = error.into();
            (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
        }
    }
}

async fn cors(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response =
        if is_preflight { StatusCode::OK.into_response() } else { next.run(request).await };
    let fields = response.headers_mut();
    fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*".parse().expect("a value"));
    fields.append(header::VARY, "origin".parse().expect("a value"));
    fields.append(header::VARY, "access-control-request-method".parse().expect("a value"));
    response
}

fn middleware() -> Vec<Made> {
    let echo = async |headers: HeaderMap, body: Bytes| {
        let kind = headers.get(header::CONTENT_TYPE).cloned();
        (kind.map(|kind| [(header::CONTENT_TYPE, kind)]), body)
    };
    let fails = async || -> Result<String, (StatusCode, String)> {
        Err((StatusCode::INTERNAL_SERVER_ERROR, "something went wrong".to_owned()))
    };
    let json = |body: &str| with_body("POST", "/", "application/json", body).to_vec();
    let gzip = "Accept-Encoding: gzip\r\n";
    let long = Router::new()
        .route("/", get(async || "long ".repeat(1_000)))
        .layer(CompressionLayer::new());
    vec![
        (
            "consume-body-in-extractor-or-middleware",
            Router::new().route("/", post(echo)).layer(from_fn(buffered)),
            [json("{}"), json(&"x".repeat(6_000)), usual("/")].concat(),
        ),
        ("cors", Router::new().route("/", get(async || "shared")).layer(from_fn(cors)), usual("/")),
        ("anyhow-error-response", Router::new().route("/", get(fails)), usual("/")),
        (
            "compression",
            long,
            vec![request("GET", "/", gzip), request("GET", "/", ""), request("HEAD", "/", gzip)],
        ),
    ]
}

fn streams() -> Vec<Made> {
    let events = async || {
        let events = ["one", "two"].map(|data| Ok::<_, Infallible>(Event::default().data(data)));
        Sse::new(Items(events.into_iter().collect()))
    };
    let slow = async || Body::from_stream(slowly(Pieces::new(["one", "two", "three"])));
    let echo = async |body: Body| body;
    let spawned = async || {
        tokio::time::sleep(Duration::from_millis(5)).await;
        tokio::spawn(async { "spawned" }).await.expect("no panic")
    };
    vec![
        ("sse", Router::new().route("/", get(events)), usual("/")),
        ("stream", Router::new().route("/", get(slow)), usual("/")),
        (
            "reverse of a stream",
            Router::new().route("/", post(echo)),
            with_body("POST", "/", "text/plain", &"x".repeat(100_000)).to_vec(),
        ),
        ("tokio", Router::new().route("/", get(spawned)), usual("/")),
    ]
}

struct Items(std::collections::VecDeque<Result<Event, Infallible>>);

impl futures_core::Stream for Items {
    type Item = Result<Event, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

fn ask(mut client: Client, text: &str) -> Answer {
    client.send(text);
    if text.starts_with("HEAD ") { client.read_head() } else { client.read_answer() }
}

/// What is compared: status, fields in order of their names, content.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let own = ["date", "server", "connection", "transfer-encoding", "content-length"];
    let mut fields: Vec<_> = answer
        .fields
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .collect();
    fields.sort();
    (answer.status, fields, answer.text())
}

pub(crate) fn apps_answer_as_they_do_beside_axum(setup: Setup) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    // (Apps keep what they were told, so each server has one of its own.)
    for ((name, app, requests), (_, other, _)) in apps().into_iter().zip(apps()) {
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let beside = listener.local_addr().expect("it is bound");
        let service = other.into_make_service_with_connect_info::<SocketAddr>();
        runtime.spawn(async move { axum::serve(listener, service).await });
        let routes = Routes::new().fallback(tower(app).with_connect_info(ConnectInfo));
        let server = Server::routes(setup.config(), routes);
        for text in requests {
            let (ours, theirs) = (server.connect(), Client::connect_plain(beside));
            let (ours, theirs) = (ask(ours, &text), ask(theirs, &text));
            let line = text.lines().next().unwrap_or_default();
            if Setup::is_http2() && line.contains(" http://") {
                continue; // HTTP/2 has no such form of a target.
            }
            assert_eq!(comparable(&ours), comparable(&theirs), "{name}: {line}");
        }
    }
}
