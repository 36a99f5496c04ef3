"""A client that goes leaves no task, future or descriptor behind."""

import json
import time

import pytest

NATIVE = """
import asyncio, gc, json, os, sys, gustnado

app = gustnado.App()
ended = []

@app.get("/count")
async def count():
    gc.collect()
    fds = len(os.listdir("/proc/self/fd"))
    return json.dumps({"fds": fds, "tasks": len(asyncio.all_tasks())})

@app.get("/ended")
async def how():
    return ",".join(ended)

async def pieces():
    yield "begun"
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        ended.append("cleaned up")

@app.get("/stream")
async def stream():
    return gustnado.stream(pieces())

@app.get("/events")
async def events():
    return gustnado.events(pieces(), heartbeat=None)

@app.get("/handler")
async def handler():
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("cleaned up")

@app.post("/reads")
async def reads(request):
    try:
        await request.read()
    finally:
        ended.append("cleaned up")

@app.get("/whole")
async def whole():
    async def some():
        try:
            yield "all of it"
        finally:
            await asyncio.sleep(0.05)
            ended.append("cleaned up")
    return gustnado.stream(some())
"""

ASGI = """
import asyncio, gc, json, os

async def answer(send, body):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

ended = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    path = scope["path"]
    if path == "/count":
        gc.collect()
        fds = len(os.listdir("/proc/self/fd"))
        await answer(send, json.dumps({"fds": fds, "tasks": len(asyncio.all_tasks())}).encode())
        return
    if path == "/ended":
        await answer(send, ",".join(ended).encode())
        return
    if path == "/reads":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif path == "/handler":
        await receive()
        await receive()
    elif path == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await receive()
        await receive()
    elif path == "/floods":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async def flood():
            while True:
                piece = {"type": "http.response.body", "body": bytes(65536), "more_body": True}
                await send(piece)
        # Both wait for room.
        await asyncio.gather(flood(), flood(), return_exceptions=True)
    ended.append("cleaned up")
"""

CLIENTS = 20


def counted(server):
    return json.loads(server.get("/count").body)


def leave(server, path, count=CLIENTS):
    """Sends requests over so many connections, and goes."""
    before = counted(server)
    body = "POST" if path == "/reads" else "GET"
    length = "Content-Length: 9\r\n" if path == "/reads" else ""
    links = [server.connect() for _ in range(count)]
    for link in links:
        link.sendall(f"{body} {path} HTTP/1.1\r\nHost: a\r\n{length}\r\n".encode())
    time.sleep(0.2)
    for link in links:
        link.close()
    deadline = time.monotonic() + 10
    while any(now > before[name] for name, now in counted(server).items()):
        assert time.monotonic() < deadline, (before, counted(server))
        time.sleep(0.05)
    assert server.get("/ended").body.decode().split(",") == ["cleaned up"] * count
    assert "Traceback" not in server.said() and "ERROR" not in server.said(), server.said()


@pytest.mark.parametrize("path", ["/stream", "/events", "/handler", "/reads"])
def test_what_native_coroutines_wait_for_ends(run, path):
    leave(run(NATIVE, "--half-close-timeout", "50ms"), path)


def test_a_stream_that_was_whole_cleans_up_in_peace(run):
    server = run(NATIVE, "--half-close-timeout", "50ms")
    assert server.get("/whole").body == b"all of it"
    deadline = time.monotonic() + 10
    while server.get("/ended").body != b"cleaned up":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("path", ["/stream", "/handler", "/reads", "/floods"])
def test_what_asgi_applications_wait_for_ends(run, path):
    leave(run(ASGI, "--half-close-timeout", "50ms"), path)


POLLS = """
import asyncio, gc

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await receive()

    async def poll(count):
        for _ in range(count):
            # As `request.is_disconnected()` of Starlette asks.
            asking = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.sleep(0)

    def futures():
        gc.collect()
        return sum(isinstance(one, asyncio.Future) for one in gc.get_objects())

    await poll(100)
    before = futures()
    waiting = [asyncio.ensure_future(receive()) for _ in range(3)]
    await poll(5000)
    left = futures() - before
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(left).encode()})
    told = [(await one)["type"] for one in waiting]
    assert told == ["http.disconnect"] * 3, told
"""


def test_receive_calls_that_were_cancelled_are_forgotten(run):
    server = run(POLLS, "--loop", "asyncio")
    answer = server.get("/")
    assert answer.status == 200 and int(answer.body) < 100, (answer.body, server.said())
    assert server.end() == 0 and "Error" not in server.said()


UNSENT = """
import asyncio, sys

seen = []

async def app(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/seen":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": ",".join(seen).encode()})
        return
    status = int(scope["path"].strip("/"))
    await receive()
    told = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": status, "headers": []})
    try:
        for number in range(6):
            await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
            await asyncio.sleep(0.01)
            assert not told.done()
        if scope["query_string"] == b"on":
            while True:
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                await asyncio.sleep(0.01)
        await send({"type": "http.response.body"})
        seen.append(f"all {(await told)['type']}")
    except BaseException as error:
        seen.append(f"{error!r} {(await told)['type']}")
        raise
"""


@pytest.fixture(params=["asyncio", "uvloop"])
def unsent(run, request):
    pytest.importorskip(request.param)
    return run(UNSENT, "--loop", request.param)


def wait_for_seen(server, words, seconds=5):
    deadline = time.monotonic() + seconds
    while words not in (seen := server.get("/seen").body.decode()):
        assert time.monotonic() < deadline, (seen, server.said())
        time.sleep(0.02)


@pytest.mark.parametrize("method, path", [("HEAD", "/200"), ("GET", "/204"), ("GET", "/304")])
def test_content_that_is_never_sent_is_taken_all_the_same(unsent, method, path):
    answer = unsent.get(path, method=method)
    assert answer.status == int(path[1:]) and answer.body == b""
    wait_for_seen(unsent, "all http.disconnect")
    assert unsent.end() == 0 and "Traceback" not in unsent.said()


def test_content_that_is_never_sent_and_does_not_end_is_ended(unsent):
    assert unsent.get("/200?on", method="HEAD").status == 200
    wait_for_seen(unsent, "ClientDisconnected", 20)
    assert "http.disconnect" in unsent.get("/seen").body.decode()
    assert unsent.end() == 0 and "Traceback" not in unsent.said()
