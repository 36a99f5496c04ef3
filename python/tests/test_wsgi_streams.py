"""Content that WSGI applications make piece by piece, next to other requests."""

import signal
import time

PROGRAM = """
import time

made = []

def slow(seconds, pieces):
    for number in range(pieces):
        time.sleep(seconds)
        made.append(number)
        yield b"%d\\n" % number

def waits():
    yield b"first"
    time.sleep(2)
    yield b"second"

LONG = 64 << 10

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/slow":
        return slow(0.005, 400)
    if environ["PATH_INFO"] == "/endless":
        return slow(0.02, 1_000_000)
    if environ["PATH_INFO"] == "/waits":
        return waits()
    if environ["PATH_INFO"] == "/long":
        return (b"%d" % n * LONG for n in range(3))
    return [b"%d" % len(made)]
"""

ASK = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"


def test_others_have_a_turn_between_two_pieces(run):
    server = run(PROGRAM)
    with server.connect() as streamed:
        streamed.sendall(ASK % b"/slow")
        seen = b""
        while b"\n4\n" not in seen:
            seen += streamed.recv(4096)
        # It was 256 pieces once. (A slow client gets some more than two.)
        assert int(server.get("/").body) < 60


def test_a_piece_leaves_before_the_next_is_made(run):
    server = run(PROGRAM)
    with server.connect() as one, server.connect() as other:
        for streamed in (one, other):
            streamed.sendall(ASK % b"/slow")
        seen = b""
        while b"\n9\n" not in seen:
            seen += one.recv(4096)
        # Two streams make their pieces in turn, and neither has its own held up by the other's.
        other.settimeout(5)
        assert other.recv(4096)


def test_the_first_piece_leaves_before_the_second_is_made(run):
    server = run(PROGRAM)
    with server.connect() as streamed:
        began = time.monotonic()
        streamed.sendall(ASK % b"/waits")
        seen = b""
        while b"first" not in seen:
            seen += streamed.recv(4096)
        assert time.monotonic() - began < 1 and b"second" not in seen


def test_long_pieces_arrive_whole_and_in_order(run):
    server = run(PROGRAM)
    wanted = b"".join(b"%d" % n * (64 << 10) for n in range(3))
    assert server.get("/long").body == wanted


def test_the_end_comes_within_a_stream(run):
    server = run(PROGRAM, "--timeout-graceful-shutdown", "300ms")
    with server.connect() as streamed:
        streamed.sendall(ASK % b"/endless")
        assert streamed.recv(4096)
        began = time.monotonic()
        assert server.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 5
        assert "1 connections were cut" in server.said()
