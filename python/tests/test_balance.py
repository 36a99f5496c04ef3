"""Connections are spread evenly over worker processes."""

import collections
import os
import signal
import socket
import time

import pytest

WHO = """
import os

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % os.getpid()})
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
WORKERS = 4


def connected(where):
    link = socket.socket(where[0])
    link.settimeout(20)
    link.connect(where[1])
    link.sendall(REQUEST)
    return link


def answered_by(link):
    return link.recv(4096).rpartition(b"\r\n")[2]


def spread(where, count, at_once):
    """How many of so many connections, which all stay open, each process has."""
    links, found = [], collections.Counter()
    try:
        for _ in range(count):
            links.append(connected(where))
            if not at_once:
                found[answered_by(links[-1])] += 1
        if at_once:
            found.update(map(answered_by, links))
    finally:
        for link in links:
            link.close()
    assert b"" not in found and sum(found.values()) == count
    return sorted([*found.values(), *[0] * (WORKERS - len(found))])


@pytest.fixture(params=["tcp", "unix"])
def where(request, run, tmp_path):
    options = ["--workers", str(WORKERS)]
    if request.param == "unix":
        options += ["--uds", "its.socket", "--bind", "127.0.0.1:{port}"]
    server = run(WHO, *options)
    server.wait_for_words(f"{WORKERS} processes")
    if request.param == "unix":
        return socket.AF_UNIX, str(tmp_path / "its.socket")
    return socket.AF_INET, ("127.0.0.1", server.port)


@pytest.mark.parametrize("at_once", [False, True])
def test_no_worker_has_much_more_than_its_share(where, at_once):
    for count, times, most in [(60, 3, 2), (1000, 1, 1.2)]:
        for _ in range(times):
            found = spread(where, count, at_once)
            assert found[-1] <= most * count / WORKERS, found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_who_takes_the_place_of_a_worker_gets_its_share_and_nobody_is_lost(run, number):
    server = run(WHO, "--workers", str(WORKERS))
    server.wait_for_words(f"{WORKERS} processes")
    where = socket.AF_INET, ("127.0.0.1", server.port)
    # A process may have 4 and a sixteenth more than the mean, and 2 that the others do not know of
    # yet: so three of them cannot have all of these.
    links = [connected(where) for _ in range(100)]
    before = collections.Counter(map(answered_by, links))
    assert len(before) == WORKERS
    killed = max(before, key=before.get)
    if number == signal.SIGKILL:
        os.kill(int(killed), number)
    else:
        server.process.send_signal(number)
    deadline = time.monotonic() + 15
    met = set()
    while len(met - set(before)) < (1 if number == signal.SIGKILL else WORKERS):
        assert time.monotonic() < deadline, server.said()
        with connected(where) as link:
            began = time.monotonic()
            met.add(answered_by(link))
            assert time.monotonic() - began < 1
    assert b"" not in met
    # (Those that end take what comes to them, until they have no socket any more.)
    for pid in set(before) if number == signal.SIGHUP else ():
        while os.path.exists(f"/proc/{int(pid)}"):
            assert time.monotonic() < deadline, server.said()
            time.sleep(0.05)
    more = [connected(where) for _ in range(100)]
    after = collections.Counter(map(answered_by, more))
    if number == signal.SIGKILL:
        after += collections.Counter({pid: n for pid, n in before.items() if pid != killed})
    assert killed not in after and len(after) == WORKERS
    assert max(after.values()) <= 2 * sum(after.values()) / WORKERS, (before, after)
    for link in [*links, *more]:
        link.close()
