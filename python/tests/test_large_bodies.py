"""Bodies without a limit, with one, and what they cost."""

import socket
import time

import pytest

READS = """
import asyncio, json

async def app(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/large":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        piece = bytes(200 << 20)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})
        return
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        length += len(message["body"])
        if scope["path"] == "/slow":
            await asyncio.sleep(0.0005)
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % length})
"""


def memory(server, kind):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(kind))


def push(server, path, length, is_chunked):
    """Sends a body, and returns the response."""
    piece = bytes(1 << 20)
    framed = b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece
    how = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {length}"
    with server.connect(60) as link:
        link.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\n{how}\r\n"
                     "Connection: close\r\n\r\n".encode())
        try:
            for _ in range(length // len(piece)):
                link.sendall(framed)
            if is_chunked:
                link.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # It was refused.
        got = b""
        while piece := link.recv(65536):
            got += piece
        return got


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_has_no_limit_and_takes_no_memory(run, is_chunked):
    server = run(READS)
    push(server, "/slow", 1 << 20, is_chunked)
    before = memory(server, "VmHWM")
    assert push(server, "/slow", 200 << 20, is_chunked).endswith(b"%d" % (200 << 20))
    assert memory(server, "VmHWM") - before < 8 << 20


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_limit_that_is_set_holds_and_is_named(run, is_chunked):
    server = run(READS, "--limit-body-bytes", "2m")
    began = time.monotonic()
    assert push(server, "/up", 5 << 20, is_chunked).startswith(b"HTTP/1.1 413 ")
    assert time.monotonic() - began < 5
    server.wait_for_words("/up: refused with 413: ")
    assert server.said().count("--limit-body-bytes is 2097152") == 1
    assert push(server, "/up", 2 << 20, is_chunked).endswith(b"%d" % (2 << 20))


NATIVE = """
import gustnado

app = gustnado.App()

@app.post("/read")
async def read(request):
    return str(len(await request.read()))

@app.post("/more")
async def more(request):
    return str(len(await request.read(limit=3 << 20)))

@app.post("/stream")
async def stream(request):
    length = 0
    async for piece in request.stream():
        length += len(piece)
    return str(length)

@app.get("/plain")
async def form():
    return "a form"

@app.post("/plain")
def plain(request):
    return str(len(request.body))

@app.put("/plain")
async def whatever_is_sent(request):
    return str(len(await request.read(limit=1 << 30)))

@app.get("/bytearray")
def of_bytearray():
    return bytearray(b"body")

@app.get("/memoryview")
async def of_memoryview():
    return memoryview(b"body")

@app.get("/response")
def of_response():
    return gustnado.Response(memoryview(b"body"))

@app.get("/pieces")
async def pieces():
    return gustnado.stream(iter([memoryview(b"bo"), bytearray(b"d"), "y"]))
"""


def test_functions_read_as_much_as_they_say(run):
    server = run(NATIVE)
    length = 2 << 20
    for path, status in [("/stream", 200), ("/more", 200), ("/read", 413), ("/plain", 413)]:
        for is_chunked in (False, True):
            got = push(server, path, length, is_chunked)
            assert got.startswith(b"HTTP/1.1 %d " % status), (path, is_chunked, got)
            assert status != 200 or got.endswith(b"%d" % length)
    server.wait_for_words("/plain: refused with 413: ")
    server.wait_for_words("request.read(limit=…) takes more")
    assert push(server, "/more", 4 << 20, False).startswith(b"HTTP/1.1 413 ")
    assert "Traceback" not in server.said()


def test_a_set_limit_is_that_of_functions_too(run):
    server = run(NATIVE, "--limit-body-bytes", "2m")
    for path in ("/stream", "/read", "/plain"):
        assert push(server, path, 2 << 20, True).endswith(b"%d" % (2 << 20)), path
        assert push(server, path, 3 << 20, True).startswith(b"HTTP/1.1 413 "), path


def test_functions_return_bytes_of_any_kind(run):
    server = run(NATIVE)
    for path in ("/bytearray", "/memoryview", "/response", "/pieces"):
        answer = server.get(path)
        assert (answer.status, answer.body) == (200, b"body"), path


def test_a_large_piece_is_not_copied_whole(run):
    server = run(READS)
    server.post("/up", b"warm")
    before = memory(server, "VmHWM")
    with server.connect(60) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        link.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        length = 0
        while piece := link.recv(1 << 20):
            length += len(piece)
    assert length > 200 << 20
    # The piece itself is the application's.
    assert memory(server, "VmHWM") - before < (200 + 16) << 20
