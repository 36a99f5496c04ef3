"""Loops that the engine works in."""

import importlib.util
import selectors
import socket
import subprocess
import sys
import time

import pytest

PROGRAM = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    loop = type(asyncio.get_running_loop())
    path, text = scope["path"], f"{loop.__mro__[1].__module__} {asyncio.current_task() is not None}"
    if path == "/later":
        await asyncio.sleep(0.05)
    if path == "/other":
        _, writer = await asyncio.open_connection(*scope["server"])
        writer.close()
        await writer.wait_closed()
        reader = asyncio.StreamReader()
        child = await asyncio.create_subprocess_exec("echo", "child", stdout=-1)
        text = (await child.communicate())[0].decode()
    if path == "/body":
        text = (await receive())["body"].decode() + text
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if path == "/stream":
        for _ in range(5):
            await send({"type": "http.response.body", "body": b"piece,", "more_body": True})
            await asyncio.sleep(0.01)
    if path == "/large":
        for _ in range(50):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": text.encode()})
"""

LOOPS = ["asyncio", pytest.param("uvloop", marks=pytest.mark.skipif(
    importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed"))]


@pytest.mark.parametrize("loop", LOOPS)
def test_applications_run_on_the_loop_that_was_asked_for(run, loop):
    server = run(PROGRAM, "--loop", loop, "--timeout-keep-alive", "400ms")
    server.wait_for_words(f"ASGI on {loop}")
    text = server.get("/").body.decode()
    assert text.endswith(" True") and (loop == "uvloop") == ("uvloop" in text), text
    assert server.get("/later").body.decode() == text
    assert server.post("/body", b"body ").body.decode() == "body " + text
    assert server.get("/stream").body.decode() == "piece," * 5 + text
    assert len(server.get("/large").body) == 50 * 65536 + len(text)
    assert server.get("/other").body == b"child\n"
    # The engine's own times count, with nothing else to wake it.
    with server.connect() as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert link.recv(65536)
        began = time.monotonic()
        assert link.recv(1) == b""
        assert 0.2 < time.monotonic() - began < 5
    assert server.end() == 0


def test_a_loop_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "uvloop.py").write_text("raise ImportError('it is not installed')\n")
    (tmp_path / "site_app.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gustnado", "run", "--port", "0", "--loop", "uvloop"]
    done = subprocess.run([*command, "site_app:app"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "--loop uvloop, but it cannot be imported" in done.stderr


STALE = """
import asyncio, socket, sys

kept = []

def leave_one():
    # An application that closes a descriptor before it tells the loop.
    one, other = socket.socketpair()
    asyncio.get_running_loop().add_reader(one, print)
    one.close()
    kept.append((one, other))

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        leave_one()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the shutdown", file=sys.stderr)
        await send({"type": "lifespan.shutdown.complete"})
        return
    leave_one()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here you are"})
"""


def test_closed_descriptors_that_are_still_watched_break_neither_start_nor_end(run):
    server = run(STALE, "--loop", "asyncio")
    server.wait_for_words("listens on")
    assert server.get("/").body == b"here you are"
    assert server.end() == 0
    assert "the shutdown" in server.said() and "Traceback" not in server.said()


@pytest.mark.parametrize("kind", ["of Python", "the engine's"])
def test_the_map_of_a_selector_finds_descriptors_and_objects(kind):
    from gustnado._selector import EngineSelector

    with EngineSelector() if kind == "the engine's" else selectors.DefaultSelector() as selector:
        one, other = socket.socketpair()
        key = selector.register(one, selectors.EVENT_READ, "data")
        found = selector.get_map()
        assert found.get(one.fileno()) == found[one] == found[one.fileno()] == key
        assert other not in found and found.get(other) is None and found.get(other, 5) == 5
        with pytest.raises(KeyError):
            found[other]
        assert len(found) == 1 and list(found) == [one.fileno()] and list(found.values()) == [key]
        one.close()
        assert found.get(one) == selector.get_key(one) == selector.unregister(one) == key
        assert len(found) == 0
        other.close()
