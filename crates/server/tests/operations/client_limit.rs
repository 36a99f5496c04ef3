//! Connections per client: one address has its number, whatever others have, and a proxy's clients
//! are counted and not the proxy.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gustnado::config::Config;

use crate::harness::client::get;
use crate::harness::{Client, Server, Setup};

on_every_server!(
    a_client_has_its_number_of_connections_and_no_more,
    a_place_is_free_again_when_its_connection_ends,
    clients_of_a_proxy_are_counted_by_the_header,
    a_proxy_that_is_trusted_is_not_counted,
    a_paced_server_counts_too,
    a_client_over_its_number_sees_no_reset,
);

fn connect_from(server: &Server, address: &str) -> Client {
    Client::over(stream_from(server, address))
}

fn stream_from(server: &Server, address: &str) -> TcpStream {
    let socket = Client::socket();
    let own: SocketAddr = format!("{address}:0").parse().expect("an address");
    rustix::net::bind(&socket, &own).expect("all of 127.0.0.0/8 is here");
    rustix::net::connect(&socket, &server.address()).expect("a connection");
    TcpStream::from(socket)
}

/// Clients that were served and stay.
fn served(server: &Server, address: &str, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| connect_from(server, address)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200, "from {address}");
    }
    clients
}

fn config(setup: Setup) -> Config {
    Config { connections_per_client: 3, ..setup.patient_config() }
}

fn a_client_has_its_number_of_connections_and_no_more(setup: Setup) {
    let server = Server::start(config(setup));
    let mut first = served(&server, "127.0.0.2", 3);
    for _ in 0..4 {
        connect_from(&server, "127.0.0.2").expect_refusal("one more than it may have");
    }
    let mut second = served(&server, "127.0.0.3", 3);
    connect_from(&server, "127.0.0.3").expect_refusal("one more than it may have");
    for client in first.iter_mut().chain(&mut second) {
        assert_eq!(client.get("/").status, 200, "those it has are served on");
    }
    server.wait_until("they are counted", |stats| stats.clients_over == 5);
}

fn a_place_is_free_again_when_its_connection_ends(setup: Setup) {
    let server = Server::start(config(setup));
    for _ in 0..3 {
        let clients = served(&server, "127.0.0.2", 3);
        connect_from(&server, "127.0.0.2").expect_refusal("one more than it may have");
        drop(clients);
        server.wait_until_empty();
    }
}

fn clients_of_a_proxy_are_counted_by_the_header(setup: Setup) {
    if Setup::plain_only("the header comes before the handshake") {
        return;
    }
    let server = Server::start(Config {
        proxy_protocol: true,
        proxy_allow_from: vec!["127.0.0.1".to_owned()],
        ..config(setup)
    });
    let connect = |client: &str| {
        let mut connection = server.connect();
        let header = format!("PROXY TCP4 {client} 198.51.100.2 56324 443\r\n");
        connection.send([header.as_str(), &get("/")].concat());
        connection
    };
    let mut all = Vec::new();
    for client in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        for _ in 0..3 {
            let mut connection = connect(client);
            assert_eq!(connection.read_answer().status, 200, "{client}");
            all.push(connection);
        }
        connect(client).expect_refusal("one more than it may have");
    }
    // A balancer that looks whether the server is there has no limit.
    for _ in 0..5 {
        let mut check = server.connect();
        check.send("PROXY UNKNOWN\r\n".to_owned() + &get("/"));
        assert_eq!(check.read_answer().status, 200);
        all.push(check);
    }
    assert_eq!(server.stats().clients_over, 3);
}

fn a_proxy_that_is_trusted_is_not_counted(setup: Setup) {
    let forwarded_allow_ips = vec!["127.0.0.2".to_owned()];
    let server = Server::start(Config { forwarded_allow_ips, ..config(setup) });
    let _proxy = served(&server, "127.0.0.2", 9);
    let _client = served(&server, "127.0.0.3", 3);
    connect_from(&server, "127.0.0.3").expect_refusal("one more than it may have");
    assert_eq!(server.stats().clients_over, 1);
}

fn a_paced_server_counts_too(setup: Setup) {
    let mut config = config(setup);
    config.pace.write_rate = 1 << 20;
    let server = Server::start(config);
    let _clients = served(&server, "127.0.0.2", 3);
    connect_from(&server, "127.0.0.2").expect_refusal("one more than it may have");
    assert_eq!(server.stats().clients_over, 1);
}

fn a_client_over_its_number_sees_no_reset(setup: Setup) {
    let server = Server::start(config(setup));
    let _clients = served(&server, "127.0.0.2", 3);
    for _ in 0..8 {
        let mut more = Client::early_over(stream_from(&server, "127.0.0.2"));
        more.send_unless_closed(get("/").repeat(20));
        std::thread::sleep(Duration::from_millis(5));
        more.expect_refusal("one more than it may have");
    }
}
