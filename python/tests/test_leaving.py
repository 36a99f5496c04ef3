"""When a response leaves, and when handlers are notified that their client has left."""

import socket
import time

import pytest

STEPS = """
import asyncio, os, time

START = {"type": "http.response.start", "status": 200,
         "headers": [(b"content-type", b"text/plain"), (b"content-length", b"4")]}

turns = []

def hold(scope, name):
    # Nothing else runs here until the client says that it has what was sent.
    deadline = time.monotonic() + 5
    name = scope["query_string"].decode() + name
    while not os.path.exists(name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the client has not got {name}")
        time.sleep(0.001)

async def app(scope, receive, send):
    assert scope["type"] == "http"
    path = scope["path"]
    if "later" in path:
        await asyncio.sleep(0.001)
    await send(START)
    if path.startswith("/pieces"):
        for piece in (b"an", b"s"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            hold(scope, piece.decode())
            time.sleep(0.002)
        await send({"type": "http.response.body", "body": b"w"})
        hold(scope, "w")
    elif path.startswith("/file"):
        await send({"type": "http.response.pathsend", "path": os.path.abspath("four")})
        hold(scope, "answ")
    elif "quick" in path:
        await send({"type": "http.response.body", "body": b"answ"})
        if os.path.exists(scope["query_string"].decode() + "slow"):
            turns.append(path)
            hold(scope, str(len(turns) - 1))
            time.sleep(0.002)
    else:
        await send({"type": "http.response.body", "body": b"answ"})
        hold(scope, "answ")
    if path == "/raises":
        raise ValueError("behind the answer")
    if path == "/waits":
        await asyncio.sleep(0.01)
        raise ValueError("behind a wait")
"""


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def server(request, tmp_path_factory):
    from conftest import serving

    pytest.importorskip(request.param)
    folder = tmp_path_factory.mktemp("leaving")
    (folder / "four").write_text("answ")
    with serving(folder, STEPS, "--loop", request.param) as server:
        yield server


def take_pieces(server, path, pieces):
    """Sends a request, and lets the application go on whenever a piece has come."""
    own = path.strip("/").replace("/", "-")
    with server.connect(4) as link:
        link.sendall(f"GET {path}?{own} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        got = b""
        for piece in pieces:
            while not got.partition(b"\r\n\r\n")[2].endswith(piece):
                more = link.recv(4096)
                assert more, got
                got += more
            (server.folder / f"{own}{piece.decode()}").touch()
    assert server.get("/quick").body == b"answ"
    assert "TimeoutError" not in server.said()


@pytest.mark.parametrize("path", ["/whole", "/whole/later", "/file", "/raises", "/waits"])
def test_an_answer_leaves_with_its_last_piece(server, path):
    take_pieces(server, path, [b"answ"])
    for words in {"/raises": ["behind the answer"], "/waits": ["behind a wait"]}.get(path, []):
        server.wait_for_words(words)


@pytest.mark.parametrize("path", ["/pieces", "/pieces/later"])
def test_a_piece_leaves_when_it_is_sent(server, path):
    take_pieces(server, path, [b"an", b"s", b"w"])


def test_a_path_that_was_quick_is_late_once(server):
    for _ in range(30):
        assert server.get("/mixed/quick").body == b"answ"
    (server.folder / "mixed-quickslow").touch()
    for number in range(3):
        link = server.connect(4)
        link.sendall(b"GET /mixed/quick?mixed-quick HTTP/1.1\r\nHost: a\r\n\r\n")
        if number == 0:
            (server.folder / "mixed-quick0").touch()
        got = b""
        while not got.endswith(b"answ"):
            got += link.recv(4096)
        (server.folder / f"mixed-quick{number}").touch()
        link.close()
    assert "TimeoutError" not in server.said()


def test_requests_in_a_row_are_answered_in_their_order(server):
    with server.connect() as link:
        link.sendall(b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        link.shutdown(socket.SHUT_WR)
        got = b""
        while piece := link.recv(65536):
            got += piece
    assert got.count(b"answ") == 50 == got.count(b"HTTP/1.1 200 OK")


SSE = """
import asyncio
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

live, left = set(), []

async def sse(request):
    async def pieces():
        me = object()
        live.add(me)
        try:
            yield b"data: hi\\n\\n"
            await asyncio.Event().wait()
        finally:
            live.discard(me)
    return StreamingResponse(pieces(), media_type="text/event-stream")

async def poll(request):
    live.add(request)
    while not await request.is_disconnected():
        await asyncio.sleep(0.01)
    live.discard(request)
    return PlainTextResponse("for nobody")

async def count(request):
    return PlainTextResponse(str(len(live)))

app = Starlette(routes=[Route("/sse", sse), Route("/poll", poll), Route("/count", count)])
"""


def wait_for_count(server, wanted, seconds):
    deadline = time.monotonic() + seconds
    while (found := server.get("/count").body) != str(wanted).encode():
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


@pytest.mark.parametrize("path, what", [("/sse", b"data: hi"), ("/poll", None)])
def test_what_runs_for_a_client_ends_when_it_leaves(run, path, what):
    pytest.importorskip("starlette")
    server = run(SSE)
    links = [server.connect() for _ in range(100)]
    for link in links:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    for link in links if what else []:
        while what not in link.recv(4096):
            pass
    wait_for_count(server, 100, 10)
    for link in links:
        link.close()
    wait_for_count(server, 0, 1)


EVENTS = """
import asyncio
import gustnado

app = gustnado.App()

@app.get("/events")
async def events():
    async def source():
        yield "hi"
        await asyncio.Event().wait()
    return gustnado.events(source())
"""


@pytest.mark.parametrize("options", [(), ("--half-close-timeout", "1m")])
def test_an_end_waits_for_nobody_who_has_left(run, options):
    server = run(EVENTS, *options)
    link = server.connect()
    link.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    while b"data: hi" not in link.recv(4096):
        pass
    link.shutdown(socket.SHUT_WR)
    time.sleep(0.1)
    began = time.monotonic()
    assert server.end() == 0
    assert time.monotonic() - began < 2
    link.close()
