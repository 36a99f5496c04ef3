"""Pages with counters by settings, of one process and of several."""

import json
import signal
import socket
import time

import pytest

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
"""

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def hello():
    return "hello"
"""

PAGES = ["--metrics-path", "/metrics", "--stats-path", "/stats"]


def number(server, name):
    text = server.get("/metrics").body.decode()
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith(f"{name} "))


def wait_for(server, name, value):
    deadline = time.monotonic() + 10
    while (found := number(server, name)) < value:
        assert time.monotonic() < deadline, (name, found, value)
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("program", [ASGI, NATIVE])
def test_an_application_has_pages_by_settings(run, program):
    server = run(program, *PAGES)
    assert server.get("/").body == b"hello"
    page = server.get("/metrics")
    assert page.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"\ngustnado_requests_total 1\n" in page.body
    page = server.get("/metrics", "Accept: application/openmetrics-text\r\n")
    assert page.fields["content-type"].startswith("application/openmetrics-text")
    assert page.body.endswith(b"# EOF\n")
    assert json.loads(server.get("/stats").body)["requests"] == 3
    assert server.get("/metrics", "X-Forwarded-For: 127.0.0.1\r\n").status == 403
    assert server.get("/metrics", method="POST").status == 405


def test_pages_are_not_there_by_default(run):
    assert run(ASGI).get("/metrics").body == b"hello"


def test_several_processes_are_counted_together(run):
    server = run(ASGI, *PAGES, "--workers", "3")
    for _ in range(30):
        assert server.get("/").body == b"hello"
    # (Each page is a request, too.)
    assert wait_for(server, "gustnado_requests_total", 30) >= 30
    found = json.loads(server.get("/stats").body)
    assert found["requests"] >= 30 and found["ready"] == 1
    before = number(server, "gustnado_connections_open")
    links = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(12)]
    for link in links:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert link.recv(4096).startswith(b"HTTP/1.1 200")
    wait_for(server, "gustnado_connections_open", before + 12)
    for link in links:
        link.close()


def test_totals_outlive_the_processes_that_counted_them(run):
    server = run(ASGI, *PAGES, "--workers", "2")
    for _ in range(20):
        server.get("/")
    time.sleep(1.5)
    counted = wait_for(server, "gustnado_requests_total", 20)
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    while server.said().count("gone") < 2 and time.monotonic() < deadline - 15:
        time.sleep(0.1)
        assert number(server, "gustnado_requests_total") >= counted
    for _ in range(10):
        server.get("/")
        found = number(server, "gustnado_requests_total")
        assert found >= counted, "a total never shrinks"
        time.sleep(0.3)
