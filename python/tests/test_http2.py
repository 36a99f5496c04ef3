"""HTTP/2 beneath applications: ASGI, WSGI and native handlers, in clear and by TLS."""

import json
import time

import pytest
from conftest import self_signed
from http2_link import Link, context_of

ASGI = """
import asyncio, json

gone = []

async def told(send, value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": body})

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    path = scope["path"]
    if path == "/scope":
        fields = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        await told(send, [scope["http_version"], scope["method"], scope["scheme"],
                          scope["raw_path"].decode(), scope["query_string"].decode(), fields])
    elif path == "/echo":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            await send({"type": "http.response.body", "body": message["body"], "more_body": more})
    elif path == "/slow":
        await asyncio.sleep(1)
        await told(send, b"slow")
    elif path == "/wait":
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.append("receive")
    elif path == "/write":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                await asyncio.sleep(0.01)
        except OSError:
            gone.append("send")
    elif path == "/gone":
        await told(send, gone)
    elif path == "/fails":
        raise ValueError("on purpose")
    else:
        await told(send, b"here")
"""

WSGI = """
import time

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/fails":
        raise ValueError("on purpose")
    if path == "/slow":
        time.sleep(1)
    start_response("200 OK", [("X-Own", "1")])
    if path == "/echo":
        return iter(lambda: environ["wsgi.input"].read(10_000), b"")
    if path == "/environ":
        names = ("SERVER_PROTOCOL", "REQUEST_METHOD", "wsgi.url_scheme", "QUERY_STRING",
                 "HTTP_HOST", "HTTP_X_ODD", "HTTP_COOKIE", "CONTENT_LENGTH", "CONTENT_TYPE")
        return ["\\n".join(f"{name}={environ.get(name)}" for name in names).encode()]
    return [b"slow" if path == "/slow" else b"here"]
"""

NATIVE = """
import asyncio
import gustnado

app = gustnado.App()
state = {"gone": 0}

@app.get("/version")
def version(request):
    return [request.http_version, request.scheme, request.header("host"), request.path]

@app.post("/echo")
async def echo(request):
    async def pieces():
        async for piece in request.stream():
            yield piece
    return gustnado.stream(pieces())

@app.get("/slow")
async def slow():
    await asyncio.sleep(1)
    return "slow"

@app.get("/blocks")
def blocks():
    return "here"

@app.get("/held")
async def held():
    try:
        await asyncio.sleep(30)
    finally:
        state["gone"] += 1

@app.get("/gone")
async def gone():
    return str(state["gone"])

@app.get("/fails")
def fails():
    raise ValueError("on purpose")

@app.get("/")
def here():
    return "here"
"""

PROGRAMS = {"asgi": ASGI, "wsgi": WSGI, "native": NATIVE}
BODY = bytes(range(256)) * 2_000


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["clear", "tls"])
def connect(request, run, certificate):
    """Starts a program, and returns what connects to it; it says which way it goes."""

    def start(kind, *options):
        if request.param == "clear":
            server = run(PROGRAMS[kind], "--h2c", *options)
            return lambda: Link(server.port)
        key = certificate.with_name("key.pem")
        pair = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        server = run(PROGRAMS[kind], *pair, *options)
        return lambda: Link(server.port, context_of(certificate))

    start.scheme = "https" if request.param == "tls" else "http"
    return start


def test_the_scope_says_that_it_is_version_2(connect):
    with connect("asgi")() as link:
        fields = [("x-odd", "1"), ("cookie", "a=1"), ("cookie", "b=2")]
        answer = link.get("/scope?q=%20", fields)
    version, method, scheme, path, query, found = json.loads(answer.body)
    assert (version, method, scheme) == ("2", "GET", connect.scheme)
    assert (path, query) == ("/scope", "q=%20")
    found = dict(found)
    # Pseudo fields are none of the application's; the authority is the host (ASGI, HTTP scope).
    assert found["host"] == "localhost" and found["x-odd"] == "1"
    # Parts of a cookie are one field for whoever knows HTTP/1 alone (RFC 9113 §8.2.3).
    assert found["cookie"] == "a=1; b=2"
    assert not any(name.startswith(":") for name in found)
    assert answer.fields["x-own"] == "1" and "connection" not in answer.fields


def test_the_environment_says_that_it_is_version_2(connect):
    with connect("wsgi")() as link:
        fields = [("x-odd", "1"), ("cookie", "a=1"), ("cookie", "b=2"), ("content-type", "a/b")]
        answer = link.post("/environ?q=1", b"12345", [*fields, ("content-length", "5")])
    found = dict(line.split("=", 1) for line in answer.body.decode().splitlines())
    assert found["SERVER_PROTOCOL"] == "HTTP/2" and found["REQUEST_METHOD"] == "POST"
    assert found["wsgi.url_scheme"] == connect.scheme and found["QUERY_STRING"] == "q=1"
    assert found["HTTP_HOST"] == "localhost" and found["HTTP_X_ODD"] == "1"
    assert found["HTTP_COOKIE"] == "a=1; b=2"
    assert found["CONTENT_LENGTH"] == "5" and found["CONTENT_TYPE"] == "a/b"


def test_a_native_request_says_that_it_is_version_2(connect):
    with connect("native")() as link:
        assert json.loads(link.get("/version").body) == [
            "2", connect.scheme, "localhost", "/version"]


@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_bodies_larger_than_any_window_pass_both_ways(connect, kind):
    with connect(kind)() as link:
        for fields in ([], [("content-length", str(len(BODY)))]):
            answer = link.post("/echo", BODY, fields)
            assert (answer.status, answer.body) == (200, BODY)


@pytest.mark.parametrize("kind", ["asgi", "native"])
def test_a_body_comes_as_it_is_sent(connect, kind):
    with connect(kind)() as link:
        stream = link.request("/echo", "POST", ends=False)
        answer = link.answers[stream]
        for word in (b"one", b"two", b"three"):
            before = answer.body
            link.upload(stream, word, ends=False)
            link.until(lambda before=before: len(answer.body) > len(before))
            assert answer.body == before + word
        link.upload(stream, b"")
        assert link.answer(stream).body == b"onetwothree"


@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_requests_of_one_connection_run_at_once(connect, kind):
    options = ["--threads", "8"] if kind == "wsgi" else []
    with connect(kind, *options)() as link:
        link.get("/")
        began = time.monotonic()
        slow = [link.request("/slow") for _ in range(5)]
        assert link.get("/").body == b"here"
        assert not any(link.answers[stream].is_whole for stream in slow)
        assert all(link.answer(stream).body == b"slow" for stream in slow)
        took = time.monotonic() - began
    # (One after the other takes five seconds.)
    assert took < 4, took


@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_what_fails_is_the_end_of_one_response(connect, kind):
    with connect(kind)() as link:
        slow = link.request("/slow")
        assert link.get("/fails").status == 500
        assert link.answer(slow).body == b"slow"


def test_an_application_hears_of_a_stream_that_is_reset(connect):
    with connect("asgi")() as link:
        waiting, writing = link.request("/wait", "POST", ends=False), link.request("/write")
        link.until(lambda: link.answers[writing].body)
        link.reset(waiting)
        link.reset(writing)
        deadline = time.monotonic() + 5
        while sorted(found := json.loads(link.get("/gone").body)) != ["receive", "send"]:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)


def test_a_native_handler_ends_with_its_stream(connect):
    with connect("native")() as link:
        streams = [link.request("/held") for _ in range(3)]
        link.get("/")
        for stream in streams:
            link.reset(stream)
        deadline = time.monotonic() + 5
        while (found := link.get("/gone").body) != b"3":
            assert time.monotonic() < deadline, found
            time.sleep(0.02)


def test_an_end_lets_requests_of_a_connection_finish(run):
    server = run(ASGI, "--h2c")
    with Link(server.port) as link:
        link.get("/")
        slow = [link.request("/slow") for _ in range(5)]
        time.sleep(0.1)
        server.process.terminate()
        assert all(link.answer(stream).body == b"slow" for stream in slow)
        assert link.has_ended
    assert server.process.wait(10) == 0
