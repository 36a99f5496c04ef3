//! A server with what a configuration file cannot say, for clients that others have written: a gRPC
//! service, axum's examples, and handlers with trailers and early hints. And tonic's client, which
//! calls that service.
//!
//! ```text
//! gustnado-conformance serve FOLDER     # with the certificates of conformance/certificates.py
//! gustnado-conformance call URL CASE [FOLDER]
//! ```
//!
//! `serve` speaks HTTPS on 127.0.0.1 and HTTP/2 in clear on 127.0.0.2 until TERM comes. `call` ends
//! with 0 if the case goes as it should.

mod calls;
mod examples;
mod handlers;
mod messages;
mod service;

use std::io::{Read, stdin};
use std::path::PathBuf;
use std::process::{ExitCode, exit};
use std::thread;

use axum::extract::ConnectInfo;
use gustnado::tower;
use tonic::service::Routes;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match *words {
        ["serve", folder] => serve(folder.into()),
        ["call", url, case] => calls::run(url, case, None),
        ["call", url, case, folder] => calls::run(url, case, Some(folder.as_ref())),
        _ => Err("words: serve FOLDER, or call URL CASE [FOLDER]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(folder: PathBuf) -> Result<(), Failure> {
    let uploads = folder.join("uploads");
    std::fs::create_dir_all(&uploads)?;
    _ = examples::stream_to_file::UPLOADS_DIRECTORY.set(uploads);
    let app = Routes::new(service::service()).into_axum_router().merge(examples::app());
    let running = handlers::server()
        .service("/", tower(app).with_connect_info(ConnectInfo))
        .tls_cert(folder.join("p256.chain.pem"))
        .tls_key(folder.join("p256.key"))
        .h2c(true)
        .workers(1)
        .limit_body_bytes(1 << 30)
        .quiet(true)
        .listen_on(&["https://127.0.0.1:0", "http://127.0.0.2:0"])
        .start()?;
    for url in running.urls() {
        println!("{url}");
    }
    thread::spawn(|| {
        // (Whatever ends its starter ends it, too.)
        _ = stdin().read_to_end(&mut Vec::new());
        exit(1);
    });
    Ok(running.run()?)
}
