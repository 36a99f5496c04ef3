//! The example `chat_room`: what one says, all get, and a room that is opened again is as good.

use crate::harness::{Server, Setup};
use crate::peer::{Peer, text};

#[path = "../../examples/chat_room.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod chat_room;

on_every_server!(
    what_one_says_all_get,
    a_later_visitor_gets_the_last_lines_once,
    a_visitor_without_a_name_is_turned_away,
    the_page_is_served,
);

fn enter(server: &Server, name: &str) -> Peer {
    let mut peer = Peer::connect(server, "/room");
    peer.send(text(name));
    peer
}

fn room(setup: Setup) -> Server {
    Server::routes(setup.patient_config(), chat_room::routes())
}

fn what_one_says_all_get(setup: Setup) {
    let server = room(setup);
    let mut ada = enter(&server, "Ada");
    assert_eq!(ada.text(), "Ada is here.");
    let mut bob = enter(&server, "Bob");
    assert_eq!(bob.text(), "Ada is here.");
    for peer in [&mut ada, &mut bob] {
        assert_eq!(peer.text(), "Bob is here.");
    }
    ada.send(text("hello"));
    bob.send(text(&"x".repeat(2_000)));
    for peer in [&mut ada, &mut bob] {
        let mut said = [peer.text(), peer.text()];
        said.sort();
        assert_eq!(said, ["Ada: hello".to_owned(), format!("Bob: {}", "x".repeat(2_000))]);
    }
    bob.send(text(&"x".repeat(2_001)));
    bob.expect_close(1009);
    assert_eq!(ada.text(), "Bob has left.");
}

fn a_later_visitor_gets_the_last_lines_once(setup: Setup) {
    let server = room(setup);
    let mut ada = enter(&server, "Ada");
    for number in 0..60 {
        ada.send(text(&number.to_string()));
    }
    assert_eq!(ada.text(), "Ada is here.");
    for number in 0..60 {
        assert_eq!(ada.text(), format!("Ada: {number}"));
    }
    let mut late = enter(&server, "Late");
    for number in 10..60 {
        assert_eq!(late.text(), format!("Ada: {number}"));
    }
    assert_eq!(late.text(), "Late is here.");
}

fn a_visitor_without_a_name_is_turned_away(setup: Setup) {
    let server = room(setup);
    for name in ["", &"x".repeat(41), "a\nb"] {
        enter(&server, name).expect_close(1008);
    }
}

fn the_page_is_served(setup: Setup) {
    let answer = room(setup).get("/");
    assert_eq!(answer.expect_field("content-type"), "text/html; charset=utf-8");
    assert!(answer.text().contains("new WebSocket("));
}
