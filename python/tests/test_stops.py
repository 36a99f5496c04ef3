"""The end and the start of `gustnado run`, as clients and service managers see them."""

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


@pytest.mark.parametrize("workers", ["1", "2"])
def test_who_comes_while_it_ends_is_answered_or_refused_at_once(run, workers):
    server = run(APP, "--workers", workers)
    met = {"answered": [], "lost": [], "connects": []}
    clients = [threading.Thread(target=come_again, args=(server.port, met)) for _ in range(4)]
    for client in clients:
        client.start()
    deadline = time.monotonic() + 10
    while len(met["answered"]) < 100:
        assert time.monotonic() < deadline, met
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
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
