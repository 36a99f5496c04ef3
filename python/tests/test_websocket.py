"""WebSockets of ASGI applications: over HTTP/1.1, TLS and HTTP/2, on both loops."""

import json
import signal
import ssl
import time

import pytest
import websocket_site
from websocket_link import CARRIERS, WebSocketLink
from websocket_program import PROGRAM
from websocket_site import LOOPS
from wsproto.events import Ping


class Site(websocket_site.Site):
    """What its applications have noted."""

    def ends(self, code, count, carrier="plain"):
        """Waits until so many WebSockets of `/echo` have ended with a code, and returns how. (Those
        of an earlier test may end while this one runs.)"""
        return self.seen("echo", count, carrier, lambda end: end["code"] == code)

    def seen(self, name, count, carrier="plain", is_it=lambda what: True):
        """Waits until an application has noted so much, and returns what."""
        deadline = time.monotonic() + 10
        context = ssl._create_unverified_context()
        while True:
            with self.server(carrier).connect() as link:
                if carrier in ("tls", "h2"):
                    link = context.wrap_socket(link)
                link.sendall(b"GET /seen HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                came = b""
                while piece := link.recv(65536):
                    came += piece
            all_seen = json.loads(came.partition(b"\r\n\r\n")[2])
            found = [what for who, what in all_seen if who == name and is_it(what)]
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, (found, self.server(carrier).said())
            time.sleep(0.02)


@pytest.fixture(scope="module", params=LOOPS)
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("websocket")
    with Site.serving(folder, PROGRAM, request.param) as site:
        yield site


@pytest.mark.parametrize("carrier", CARRIERS)
def test_messages_come_back_as_they_were_sent(site, carrier):
    before = len(site.ends(4003, 0, carrier))
    with site.open("/echo", carrier=carrier) as link:
        assert link.is_open
        for message in ("hello", "", "\u20ac\U0001f300", b"\x00\xff", b"", "x" * 70_000,
                        bytes(2_000_000)):
            link.send(message)
            assert link.receive() == message
        for number in range(100):
            link.send(str(number))
        assert [link.receive() for _ in range(100)] == [str(number) for number in range(100)]
        answer = link.close(4003, "bye")
        assert answer.code == 4003
    end = site.ends(4003, before + 1, carrier)[before]
    assert end == {"type": "websocket.disconnect", "code": 4003, "reason": "bye"}


def test_compressed_messages_come_back(site):
    with site.open("/echo", deflates=True) as link:
        assert "permessage-deflate" in link.answer.fields["sec-websocket-extensions"]
        for message in ("y" * 100_000, "short", b"z" * 5_000):
            link.send(message)
            assert link.receive() == message


@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_scope_is_that_of_the_specification(site, carrier):
    fields = [("Sec-WebSocket-Protocol", "a, b"), ("Sec-WebSocket-Protocol", "c"),
              ("X-Odd", "1"), ("Origin", "http://elsewhere.example")]
    with site.open("/scope-of?q=1&r=%20", fields, carrier) as link:
        scope = json.loads(link.receive())
    assert scope["type"] == "websocket" and "method" not in scope
    assert scope["asgi"]["version"] == "3.0"
    assert scope["http_version"] == ("2" if carrier.startswith("h2") else "1.1")
    assert scope["scheme"] == ("wss" if carrier in ("tls", "h2") else "ws")
    assert scope["path"] == scope["raw_path"] == "/scope-of"
    assert scope["query_string"] == "q=1&r=%20" and scope["root_path"] == ""
    assert scope["subprotocols"] == ["a", "b", "c"]
    assert ["x-odd", "1"] in scope["headers"]
    assert scope["client"][0] == "127.0.0.1" and scope["server"][0] == "127.0.0.1"
    assert scope["state"] == {"from": "the lifespan"}
    assert scope["extensions"]["websocket.http.response"] == {}
    assert ("tls" in scope["extensions"]) == (carrier in ("tls", "h2"))
    assert not any(name.startswith("http.response") for name in scope["extensions"])


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_application_chooses_a_subprotocol_and_adds_fields(site, carrier):
    with site.open("/chosen", [("Sec-WebSocket-Protocol", "v1, v2")], carrier) as link:
        fields = link.answer.fields
        assert fields["sec-websocket-protocol"] == "v2"
        assert fields["x-own"] == "1"
        assert "forged" not in fields.values()
        if carrier == "plain":
            cookies = [value for name, value in link.answer.pairs if name.lower() == "set-cookie"]
            assert cookies == ["a=1", "b=2"]
        assert link.receive().code == 1000


@pytest.mark.parametrize("carrier", CARRIERS)
def test_closing_before_accepting_is_403(site, carrier):
    before = len(site.seen("refused", 0, carrier))
    with site.open("/refuse", carrier=carrier) as link:
        assert link.answer.status == 403
    end = site.seen("refused", before + 1, carrier)[before]
    assert end == {"type": "websocket.disconnect", "code": 1006}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_handshake_may_be_denied_with_a_response(site, carrier):
    before = len(site.seen("denied", 0, carrier))
    with site.open("/deny", carrier=carrier) as link:
        answer = link.answer
        assert (answer.status, answer.body) == (401, b"who are you?")
        assert answer.fields["www-authenticate"] == "Bearer"
        assert answer.fields["content-type"] == "text/plain"
    seen = site.seen("denied", before + 2, carrier)[before:]
    assert seen[0]["code"] == 1006 and seen[1] == "no accept"


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_application_closes_with_a_code_and_a_reason(site, carrier):
    before = len(site.seen("closes", 0, carrier))
    with site.open("/closes", carrier=carrier) as link:
        assert link.receive() == "before"
        end = link.receive()
        assert (end.code, end.reason) == (4001, "enough")
        assert link.receive() is None
    seen = site.seen("closes", before + 3, carrier)[before:]
    assert seen == [{"type": "websocket.disconnect", "code": 4001, "reason": "enough"},
                    "websocket.send", "websocket.close"]


@pytest.mark.parametrize(("path", "code"), [("/returns", 1000), ("/fails", 1011)])
def test_the_end_of_an_application_closes(site, path, code):
    with site.open(path) as link:
        assert link.receive().code == code
    if path == "/fails":
        site.clear.wait_for_words("WebSocket /fails has failed")
        site.clear.wait_for_words("ValueError: on purpose")


@pytest.mark.parametrize("path", ["/fails-first", "/answers-nothing"])
def test_a_handshake_without_an_answer_is_500(site, path):
    with site.open(path) as link:
        assert link.answer.status == 500
    words = {"/fails-first": "WebSocket /fails-first has failed",
             "/answers-nothing": "WebSocket /answers-nothing: the application has not answered"}
    site.clear.wait_for_words(words[path])


def test_a_task_that_outlasts_its_handshake_is_told(site):
    before = len(site.seen("left", 0))
    with site.open("/leaves-a-task") as link:
        assert link.answer.status == 500
    assert site.seen("left", before + 1)[before] == "websocket.disconnect"


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_handshake_may_be_answered_later(site, carrier):
    with site.open("/late", carrier=carrier) as link:
        assert link.receive() == "late"


def test_a_client_that_goes_before_the_answer_is_a_disconnect(site):
    before = len(site.seen("waits", 0))
    with site.clear.connect() as link:
        link.sendall(b"GET /waits-for-loss HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                     b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        time.sleep(0.1)
    seen = site.seen("waits", before + 2)[before:]
    assert (seen[0]["code"], seen[1]) == (1006, "ClientDisconnected")


def test_several_tasks_receive_in_their_order_and_one_gets_the_end(site):
    before = len(site.seen("two", 0))
    with site.open("/two-receivers") as link:
        link.send("1")
        link.send("2")
        assert link.receive() == "1 2"
        link.close(1001)
    ends = site.seen("two", before + 1)[before]
    assert [end["code"] for end in ends if isinstance(end, dict)] == [1001]
    assert [end for end in ends if not isinstance(end, dict)] == ["ClientDisconnected"]


def test_a_receive_that_is_cancelled_takes_nothing_away(site):
    with site.open("/timed") as link:
        assert link.receive() == "20"
        for number in range(50):
            link.send(str(number))
        assert [link.receive() for _ in range(50)] == [f"got {number}" for number in range(50)]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_application_that_only_sends_hears_of_the_end(site, carrier):
    before = len(site.seen("ticks", 0, carrier))
    with site.open("/ticks", carrier=carrier) as link:
        assert [link.receive() for _ in range(3)] == ["0", "1", "2"]
        link.close(1001, "left")
    seen = site.seen("ticks", before + 3, carrier)[before:]
    assert seen == ["ClientDisconnected",
                    {"type": "websocket.disconnect", "code": 1001, "reason": "left"}, "over"]


def test_a_lost_connection_is_1006(site):
    before = len(site.ends(1006, 0))
    with site.open("/echo") as link:
        link.send("a")
        assert link.receive() == "a"
    end = site.ends(1006, before + 1)[before]
    assert end == {"type": "websocket.disconnect", "code": 1006}


def test_messages_leave_before_an_application_computes(site):
    with site.open("/computes") as link:
        came = []
        for _ in range(3):
            assert link.receive() is not None
            came.append(time.monotonic())
        # Each came on its own, and not all of them at the end.
        assert came[1] - came[0] > 0.15 and came[2] - came[1] > 0.15


def test_an_application_waits_for_a_client_that_takes_nothing(site):
    before = len(site.seen("floods", 0))
    with site.open("/floods") as link:
        sent = site.seen("floods", before + 1)[before]
        # What the kernel holds, and 1 MiB of unsent messages.
        assert 10 <= sent <= 200
        link.send("go on")
        for _ in range(sent + 20):
            assert link.receive() == bytes(100_000)
    assert site.seen("floods", before + 2)[before + 1] == "goes on"


def test_messages_of_other_forms(site):
    before = len(site.seen("forms", 0))
    with site.open("/forms") as link:
        assert [link.receive() for _ in range(4)] == [b"ab", b"cd", "ef", ""]
        assert link.receive().code == 1000
    assert site.seen("forms", before + 6)[before:] == [
        "TypeError", "TypeError", "ValueError", "TypeError", "RuntimeError", "ValueError"]


def test_nothing_is_sent_before_the_answer(site):
    before = len(site.seen("early", 0))
    with site.open("/early") as link:
        assert link.receive() == "open"
    assert site.seen("early", before + 1)[before] == "refused"


def test_pings_are_answered(site):
    with site.open("/echo") as link:
        link.send_event(Ping(payload=b"are you there?"))
        link.send("a")
        assert link.receive() == "a"
        assert link.pongs == [b"are you there?"]


@pytest.mark.parametrize(("data", "code"), [
    (b"\x81\x01a", 1002),              # It is not masked.
    (b"\xf1\x80\0\0\0\0", 1002),       # A reserved bit.
    (b"\x81\x81\0\0\0\0\xff", 1007),   # No UTF-8.
    (b"\x82\xff" + (1 << 40).to_bytes(8, "big") + bytes(4), 1009),
])
def test_a_peer_that_breaks_a_rule_is_told_so(site, data, code):
    before = len(site.ends(code, 0))
    with site.open("/echo") as link:
        link.over.send(data)
        assert link.receive(answers_close=False).code == code
    site.ends(code, before + 1)


@pytest.mark.parametrize(("fields", "status"), [
    ("Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 426),
    ("Sec-WebSocket-Version: 13\r\n", 400),
    ("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n", 400),
])
def test_a_handshake_out_of_order_does_not_reach_the_application(site, fields, status):
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade, close\r\n"
    text = f"GET /echo HTTP/1.1\r\nHost: a\r\n{upgrade}{fields}\r\n"
    assert site.clear.ask(text.encode()).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_request_that_asks_for_none_is_http(site):
    assert site.clear.get("/echo").body == b"http"
    # Only a GET may ask for a WebSocket (RFC 6455, 4.1).
    fields = ("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
    assert site.clear.get("/echo", fields, "POST").body == b"http"


def test_the_end_of_a_server_closes(run):
    server = run(PROGRAM)
    with WebSocketLink(server.port, "/echo") as link:
        link.send("a")
        assert link.receive() == "a"
        began = time.monotonic()
        server.process.terminate()
        assert link.receive().code == 1001
        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 3


def test_a_server_waits_for_what_applications_do_at_the_end(run):
    server = run(PROGRAM)
    with WebSocketLink(server.port, "/tidies-up") as link:
        server.process.terminate()
        assert link.receive().code == 1001
    assert server.process.wait(10) == 0
    assert "tidied up" in server.said()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_starts_again_says_so(run, workers):
    server = run(PROGRAM, "--workers", workers)
    with WebSocketLink(server.port, "/echo") as link:
        link.send("a")
        assert link.receive() == "a"
        server.process.send_signal(signal.SIGHUP)
        assert link.receive().code == 1012
    with WebSocketLink(server.port, "/echo") as link:
        link.send("a")
        assert link.receive() == "a"
        server.process.terminate()
        assert link.receive().code == 1001
    assert server.process.wait(10) == 0


def test_a_server_does_not_wait_for_a_peer_that_does_not_close(run):
    server = run(PROGRAM, "--timeout-graceful-shutdown", "1")
    with WebSocketLink(server.port, "/echo") as link:
        link.send("a")
        assert link.receive() == "a"
        began = time.monotonic()
        server.process.terminate()
        assert link.receive(answers_close=False).code == 1001
        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 4
