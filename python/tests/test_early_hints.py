"""Early hints (103): links that leave while an application or a handler still works."""

import contextlib

import pytest

APPLICATION = """
import asyncio, os

LINK = b"</a.css>; rel=preload; as=style"
HINT = {"type": "http.response.early_hint", "links": [LINK, b"</b.js>; rel=modulepreload"]}
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}

async def hold(scope):
    # It goes on once the client has the hints.
    for _ in range(5_000):
        if os.path.exists(scope["query_string"].decode()):
            return
        await asyncio.sleep(0.001)
    raise TimeoutError("the client has got no hints")

async def app(scope, receive, send):
    assert scope["type"] == "http"
    assert scope["extensions"]["http.response.early_hint"] == {}
    path = scope["path"]
    if path == "/bad":
        await send({**HINT, "links": [b"a\\r\\nX: y"]})
    if path == "/behind-start":
        await send(START)
    if path != "/late":
        await send(HINT)
        await hold(scope)
    if path != "/behind-start":
        await send(START)
    await send({"type": "http.response.body", "body": b"an", "more_body": True})
    if path == "/late":
        await send(HINT)
    await send({"type": "http.response.body", "body": b"sw"})
"""

SITE = """
import asyncio, os
from gustnado import App

app = App()

async def hold(request):
    for _ in range(5_000):
        if os.path.exists(request.query_string):
            return "answ"
        await asyncio.sleep(0.001)
    raise TimeoutError("the client has got no hints")

@app.get("/own")
async def own(request):
    request.early_hints("/a.css; as=style", "</b.js>; rel=modulepreload")
    return await hold(request)

@app.get("/route", preload=["/a.css; as=style", "</b.js>; rel=modulepreload"])
async def of_route(request):
    return await hold(request)

@app.get("/bad")
async def bad(request):
    request.early_hints("/a.css")
"""

LINKS = ["</a.css>; rel=preload; as=style", "</b.js>; rel=modulepreload"]


@pytest.fixture(scope="module", params=["application", "site"])
def server(request, tmp_path_factory):
    from conftest import serving

    folder = tmp_path_factory.mktemp("hints")
    program = APPLICATION if request.param == "application" else SITE
    with serving(folder, program, "--h2c") as server:
        server.paths = {"application": ["/hint", "/behind-start"], "site": ["/own", "/route"]}
        server.paths = server.paths[request.param]
        server.kind = request.param
        yield server


def links_of(head):
    lines = [line.partition(": ") for line in head.decode().split("\r\n")]
    return [value for name, _, value in lines if name.lower() == "link"]


def head_of(link, got):
    while b"\r\n\r\n" not in got:
        more = link.recv(4096)
        assert more, got
        got += more
    head, _, rest = got.partition(b"\r\n\r\n")
    return head, rest


def test_hints_leave_before_the_answer_by_http1(server):
    for path in server.paths:
        told = f"http1{path.replace('/', '-')}"
        with server.connect(8) as link:
            line = f"GET {path}?{told} HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n\r\n"
            link.sendall(line.encode())
            head, rest = head_of(link, b"")
            assert head.startswith(b"HTTP/1.1 103 "), head
            assert links_of(head) == LINKS
            (server.folder / told).touch()
            head, rest = head_of(link, rest)
            assert head.startswith(b"HTTP/1.1 200 "), head
            assert links_of(head) == (LINKS if path == "/route" else [])
    assert "TimeoutError" not in server.said()


def test_other_clients_of_http1_get_none(server):
    (server.folder / "others").touch()
    for path in server.paths:
        answer = server.get(f"{path}?others")
        assert (answer.status, answer.body) == (200, b"answ")


def test_hints_leave_before_the_answer_by_http2(server):
    connection_of = pytest.importorskip("h2.connection").H2Connection
    events = pytest.importorskip("h2.events")
    for path in server.paths:
        told = f"http2{path.replace('/', '-')}"
        client, seen, body = connection_of(), [], b""
        client.initiate_connection()
        target = f"{path}?{told}"
        client.send_headers(1, [
            (":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", target),
        ], end_stream=True)
        with server.connect(8) as link, contextlib.suppress(StopIteration):
            while True:
                link.sendall(client.data_to_send())
                for event in client.receive_data(link.recv(65_536)):
                    if isinstance(event, events.InformationalResponseReceived):
                        seen.append(event.headers)
                        (server.folder / told).touch()
                    elif isinstance(event, events.ResponseReceived):
                        seen.append(event.headers)
                    elif isinstance(event, events.DataReceived):
                        body += event.data
                    elif isinstance(event, events.StreamEnded):
                        raise StopIteration
        hints, head = ([(as_text(name), as_text(value)) for name, value in fields]
                       for fields in seen)
        assert hints == [(":status", "103"), *(("link", link) for link in LINKS)]
        assert (head[0], body) == ((":status", "200"), b"answ")
    assert "TimeoutError" not in server.said()


def as_text(text):
    return text.decode() if isinstance(text, bytes) else text


def test_what_is_no_link_is_refused(server):
    assert server.get("/bad").status == 500
    server.wait_for_words("ValueError")


def test_hints_behind_the_head_have_no_effect(server):
    if server.kind == "application":
        assert server.get("/late").body == b"answ"


def test_a_list_of_links_is_checked_when_it_is_given():
    from gustnado import App

    with pytest.raises(TypeError, match="a list of links"):
        App().get("/", preload="/a.css; as=style")
