"""The engine's time-outs apply to every interface of Python and on every loop, with nothing else
to wake it."""

import importlib.util
import socket
import time

import pytest

SECONDS = 1
# Ten times what they may be late.
LATE_SECONDS = 10

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    large = scope["path"] == "/large"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while large:
        await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
    await send({"type": "http.response.body", "body": b"done"})
"""

WSGI = """
import itertools
def app(environ, start_response):
    start_response("200 OK", [])
    return itertools.repeat(bytes(65536)) if environ["PATH_INFO"] == "/large" else [b"done"]
"""

NATIVE = """
import asyncio, itertools, gustnado
app = gustnado.App()

@app.get("/")
@app.post("/")
{kind} whole(request):
    {read}
    return "done"

@app.get("/large")
{kind} large(request):
    return {large}
"""

FACES = {
    "asgi": (ASGI, ("--loop", "asyncio")),
    "asgi on uvloop": (ASGI, ("--loop", "uvloop")),
    "wsgi": (WSGI, ()),
    "wsgi with threads": (WSGI, ("--threads", "2")),
    "functions": (NATIVE.format(kind="def", read="request.body", large="bytes(64 << 20)"), ()),
    "coroutines": (NATIVE.format(
        kind="async def", read="await request.read()",
        large="gustnado.stream(itertools.repeat(bytes(65536)))"), ("--loop", "asyncio")),
    "coroutines on uvloop": (NATIVE.format(
        kind="async def", read="await request.read()",
        large="gustnado.stream(itertools.repeat(bytes(65536)))"), ("--loop", "uvloop")),
}

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LARGE = GET.replace(b"/ ", b"/large ")
# What is sent, and what comes before the end.
SILENCES = {
    "nothing": (b"", b""),
    "half a head": (b"GET / HT", b"HTTP/1.1 408 "),
    "half a body": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", b"HTTP/1.1 408 "),
    "no body": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", b"HTTP/1.1 408 "),
    "half a chunk": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
                     b"HTTP/1.1 408 "),
    "no next request": (GET, b"HTTP/1.1 200 "),
    "half a next request": (GET + b"GET / ", b"HTTP/1.1 200 "),
}


@pytest.fixture(params=FACES)
def server(run, request):
    program, options = FACES[request.param]
    if "uvloop" in options and importlib.util.find_spec("uvloop") is None:
        pytest.skip("uvloop is not installed")
    times = [word for name in ("header-timeout", "body-timeout", "write-timeout",
                               "timeout-keep-alive")
             for word in (f"--{name}", f"{SECONDS}s")]
    # (Else what has been taken earns time.)
    return run(program, *options, *times, "--write-rate-min", "1g", "--defer-accept", "false")


def test_whoever_is_silent_is_let_go_in_time(server):
    links = {}
    for name, (sent, _) in SILENCES.items():
        links[name] = (server.connect(SECONDS + LATE_SECONDS), time.monotonic())
        links[name][0].sendall(sent)
    for name, (link, began) in links.items():
        came = b""
        while piece := link.recv(65536):
            came += piece
        took = time.monotonic() - began
        link.close()
        assert came.startswith(SILENCES[name][1]), (name, came)
        # (One after another is read here, so that only the first is seen to the moment.)
        assert SECONDS * 0.9 < took < SECONDS + LATE_SECONDS, (name, took)


def test_whoever_takes_nothing_is_let_go_in_time(server):
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(SECONDS + LATE_SECONDS)
        link.connect(("127.0.0.1", server.port))
        link.sendall(LARGE)
        began = time.monotonic()
        # It is sent no more once it was let go; to find out without taking anything:
        while time.monotonic() < began + SECONDS + LATE_SECONDS:
            if server.get("/").status == 200 and not is_there(link):
                break
            time.sleep(0.05)
        took = time.monotonic() - began
    assert SECONDS * 0.9 < took < SECONDS + LATE_SECONDS, took
    assert server.end() == 0


def is_there(link):
    """Whether the kernel still has this connection's other end."""
    mine = f"{link.getsockname()[1]:04X}"
    with open("/proc/self/net/tcp") as connections:
        states = [line.split() for line in connections]
    # The server's end, towards our port: established.
    return any(fields[2].endswith(f":{mine}") and fields[3] == "01" for fields in states[1:])
