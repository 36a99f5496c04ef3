"""Attackers in numbers: lives of connections, so many at a time or so many a second."""

import asyncio
import os
import random
import socket
import struct
import sys
import time
from collections import Counter

CUT = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets


class Attacker:
    """One connection of an attacker, over the loops of asyncio."""

    def __init__(self, crowd):
        self.crowd, self.random = crowd, crowd.random
        self.loop = asyncio.get_running_loop()
        self.stream = None

    async def connect(self, receive_bytes=None):
        self.stream = socket.socket()
        self.stream.setblocking(False)
        if receive_bytes:
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await self.loop.sock_connect(self.stream, ("127.0.0.1", self.crowd.port))
        self.crowd.counts["connections"] += 1

    async def send(self, data):
        await self.loop.sock_sendall(self.stream, data)

    async def receive(self, most=65536, seconds=10):
        piece = await asyncio.wait_for(self.loop.sock_recv(self.stream, most), seconds)
        self.look_at(piece)
        return piece

    def look_at(self, piece):
        """Counts responses by their class where a piece begins with one."""
        if piece.startswith(b"HTTP/1.1 ") and piece[9:10].isdigit():
            status = piece[9:12].decode("latin-1")
            self.crowd.counts[f"{status[0]}xx"] += 1
            # 501 and 505 are the right response to some of it.
            if status in ("500", "502", "503", "504"):
                self.crowd.counts["faults"] += 1

    async def receive_all(self, most=1 << 20, seconds=10):
        """Receives until the server closes, or until it is enough."""
        total, until = 0, time.monotonic() + seconds
        while total < most and (left := until - time.monotonic()) > 0:
            piece = await self.receive(65536, left)
            if not piece:
                break
            total += len(piece)

    def half_close(self):
        self.stream.shutdown(socket.SHUT_WR)

    def close(self, cut=False):
        if self.stream is not None:
            if cut:
                self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CUT)
            self.stream.close()
            self.stream = None


class Crowd:
    """All attackers of one kind in this process."""

    def __init__(self, name, port, life, count=0, rate=0):
        self.name, self.port, self.life = name, port, life
        self.count, self.rate = count, rate
        self.random = random.Random(f"{name} {port}")
        self.counts = Counter()

    async def live_once(self):
        attacker = Attacker(self)
        try:
            await self.life(attacker)
        except (OSError, asyncio.TimeoutError):
            self.counts["cut"] += 1
            await asyncio.sleep(0.02)
        except Exception as error:
            self.counts["mistakes"] += 1
            print(f"{self.name}: {error!r}", file=sys.stderr)
        finally:
            attacker.close()

    async def hold(self):
        """So many at a time, again and again. They begin within two seconds."""
        async def one(number):
            await asyncio.sleep(2 * number / self.count)
            while True:
                await self.live_once()
        await asyncio.gather(*(one(number) for number in range(self.count)))

    async def come(self):
        """So many a second, and no more at a time than would come in three."""
        live, start, number = set(), time.monotonic(), 0
        while True:
            due = int((time.monotonic() - start) * self.rate)
            while number < due:
                number += 1
                if len(live) < 3 * self.rate:
                    live.add(task := asyncio.create_task(self.live_once()))
                    task.add_done_callback(live.discard)
            await asyncio.sleep(0.005)


def run(plans, port, until, results, cpus):
    """The process of some kinds of attackers."""
    os.sched_setaffinity(0, cpus)
    os.nice(5)
    crowds = [Crowd(name, port, **plan) for name, plan in plans.items()]

    async def all_of_them():
        tasks = [asyncio.create_task(crowd.hold() if crowd.count else crowd.come())
                 for crowd in crowds]
        await asyncio.wait(tasks, timeout=until - time.monotonic())
        leave(results, {crowd.name: dict(crowd.counts) for crowd in crowds})

    asyncio.run(all_of_them())


def leave(results, counts):
    """Says what was counted and ends this process at once: connections end as they are."""
    results.put(counts)
    results.close()
    results.join_thread()
    os._exit(0)
