"""Bodies that break the rules, are too large, or stop: each gets a response, or its connection is
closed, within the time that is set, and nothing is left of it."""

import json
import resource
import selectors
import time

import pytest

CLIENTS = 200
BODY_TIMEOUT_SECONDS = 1
# Ten times what it should take.
BOUND_SECONDS = 10

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
# What is sent, in one or two parts, and the status that says what is wrong with it.
FAULTS = {
    "bad chunk size": ([CHUNKED + b"5\r\nabcde\r\n", b"zz\r\nabc"], 400),
    "oversized body": ([CHUNKED + b"3e8\r\n" + bytes(1000) + b"\r\n", b"1\r\na\r\n"], 413),
    "silence": ([b"Content-Length: 5\r\n\r\n", b""], 408),
    "silence within": ([b"Content-Length: 500\r\n\r\nabc", b""], 408),
    "bad trailer": ([CHUNKED + b"3\r\nabc\r\n0\r\n", b"bad trailer\r\n\r\n"], 400),
}

COUNT = """
import gc, json, os

def count(**more):
    gc.collect()
    fds = len(os.listdir("/proc/self/fd"))
    return json.dumps({"fds": fds, **more}).encode()
"""

ASGI = COUNT + """
import asyncio, weakref

exchanges, seen = weakref.WeakSet(), []

async def read(receive):
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise EOFError("the client has left")
        if not message["more_body"]:
            return

async def answer(send, body):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    path = scope["path"]
    if path == "/count":
        await answer(send, count(exchanges=len(exchanges), tasks=len(asyncio.all_tasks())))
        return
    exchanges.add(receive.__self__)
    if path == "/read":
        await read(receive)
        await answer(send, b"all read")
    elif path == "/forgives":
        try:
            await read(receive)
        except EOFError:
            pass
        await answer(send, b"whatever")
    elif path == "/returns":
        try:
            await read(receive)
        except EOFError:
            pass
    elif path == "/stays":
        # It gives up what it waits for, and never looks at the body again.
        try:
            await asyncio.wait_for(read(receive), 0.5)
        except (asyncio.TimeoutError, EOFError):
            pass
        await asyncio.sleep(4)
    elif path == "/begins":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        try:
            await read(receive)
        except EOFError:
            await asyncio.sleep(4)
    elif path == "/twice":
        async def one():
            return (await receive())["type"]
        first, second = asyncio.create_task(one()), asyncio.create_task(one())
        seen.append(await asyncio.gather(first, second))
"""

WSGI = COUNT + """
def app(environ, start_response):
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [count() if environ["PATH_INFO"] == "/count" else b"all read"]
"""

NATIVE = COUNT + """
import asyncio, gustnado

app = gustnado.App()

@app.get("/count")
async def counted():
    return count(tasks=len(asyncio.all_tasks()))

@app.post("/sync")
def sync(request):
    return request.body

@app.post("/read")
async def read(request):
    await request.read()
    return "all read"

@app.post("/grouped")
async def grouped(request):
    try:
        await request.read()
    except ConnectionError as error:
        raise RuntimeError("it could not be read") from error

@app.post("/forgives")
async def forgives(request):
    try:
        await request.read()
    except ConnectionError as error:
        return 422, str(error)

@app.post("/limits")
async def limits(request):
    return await request.read(limit=100)

@app.post("/begins")
async def begins(request):
    async def pieces():
        yield b"begun"
        async for piece in request.stream():
            yield piece
    return gustnado.stream(pieces())
"""

OPTIONS = ["--body-timeout", f"{BODY_TIMEOUT_SECONDS}s", "--limit-body-bytes", "1000"]


@pytest.fixture(autouse=True, scope="module")
def _descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def counted(server):
    return json.loads(server.get("/count").body)


def ask_all(server, path, faults=FAULTS, count=CLIENTS):
    """Sends each fault over so many connections. Returns what came on each up to its end, by fault,
    and the seconds that this took; none for a connection that was not closed in time."""
    links = []
    for name, ((first, second), _status) in faults.items():
        for number in range(count):
            link = server.connect()
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\n".encode()
            # Half of them all at once, as most clients send what is small.
            link.sendall(head + first + (second if number % 2 else b""))
            links.append([name, link, b"" if number % 2 else second, b"", False])
    began = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for one in links:
            one[1].sendall(one[2])
            selector.register(one[1], selectors.EVENT_READ, one)
        while selector.get_map() and (left := began + BOUND_SECONDS - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                try:
                    piece = key.fileobj.recv(65536)
                except ConnectionResetError:
                    piece = b""
                key.data[3] += piece
                if not piece:
                    key.data[4] = True
                    selector.unregister(key.fileobj)
    took = time.monotonic() - began
    found = {name: [] for name in faults}
    for name, link, _, came, is_closed in links:
        link.close()
        found[name].append(came if is_closed else None)
    return found, took


def check(found, wanted):
    for name, answers in found.items():
        want = wanted(FAULTS[name][1])
        wrong = [came for came in answers if came is None or not came.startswith(want)]
        assert not wrong, (name, len(wrong), wrong[0] and wrong[0][:80], want)


def status_line(status):
    return f"HTTP/1.1 {status} ".encode()


def await_counts(server, before):
    """Waits until a process has no more of anything than it had."""
    deadline = time.monotonic() + BOUND_SECONDS
    while any(now > before[name] for name, now in counted(server).items()):
        assert time.monotonic() < deadline, (before, counted(server))
        time.sleep(0.05)


@pytest.mark.parametrize(("path", "loop"), [
    ("/read", "asyncio"), ("/read", "uvloop"), ("/forgives", "asyncio"), ("/returns", "asyncio"),
])
def test_asgi_answers_for_each_of_them(run, path, loop):
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    server = run(ASGI, "--loop", loop, *OPTIONS)
    before = counted(server)
    found, took = ask_all(server, path)
    check(found, status_line)
    assert took < BOUND_SECONDS
    await_counts(server, before)
    assert "Traceback" not in server.said() and "ERROR" not in server.said(), server.said()


def test_an_asgi_application_that_stays_silent_is_answered_for(run):
    server = run(ASGI, *OPTIONS)
    before = counted(server)
    found, took = ask_all(server, "/stays", count=20)
    check(found, status_line)
    # The application has slept on.
    assert took < 3.5
    await_counts(server, before)


def test_an_asgi_answer_that_has_begun_is_cut(run):
    server = run(ASGI, *OPTIONS)
    found, took = ask_all(server, "/begins", count=20)
    check(found, lambda _status: status_line(200))
    assert all(b"begun" in came and not came.endswith(b"0\r\n\r\n")
               for answers in found.values() for came in answers)
    assert took < 3.5


def test_two_receives_at_once_are_both_told(run):
    server = run(ASGI, *OPTIONS)
    before = counted(server)
    found, _took = ask_all(server, "/twice", {"silence": FAULTS["silence"]}, 5)
    check(found, status_line)
    await_counts(server, before)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_wsgi_answers_for_each_of_them(run, threads):
    server = run(WSGI, "--threads", threads, *OPTIONS)
    before = counted(server)
    found, took = ask_all(server, "/")
    check(found, status_line)
    assert took < BOUND_SECONDS
    await_counts(server, before)


@pytest.mark.parametrize("path", ["/sync", "/read", "/grouped"])
def test_native_handlers_answer_for_each_of_them(run, path):
    server = run(NATIVE, *OPTIONS)
    before = counted(server)
    found, took = ask_all(server, path)
    check(found, status_line)
    assert took < BOUND_SECONDS
    await_counts(server, before)
    assert "Traceback" not in server.said() and "ERROR" not in server.said(), server.said()


def test_a_coroutine_may_answer_for_itself(run):
    server = run(NATIVE, *OPTIONS)
    found, _took = ask_all(server, "/forgives", count=5)
    check(found, lambda _status: status_line(422))
    assert b"arrived too slowly" in found["silence"][0]
    found, _took = ask_all(server, "/begins", count=5)
    check(found, lambda _status: status_line(200))
    assert all(not came.endswith(b"0\r\n\r\n") for answers in found.values() for came in answers)


def test_a_body_above_a_coroutines_own_limit_is_a_413(run):
    server = run(NATIVE, *OPTIONS)
    assert server.post("/limits", bytes(100)).status == 200
    assert server.post("/limits", bytes(101)).status == 413
    assert "Traceback" not in server.said(), server.said()
