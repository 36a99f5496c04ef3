"""The exception that native handlers and ASGI applications get for a client that disconnects."""

import time

import gustnado
import pytest

NATIVE = """
import asyncio
import gustnado

app = gustnado.App()
seen, tasks = [], []

def note(coroutine):
    async def noted():
        try:
            await coroutine
        except Exception as error:
            seen.append(type(error).__qualname__)
    tasks.append(asyncio.create_task(noted()))

@app.get("/seen")
async def what():
    return ",".join(seen)

@app.get("/write")
async def write():
    response, writer = gustnado.Response.open()
    async def pieces():
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.01)
    note(pieces())
    return response

@app.post("/read")
async def read(request):
    note(request.read())
    await asyncio.Event().wait()

@app.get("/escapes")
async def escapes():
    raise gustnado.ClientDisconnected("in a handler")
"""

ASGI = """
seen = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/seen":
        await send({"type": "http.response.body", "body": ",".join(seen).encode()})
        return
    try:
        while True:
            await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
    except OSError as error:
        seen.append(type(error).__qualname__)
        raise
"""


def test_it_is_what_asgi_and_earlier_programs_catch():
    assert issubclass(gustnado.ClientDisconnected, ConnectionError)
    assert issubclass(gustnado.ClientDisconnected, OSError)


@pytest.mark.parametrize("program, method, path", [
    (NATIVE, "GET", "/write"), (NATIVE, "POST", "/read"), (ASGI, "GET", "/"),
])
def test_it_is_raised_once_the_client_has_disconnected(run, program, method, path):
    server = run(program, "--half-close-timeout", "50ms")
    length = "Content-Length: 9\r\n" if method == "POST" else ""
    with server.connect() as link:
        link.sendall(f"{method} {path} HTTP/1.1\r\nHost: a\r\n{length}\r\n".encode())
        time.sleep(0.2)
    deadline = time.monotonic() + 10
    while server.get("/seen").body != b"ClientDisconnected":
        assert time.monotonic() < deadline, (server.get("/seen").body, server.said())
        time.sleep(0.05)
    assert "Traceback" not in server.said() and "ERROR" not in server.said(), server.said()


def test_one_that_escapes_is_a_line_of_the_level_debug(run):
    server = run(NATIVE, "--log-level", "debug")
    assert server.get("/escapes").status == 500
    server.wait_for_words("DEBUG gustnado.error: escapes has failed: in a handler")
    assert "Traceback" not in server.said(), server.said()
