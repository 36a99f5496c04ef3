"""What is said on WebSockets of the sites: the same to each framework."""

import contextlib

from websockets.exceptions import ConnectionClosed, InvalidStatus

LONG = "x" * 300_000


def echoes(connect, path="/echo", kinds=(str, bytes)):
    """An endpoint that sends each message back, and closes with 4001 where it is "close"."""
    messages = ("hello", "\u20ac", b"\x00\xff", LONG, LONG.encode())
    with connect(path) as link:
        for message in filter(lambda message: isinstance(message, kinds), messages):
            link.send(message)
            came = link.recv()
            assert came == message, f"{message[:20]!r} came back as {came[:20]!r}"
        yield "WebSocket: echo", "messages came back"
        link.send("close")
        yield "WebSocket: close", end_of(link)
    with connect(path) as link:
        link.send("hello")
        link.recv()
        link.close(4002, "done")
        yield "WebSocket: the client closes", f"{link.close_code} {link.close_reason}"


def end_of(link):
    """Waits for the server's close frame. Returns what it says."""
    try:
        link.recv(timeout=10)
    except ConnectionClosed as closed:
        return f"{closed.rcvd.code} {closed.rcvd.reason}" if closed.rcvd else "without a frame"
    raise AssertionError("it has not closed")


def refused(connect, path):
    """Returns the status and content of a refused handshake."""
    with contextlib.suppress(ConnectionClosed):
        try:
            with connect(path) as link:
                return f"it is open: {link.response.status_code}"
        except InvalidStatus as error:
            response = error.response
            return f"{response.status_code} {bytes(response.body or b'').decode()}"
    raise AssertionError("it was neither opened nor refused")
