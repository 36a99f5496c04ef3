"""Handlers in Python on the native engine."""

import pathlib
import signal
import subprocess
import sys
import time

import gustnado

PROGRAM = """
import asyncio, sys, gustnado

app = gustnado.App()

@app.get("/hello")
def hello():
    return "Hello, world!"

@app.get("/hello/{name}")
def named(name):
    return f"Hello, {name}!"

@app.get("/both/{first}/{second}")
async def both(request, first, second):
    await asyncio.sleep(0.01)
    return {"path": request.path, "parts": [first, second], "query": request.query}

@app.get("/now")
async def now():
    task = asyncio.current_task()
    return f"{task is not None}"

@app.post("/echo")
def echo(request):
    return request.body

@app.post("/echo-later")
async def echo_later(request):
    return await request.read()

@app.get("/fails")
def fails():
    raise ValueError("what a pity")

@app.get("/fails-later")
async def fails_later():
    await asyncio.sleep(0)
    raise ValueError("what a pity, later")

@app.get("/wrong")
def wrong():
    return object()

@app.get("/teapot")
def teapot():
    return 418, gustnado.Response("short and stout", headers={"X-Pot": "tea"})

@app.get("/nothing")
def nothing():
    return None

@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(3):
            yield f"{number}\\n"
            await asyncio.sleep(0.001)
    return gustnado.stream(pieces(), content_type="text/plain")

@app.get("/file")
def file():
    return gustnado.Response.file(__file__)

app.run(port=int(sys.argv[1]))
"""


def test_what_handlers_return_is_sent(serve):
    server = serve(PROGRAM)
    assert server.get("/hello").body == b"Hello, world!"
    assert server.get("/hello/J%C3%BCrgen").body == "Hello, Jürgen!".encode()
    both = server.get("/both/a/b?x=1&x=2")
    assert both.fields["content-type"] == "application/json"
    assert both.body == b'{"path":"/both/a/b","parts":["a","b"],"query":[["x","1"],["x","2"]]}'
    assert server.get("/now").body == b"True"
    pot = server.get("/teapot")
    assert (pot.status, pot.body, pot.fields["x-pot"]) == (418, b"short and stout", "tea")
    nothing = server.get("/nothing")
    assert (nothing.status, nothing.body) == (204, b"")
    assert server.get("/stream").body == b"0\n1\n2\n"
    assert server.get("/file").body.startswith(b"\nimport asyncio")
    assert server.get("/file", "Range: bytes=1-6\r\n").body == b"import"
    assert server.get("/absent").status == 404


def test_bodies_come_whole(serve):
    server = serve(PROGRAM)
    for length in (0, 5, 100_000, 900_000):
        body = bytes(index * 7 % 251 for index in range(length))
        assert server.post("/echo", body).body == body
        assert server.post("/echo-later", body).body == body


def test_a_handler_that_fails_is_a_500_and_a_traceback(serve):
    server = serve(PROGRAM)
    for path, words in [
        ("/fails", "ValueError: what a pity"),
        ("/fails-later", "ValueError: what a pity, later"),
        ("/wrong", "expected text, bytes"),
    ]:
        assert server.get(path).status == 500
        assert words in server.said()
    assert server.get("/hello").status == 200


def test_it_ends_in_order(serve):
    for number in (signal.SIGTERM, signal.SIGINT):
        server = serve(PROGRAM)
        assert server.get("/hello").status == 200
        assert server.end(number) == 0


def test_an_application_that_is_an_object_has_workers_too(serve):
    server = serve("""
        import os, sys
        import gustnado
        app = gustnado.App()

        @app.get("/")
        def pid():
            return str(os.getpid())

        app.run(port=int(sys.argv[1]), workers=2)
        """)
    server.wait_for_words("2 processes")
    deadline = time.monotonic() + 10
    while len({server.get("/").body for _ in range(20)}) < 2:
        assert time.monotonic() < deadline, server.said()
    assert server.end() == 0


def test_importing_the_package_brings_no_loop_with_it():
    """asyncio takes longer to import than all else."""
    asked = "import sys, gustnado; print({'asyncio', 'json', 'typing', 'inspect'} & {*sys.modules})"
    command = [sys.executable, "-S", "-c", asked]
    folder = pathlib.Path(gustnado.__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stdout == "set()\n", done
