//! Libraries that need tokio, inside of handlers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use gustnado::config::Config;
use gustnado::{Routes, tower};
use serde::Deserialize;
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::runtime::{Builder, Handle};

use crate::harness::client::get as asking;
use crate::harness::{PATIENCE, Server, Setup, wait_until};
use crate::serve;
use crate::streams::Alive;

fn thread_name() -> String {
    thread::current().name().unwrap_or("").to_owned()
}

pub(crate) fn tokio_sleeps_and_spawns(setup: Setup) {
    let sleeps = async || {
        let began = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(began.elapsed() >= Duration::from_millis(30));
        "slept"
    };
    let spawns = async || {
        let here = thread_name();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let spawned = tokio::spawn(async move {
            sender.send(()).expect("the handler waits");
            thread_name()
        });
        receiver.await.expect("it runs");
        let blocking = tokio::task::spawn_blocking(|| 6 * 7).await.expect("no panic");
        format!("{} {blocking} {}", spawned.await.expect("no panic"), here == thread_name())
    };
    let app = Router::new().route("/sleep", get(sleeps)).route("/spawn", get(spawns));
    let server = serve(setup, app);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/sleep").text(), "slept");
        let spawned = client.get("/spawn").text();
        assert!(spawned.starts_with("gust-tokio 42 "), "{spawned}");
    }
}

#[derive(Deserialize)]
struct From {
    url: String,
}

pub(crate) fn a_service_asks_another_server_with_reqwest(setup: Setup) {
    let client = reqwest::Client::new();
    let fetch = async |State(client): State<reqwest::Client>, Query(from): Query<From>| {
        let answer = client.get(from.url).send().await.expect("an answer");
        format!("{} {}", answer.status(), answer.text().await.expect("a text"))
    };
    let app = Router::new()
        .route("/fetch", get(fetch))
        .route("/source", get(async || "from the source"))
        .with_state(client);
    // The second one never has TLS: reqwest trusts no certificate of these tests.
    let listen = ["127.0.0.1:0", "http://127.0.0.1:0"].map(str::to_owned).to_vec();
    let config = Config { listen, ..setup.config() };
    let server = Server::routes(config, Routes::new().fallback(tower(app)));
    let [_, address] = server.running().addresses() else { panic!("two addresses") };
    let url = format!("http://{address}/source");
    let mut client = server.connect();
    for _ in 0..5 {
        let answer = client.get(&format!("/fetch?url={url}"));
        assert_eq!(answer.text(), "200 OK from the source");
    }
}

/// A database in memory: of one connection, since each would have its own.
type Database = Arc<OnceLock<SqlitePool>>;

fn pool(database: &Database) -> &SqlitePool {
    database.get_or_init(|| {
        let options = SqlitePoolOptions::new().max_connections(1).acquire_timeout(PATIENCE);
        options.connect_lazy("sqlite::memory:").expect("a good address")
    })
}

pub(crate) fn a_service_uses_a_database_with_sqlx(setup: Setup) {
    let add = async |State(database): State<Database>, Path(word): Path<String>| {
        let pool = pool(&database);
        let make = "CREATE TABLE IF NOT EXISTS words (word TEXT)";
        sqlx::query(make).execute(pool).await.expect("a table");
        let mut change = pool.begin().await.expect("a transaction");
        let insert = sqlx::query("INSERT INTO words VALUES (?)").bind(&word);
        insert.execute(&mut *change).await.expect("a row");
        let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM words WHERE word = ?");
        let count = count.bind(word).fetch_one(&mut *change).await.expect("a count");
        change.commit().await.expect("it is kept");
        count.to_string()
    };
    let app = Router::new().route("/{word}", get(add)).with_state(Database::default());
    let server = serve(setup, app);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(asking("/same"));
    }
    let mut counts: Vec<_> = clients.iter_mut().map(|client| client.read_answer().text()).collect();
    counts.sort();
    assert_eq!(counts, ["1", "2", "3", "4"]);
    assert_eq!(server.get("/other").text(), "1");
}

pub(crate) fn a_connection_is_given_back_when_the_client_goes(setup: Setup) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let hold = async move |State(database): State<Database>| {
        let _held = pool(&database).acquire().await.expect("a connection");
        let _alive = Alive::new(&counted);
        std::future::pending::<()>().await;
    };
    let ask = async |State(database): State<Database>| {
        let count = sqlx::query_scalar::<_, i64>("SELECT 7");
        count.fetch_one(pool(&database)).await.expect("a number").to_string()
    };
    let app = Router::new().route("/hold", get(hold)).route("/ask", get(ask));
    let server = serve(setup, app.with_state(Database::default()));
    let mut holding = server.connect();
    holding.send(asking("/hold"));
    wait_until("it is held", || count.load(Ordering::SeqCst) == 1);
    let mut waiting = server.connect();
    waiting.send(asking("/ask"));
    waiting.expect_silence(Duration::from_millis(50));
    holding.reset();
    assert_eq!(waiting.read_answer().text(), "7");
}

pub(crate) fn a_runtime_can_be_given(setup: Setup) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("of-the-test")
        .enable_all()
        .build()
        .expect("a runtime");
    let spawns = async || tokio::spawn(async { thread_name() }).await.expect("no panic");
    let app = Router::new().route("/", get(spawns));
    let service = tower(app).on_tokio(runtime.handle().clone());
    let server = Server::routes(setup.config(), Routes::new().fallback(service));
    assert_eq!(server.get("/").text(), "of-the-test");
    server.stop();
    runtime.shutdown_background();
}

pub(crate) fn without_tokio_there_is_none(setup: Setup) {
    let app = Router::new().route("/", get(async || Handle::try_current().is_err().to_string()));
    let service = tower(app).without_tokio();
    let server = Server::routes(setup.config(), Routes::new().fallback(service));
    assert_eq!(server.get("/").text(), "true");
}

pub(crate) fn the_runtime_ends_with_the_server(setup: Setup) {
    let count = Arc::new(AtomicUsize::new(0));
    let (told, hears) = mpsc::channel();
    let counted = Arc::clone(&count);
    let spawns = async move || {
        let (alive, told) = (Alive::new(&counted), told.clone());
        tokio::spawn(async move {
            told.send(()).expect("the test listens");
            tokio::time::sleep(Duration::from_hours(1)).await;
            drop(alive);
        });
    };
    let server = serve(setup, Router::new().route("/", get(spawns)));
    assert_eq!(server.get("/").status, 200);
    assert_eq!(hears.recv_timeout(PATIENCE), Ok(()));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    server.stop();
    wait_until("what was spawned is gone", || count.load(Ordering::SeqCst) == 0);
}
