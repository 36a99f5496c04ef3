//! hyper over tokio-rustls, a contender of contests/tls.toml and contests/http2.toml: files in
//! memory, a runtime for each CPU.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

type Files = HashMap<String, Bytes>;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let address: SocketAddr = words[2].parse().expect("an address");
    let cpus: usize = words[3].parse().expect("a number");
    // Files are read once.
    let mut files = Files::new();
    for entry in std::fs::read_dir(&words[1]).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        files.insert(format!("/{name}"), std::fs::read(&path).expect("a file").into());
    }
    let tls = tls(&words[4], &words[5]);
    let workers: Vec<_> = (0..cpus)
        .map(|_| {
            let (files, tls) = (files.clone(), tls.clone());
            std::thread::spawn(move || serve(address, files, tls))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("it runs"));
}

/// rustls as its documentation sets it up, with tickets.
fn tls(certificates: &str, key: &str) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(certificates).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.expect("a pair");
    config.ticketer = tokio_rustls::rustls::crypto::aws_lc_rs::Ticketer::new().expect("keys");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Each thread has a runtime and a listener of its own: nothing is shared.
fn serve(address: SocketAddr, files: Files, tls: TlsAcceptor) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let tasks = tokio::task::LocalSet::new();
    let files = Rc::new(files);
    tasks.block_on(&runtime, async move {
        let listener = listen(address);
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            let files = Rc::clone(&files);
            let service = service_fn(move |request| {
                let response = respond(&files, &request);
                async move { Ok::<_, Infallible>(response) }
            });
            // All responses of one read leave together.
            let mut http = http1::Builder::new();
            http.pipeline_flush(true);
            let tls = tls.clone();
            tokio::task::spawn_local(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let mut http = http2::Builder::new(TokioExecutor::new());
                    http.max_concurrent_streams(256);
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                } else {
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                }
            });
        }
    });
}

fn respond(files: &Files, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let Some(content) = files.get(request.uri().path()) else {
        let mut missing = Response::new(Full::default());
        *missing.status_mut() = StatusCode::NOT_FOUND;
        return missing;
    };
    let mut response = Response::new(Full::new(content.clone()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("an option");
    socket.set_reuse_port(true).expect("an option");
    socket.bind(&address.into()).expect("the port is free");
    // A crowd waits in the kernel in place of being refused.
    socket.listen(65_535).expect("it listens");
    socket.set_nonblocking(true).expect("an option");
    TcpListener::from_std(socket.into()).expect("a listener")
}
