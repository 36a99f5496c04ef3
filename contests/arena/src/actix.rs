//! The profiles on actix-web 4 and actix-files: PORT FOLDER CPUS [compress]. By TLS with `TLS_CERT`
//! and `TLS_KEY` in the environment.

use std::env;

use actix_web::http::header::ContentType;
use actix_web::middleware::{Compress, Condition};
use actix_web::{web, App, HttpResponse, HttpServer};
use futures_util::StreamExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ServerConfig;
use serde::Deserialize;

#[path = "data.rs"]
mod data;

use data::Item;

#[derive(Deserialize)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Multiplier {
    m: i64,
}

fn text(content: String) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(content)
}

async fn sum(terms: web::Query<Terms>) -> HttpResponse {
    text((terms.a + terms.b).to_string())
}

async fn sum_with_body(terms: web::Query<Terms>, body: String) -> HttpResponse {
    match body.trim().parse::<i64>() {
        Ok(number) => text((terms.a + terms.b + number).to_string()),
        Err(_) => HttpResponse::BadRequest().finish(),
    }
}

async fn pipeline() -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::plaintext()).body("ok")
}

async fn count(mut body: web::Payload) -> actix_web::Result<HttpResponse> {
    let mut bytes = 0;
    while let Some(piece) = body.next().await {
        bytes += piece?.len();
    }
    Ok(text(bytes.to_string()))
}

async fn list(
    count: web::Path<usize>,
    multiplier: web::Query<Multiplier>,
    items: web::Data<Vec<Item>>,
) -> HttpResponse {
    HttpResponse::Ok().json(data::listing(&items, *count, multiplier.m))
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = env::args().collect();
    let (port, threads): (u16, usize) = (words[1].parse().unwrap(), words[3].parse().unwrap());
    let items = web::Data::new(data::items(&words[2])?);
    let folder = format!("{}/static", words[2]);
    let compresses = words.get(4).is_some_and(|word| word == "compress");
    let server = HttpServer::new(move || {
        App::new()
            .app_data(items.clone())
            .route("/baseline11", web::get().to(sum))
            .route("/baseline11", web::post().to(sum_with_body))
            .route("/pipeline", web::get().to(pipeline))
            .service(
                web::resource("/json/{count}")
                    .wrap(Condition::new(compresses, Compress::default()))
                    .route(web::get().to(list)),
            )
            .route("/upload", web::post().to(count))
            .service(actix_files::Files::new("/static", &folder))
    })
    .backlog(4096)
    .workers(threads);
    let address = ("127.0.0.1", port);
    let server = match env::var("TLS_CERT") {
        Ok(_) => server.bind_rustls_0_23(address, tls())?,
        Err(_) => server.bind(address)?,
    };
    server.run().await
}

fn tls() -> ServerConfig {
    let file = |name| env::var(name).expect("both are set");
    let chain = CertificateDer::pem_file_iter(file("TLS_CERT")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("TLS_KEY")).expect("a key");
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.map(|one| one.expect("PEM")).collect(), key)
        .expect("a pair")
}
