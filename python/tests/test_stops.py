"""The end and the start of `gustnado run`, as clients and service managers see them."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

APP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here you are"})
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def come_again(port, met):
    """A client with a new connection for each request, until it is refused."""
    while True:
        began = time.monotonic()
        link = socket.socket()
        link.settimeout(10)
        try:
            link.connect(("127.0.0.1", port))
        except ConnectionRefusedError:
            met["connects"].append(time.monotonic() - began)
            return
        met["connects"].append(time.monotonic() - began)
        with link:
            try:
                link.sendall(REQUEST)
                came = link.recv(4096)
            except OSError as error:
                came = repr(error).encode()
        met["answered" if came.startswith(b"HTTP/1.1 200") else "lost"].append(came)


@pytest.mark.parametrize("whom", ["process", "group"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_who_comes_while_it_ends_is_answered_or_refused_at_once(start, tmp_path, workers, whom):
    (tmp_path / "fine.py").write_text(APP)
    # (In a process group of its own.)
    server = start(["setsid", sys.executable, "-m", "gustnado", "run", "fine:app", "--port",
                    "{port}", "--workers", workers])
    met = {"answered": [], "lost": [], "connects": []}
    clients = [threading.Thread(target=come_again, args=(server.port, met)) for _ in range(4)]
    for client in clients:
        client.start()
    deadline = time.monotonic() + 10
    while len(met["answered"]) < 100:
        assert time.monotonic() < deadline, met
        time.sleep(0.01)
    (os.killpg if whom == "group" else os.kill)(server.process.pid, signal.SIGTERM)
    assert server.process.wait(20) == 0
    for client in clients:
        client.join()
    # The goal is one in twelve ends.
    assert not met["lost"], met["lost"]
    # The goal is 100 ms.
    assert max(met["connects"]) < 1


def test_int_while_processes_are_being_started_is_obeyed_at_once(tmp_path):
    (tmp_path / "slow.py").write_text("import time; time.sleep(30)\n" + APP)
    command = [sys.executable, "-m", "gustnado", "run", "slow:app", "--workers", "64",
               "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        # Some of them have been started by then.
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("workers", ["1", "2"])
def test_its_port_can_be_taken_at_once_after_it_was_killed(tmp_path, workers):
    (tmp_path / "fine.py").write_text(APP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gustnado", "run", "fine:app", "--workers", workers,
               "--port", str(port)]
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        with open(tmp_path / "log", "w+") as log:
            process = subprocess.Popen(command, cwd=tmp_path, stderr=log)
            deadline = time.monotonic() + 20
            while "listens on" not in (tmp_path / "log").read_text():
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(number)
            process.wait(20)


SLOW = """
import asyncio, os, sys

async def app(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/slow":
        print("it waits", file=sys.stderr)
        await asyncio.sleep(1.5)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""


@pytest.fixture(params=["2 by name", "1 by name", "2 preloaded"])
def group(request, start, tmp_path):
    """A server that is a process group of its own, with a slow request under way."""
    (tmp_path / "slow.py").write_text(SLOW)
    count, how = request.param.split(" ", 1)
    options = ["--workers", count] + ["--preload"] * (how == "preloaded")
    server = start(["setsid", sys.executable, "-m", "gustnado", "run", "slow:app", "--port",
                    "{port}", *options])
    server.wait_for_words("listens on")
    with server.connect() as link:
        link.sendall(REQUEST.replace(b"/ ", b"/slow "))
        server.wait_for_words("it waits")
        yield server, link


def test_a_signal_to_the_whole_process_group_ends_it_in_order(group):
    server, link = group
    os.killpg(server.process.pid, signal.SIGTERM)
    assert link.recv(4096).startswith(b"HTTP/1.1 200")
    assert server.process.wait(10) == 0, server.said()
    assert "exit code" not in server.said()


@pytest.mark.parametrize("first", ["group", "process"])
@pytest.mark.parametrize("second", ["group", "process"])
def test_a_second_signal_ends_it_at_once_whoever_gets_it(group, first, second):
    server, link = group
    for to in first, second:
        (os.killpg if to == "group" else os.kill)(server.process.pid, signal.SIGTERM)
        time.sleep(0.3)
    assert server.process.wait(10) == 128 + signal.SIGTERM
    assert link.recv(4096) == b"", "the response would have come in its time"


def test_a_worker_that_is_told_to_end_twice_by_others_ends_at_once(run):
    server = run(SLOW, "--workers", "2")
    server.wait_for_words("listens on")
    with server.connect() as link:
        link.sendall(REQUEST)
        worker = int(link.recv(4096).rpartition(b"\r\n\r\n")[2])
        link.sendall(REQUEST.replace(b"/ ", b"/slow "))
        server.wait_for_words("it waits")
        os.kill(worker, signal.SIGTERM)
        time.sleep(0.2)
        os.kill(worker, signal.SIGTERM)
        assert link.recv(4096) == b""
    server.wait_for_words("has died: exit code 143")
    assert server.end() == 0


BEHIND = """
import asyncio, sys, time

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the shutdown", file=sys.stderr)
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"accepted"})
    try:
        await asyncio.sleep(SECONDS)
        print("the task is done", file=sys.stderr)
    except asyncio.CancelledError:
        print("the task is cut", file=sys.stderr)
        raise
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("how", ["TERM", "HUP", "HUP to workers"])
def test_an_end_waits_for_what_runs_behind_a_response(run, loop, how):
    pytest.importorskip(loop)
    workers = ["--workers", "2"] * (how == "HUP to workers")
    server = run(BEHIND.replace("SECONDS", "1"), "--loop", loop, *workers)
    server.wait_for_words("listens on")
    assert server.get("/").body == b"accepted"
    server.process.send_signal(signal.SIGTERM if how == "TERM" else signal.SIGHUP)
    server.wait_for_words("the task is done")
    assert "the shutdown" not in server.said().partition("the task is done")[0] or workers
    assert "the task is cut" not in server.said()
    assert (server.process.wait(10) if how == "TERM" else server.end()) == 0


def test_what_runs_behind_a_response_has_the_time_of_the_drain(run):
    server = run(BEHIND.replace("SECONDS", "30"), "--timeout-graceful-shutdown", "1s")
    assert server.get("/").body == b"accepted"
    began = time.monotonic()
    assert server.end() == 0
    assert 0.9 < time.monotonic() - began < 5
    text = server.said()
    assert "1 calls of the application were cancelled" in text and "the task is cut" in text
