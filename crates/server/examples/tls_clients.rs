//! Clients of HTTPS, for measuring what a server's handshakes and idle connections cost:
//! `bench/tls.py` runs it.
//!
//! ```sh
//! cargo run --release --example tls_clients -- 127.0.0.1:8443 cert.pem full 1000
//! ```
//!
//! The third word is `full` or `resumed`: so many connections, one after the other, with a request
//! each; or `held`: so many that have asked once and are kept until standard input ends. A fourth
//! one names the key exchange, `x25519` or `x25519mlkem768`.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, NamedGroup, RootCertStore};

const REQUEST: &[u8] = b"GET /4k.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";

type Client = rustls::StreamOwned<ClientConnection, TcpStream>;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, authority, mode, connections, others @ ..] = &*words else {
        return Err("expected ADDRESS CERTIFICATE full|resumed|held COUNT [GROUP]".into());
    };
    let count: usize = connections.parse()?;
    let is_resumed = mode == "resumed";
    let config = Arc::new(config(authority, others.first().map(String::as_str), is_resumed)?);
    if is_resumed {
        // The first one brings the tickets.
        ask(&mut connect(address, &config)?)?;
    }
    let (mut held, mut resumed) = (Vec::new(), 0);
    for _ in 0..count {
        let mut client = connect(address, &config)?;
        ask(&mut client)?;
        resumed += usize::from(client.conn.handshake_kind() == Some(HandshakeKind::Resumed));
        if mode == "held" {
            held.push(client.sock);
        }
    }
    if is_resumed && resumed < count {
        return Err(format!("{resumed} of {count} were resumed").into());
    }
    println!("{count}");
    if mode == "held" {
        io::stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn config(
    authority: &str,
    group: Option<&str>,
    is_resumed: bool,
) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    let group = match group {
        Some("x25519mlkem768") => NamedGroup::X25519MLKEM768,
        _ => NamedGroup::X25519,
    };
    provider.kx_groups.retain(|known| known.name() == group);
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !is_resumed {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

fn connect(address: &str, config: &Arc<ClientConfig>) -> Result<Client, Box<dyn Error>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost")?;
    Ok(Client::new(ClientConnection::new(Arc::clone(config), name)?, stream))
}

/// Asks for 4 KB, and reads all of them.
fn ask(client: &mut Client) -> Result<(), Box<dyn Error>> {
    client.write_all(REQUEST)?;
    let (mut received, mut piece) = (Vec::new(), [0; 8 << 10]);
    loop {
        let count = client.read(&mut piece)?;
        if count == 0 {
            return Err("the server ended the connection".into());
        }
        received.extend_from_slice(&piece[..count]);
        let head = received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if head.is_some_and(|head| received.len() >= head + 4 + 4096) {
            return Ok(());
        }
    }
}
