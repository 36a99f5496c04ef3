"""Content that is written over time: how it leaves, and what waits for a client that is slow."""

import socket
import struct
import time

from conftest import unchunked

PIECE = 64 << 10

ASGI = """
async def many(send, pieces, size, headers=()):
    '''Sends content in pieces. Returns how often it had to wait.'''
    stops = 0
    await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
    for number in range(pieces):
        sent = send({"type": "http.response.body", "body": b"x" * size,
                     "more_body": number + 1 < pieces})
        stops += type(sent).__name__ == "LoopFuture"
        await sent
    return stops

stops = [0]

async def app(scope, receive, send):
    if scope["path"] == "/mega":
        stops.append(await many(send, 16, 64 << 10))
    elif scope["path"] == "/huge":
        stops.append(await many(send, 3200, 64 << 10))
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % stops[-1]})
"""

NATIVE = """
import asyncio
import gustnado

app = gustnado.App()
stops, tasks = [0], []

@app.get("/mega")
async def mega():
    response, writer = gustnado.Response.open()
    stops.append(0)
    loop = asyncio.get_running_loop()
    async def write():
        for number in range(16):
            if not writer.write(b"x" * (64 << 10)):
                stops[-1] += 1
                room = loop.create_future()
                writer.when_room(lambda: room.done() or room.set_result(None))
                await room
        writer.close()
    tasks.append(loop.create_task(write()))
    return response

@app.get("/small")
async def small():
    response, writer = gustnado.Response.open()
    for number in range(3):
        writer.write(b"x" * 100)
    writer.close()
    return response

@app.get("/stops")
async def said():
    return str(stops[-1])
"""


def streamed(server, path):
    """The content, and how many segments with bytes it came in."""
    with server.connect() as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        came = b""
        while not came.endswith(b"0\r\n\r\n"):
            came += link.recv(1 << 20)
        info = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    # tcpi_data_segs_in
    (segments,) = struct.unpack_from("I", info, 152)
    content, is_whole = unchunked(came.partition(b"\r\n\r\n")[2])
    assert is_whole
    return content, segments


def test_head_pieces_and_end_leave_together(run):
    server = run(NATIVE)
    content, segments = streamed(server, "/small")
    assert (len(content), segments) == (300, 1)


def test_a_writer_seldom_waits(run):
    """A megabyte in pieces of 64 KiB: three times, not eight."""
    server = run(ASGI)
    content, _ = streamed(server, "/mega")
    assert content == b"x" * (16 * PIECE)
    # (None at all would mean that nothing is counted. The last piece may leave before its sender
    # has gone on.)
    deadline = time.monotonic() + 5
    while (waits := int(server.get("/").body)) == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert waits <= 3


def test_a_native_writer_seldom_waits(run):
    server = run(NATIVE)
    content, _ = streamed(server, "/mega")
    assert len(content) == 16 * PIECE
    assert int(server.get("/stops").body) == 3


def resident(server):
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_slow_client_holds_little(run):
    """200 MB, of which a client takes some and then waits."""
    server = run(ASGI)
    streamed(server, "/mega")
    before, most = resident(server), 0
    with server.connect() as link:
        link.sendall(b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\n")
        taken = 0
        while taken < 40 << 20:
            taken += len(link.recv(1 << 20))
            most = max(most, resident(server))
        time.sleep(0.1)
        most = max(most, resident(server))
    assert most - before < 2 << 20, (most - before) >> 10
