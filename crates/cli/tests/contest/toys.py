"""Toy servers that do other work than a contest asks for: `toys.py MODE PORT`.

- whole: serves every connection.
- limited: accepts 100 connections at a time and leaves the others in its backlog.
- late: responds at once to the first request of a connection, and 2.5 s late to all others.
- refusing: resets every connection beyond 100.
"""

import asyncio
import socket
import struct
import sys

MODE, PORT = sys.argv[1], int(sys.argv[2])
ROOM = 100
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def serve(loop, connection, room):
    served = 0
    received = b""
    try:
        while piece := await loop.sock_recv(connection, 65536):
            received += piece
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                if MODE == "late" and served:
                    await asyncio.sleep(2.5)
                await loop.sock_sendall(connection, RESPONSE)
                served += 1
                if b"Connection: close" in head:
                    return
    except OSError:
        pass
    finally:
        connection.close()
        room.release()


async def main():
    loop = asyncio.get_running_loop()
    room = asyncio.Semaphore(ROOM if MODE in ("limited", "refusing") else 1 << 20)
    tasks = set()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PORT))
        listener.listen(1024)
        listener.setblocking(False)
        while True:
            if MODE == "limited":
                await room.acquire()
            connection, _ = await loop.sock_accept(listener)
            if MODE == "refusing" and room.locked():
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()
                continue
            if MODE != "limited":
                await room.acquire()
            connection.setblocking(False)
            task = asyncio.create_task(serve(loop, connection, room))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


asyncio.run(main())
