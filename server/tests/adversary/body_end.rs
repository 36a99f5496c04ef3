//! A request's body is never read as the next request.

use crate::harness::Setup;
use crate::harness::client::get;

on_every_server!(the_body_of_a_request_for_the_whole_server_is_no_request);

fn the_body_of_a_request_for_the_whole_server_is_no_request(setup: Setup) {
    let server = setup.default_site();
    let hidden = get("/hidden");
    let head = format!("OPTIONS * HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", hidden.len());
    let mut client = server.connect();
    client.send(head + &hidden + &get("/"));
    assert_eq!(client.read_answer().status, 204);
    assert_eq!(client.read_answer().status, 200, "the second answer is to the second request");
}
