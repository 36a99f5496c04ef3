"""Lines of the log about faults that only a client would see."""

import os

import pytest

UPGRADE = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")

NATIVE = """
import asyncio
import gustnado

app = gustnado.App()

def inner(named):
    return {}[named]

@app.get("/bare")
def bare():
    return inner("k")

@app.get("/asked")
def asked(request):
    return inner("k")

@app.get("/ticks")
async def ticks():
    async def source():
        yield "hi"
        raise ConnectionError("no database")
    return gustnado.events(source())

@app.get("/pieces")
async def pieces():
    def source():
        yield "hi"
        raise ValueError("no piece")
    return gustnado.stream(source())

@app.get("/socket")
async def a_socket(request):
    return "never"
"""

ASGI = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", b"7")]})
    await send({"type": "http.response.pathsend", "path": scope["path"]})
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [])
    return [environ["SERVER_NAME"].encode()]
"""


@pytest.mark.parametrize("path", ["/bare", "/asked"])
def test_an_exception_of_a_plain_function_has_its_traceback(run, path):
    server = run(NATIVE)
    assert server.get(path).status == 500
    server.wait_for_words("KeyError: 'k'")
    assert 'return {}[named]' in server.said() and 'return inner("k")' in server.said()


@pytest.mark.parametrize("path, words", [
    ("/ticks", ["ticks has failed within its stream", "ConnectionError: no database"]),
    ("/pieces", ["pieces has failed within its stream", "ValueError: no piece"]),
])
def test_a_stream_that_raises_ends_its_client_and_is_told(run, path, words):
    server = run(NATIVE)
    answer = server.get(path)  # It has an end: else this would time out.
    assert b"hi" in answer.body and not answer.is_whole
    for each in words:
        server.wait_for_words(each)
    assert "never retrieved" not in server.said()


@pytest.mark.parametrize("program, path, options", [
    (NATIVE, "/bare", ()), (NATIVE, "/asked", ()), (NATIVE, "/socket", ()),
    (ASGI, "/ws", ("--ws", "none")),
    (WSGI, "/ws", ()), (WSGI, "/ws", ("--threads", "2")),
])
def test_who_wants_a_websocket_is_refused_and_told(run, program, path, options):
    server = run(program, *options)
    refused = server.get(path, UPGRADE)
    assert (refused.status, refused.fields["upgrade"]) == (426, "HTTP/1.1")
    server.wait_for_words(f"GET {path} requests a WebSocket, and there is none")
    assert server.said().count("requests a WebSocket") == 1


def test_a_file_that_is_not_there_is_404_and_told(run):
    server = run(ASGI)
    answer = server.get("/no/such/file")
    assert (answer.status, answer.is_whole) == (404, True)
    server.wait_for_words("the application has sent a file that is not there: /no/such/file")
    assert server.get("/").status == 500
    server.wait_for_words("expected a regular file to send, found another: /")
    whole = server.folder / "whole"
    whole.write_text("content")
    assert server.get(str(whole)).body == b"content"
    assert os.fspath(whole) not in server.said()


LIFESPAN = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        %s
        raise RuntimeError("no database")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"up"})
"""


def test_a_lifespan_that_fails_halfway_is_told(run):
    server = run(LIFESPAN % "await receive()")
    assert server.get("/").body == b"up"
    server.wait_for_words("RuntimeError: no database")
    server.wait_for_words("--lifespan on")


def test_an_application_without_a_lifespan_is_not_told_of(run):
    server = run(LIFESPAN % "pass")
    assert server.get("/").body == b"up"
    assert "no database" not in server.said()


def test_the_name_of_the_server_is_the_connections_address(run):
    assert run(WSGI, "--host", "0.0.0.0").get("/").body == b"127.0.0.1"
