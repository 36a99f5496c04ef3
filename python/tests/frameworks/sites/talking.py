"""What is said on WebSockets of the sites: the same to each framework."""

import contextlib

from websockets.exceptions import ConnectionClosed, InvalidStatus

LONG = "x" * 300_000


def echoes(connect, path="/echo", kinds=(str, bytes), closes=True):
    """An endpoint that sends each message back, and closes with 4001 where it is "close".

    - `closes`: whether the framework closes by itself."""
    messages = ("hello", "\u20ac", b"\x00\xff", LONG, LONG.encode())
    with connect(path) as link:
        for message in filter(lambda message: isinstance(message, kinds), messages):
            link.send(message)
            came = link.recv()
            assert came == message, f"{message[:20]!r} came back as {came[:20]!r}"
        yield "WebSocket: echo", "messages came back"
        if closes:
            link.send("close")
            yield "WebSocket: close", end_of(link)
    with connect(path) as link:
        link.send("hello")
        link.recv()
        link.close(4002, "done")
        yield "WebSocket: the client closes", str(link.close_code)


def end_of(link):
    """Waits for the server's close frame. Returns what it says."""
    try:
        link.recv(timeout=10)
    except ConnectionClosed as closed:
        return f"{closed.rcvd.code} {closed.rcvd.reason}" if closed.rcvd else "without a frame"
    raise AssertionError("it has not closed")


def refused(connect, path, has_content=False):
    """Returns the status of a refused handshake, and the content, if the application sends it."""
    with contextlib.suppress(ConnectionClosed):
        try:
            with connect(path) as link:
                return f"it is open: {link.response.status_code}"
        except InvalidStatus as error:
            response = error.response
            content = bytes(response.body or b"").decode() if has_content else ""
            return f"{response.status_code} {content}"
    raise AssertionError("it was neither opened nor refused")
