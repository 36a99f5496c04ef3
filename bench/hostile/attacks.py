"""What attackers do: each function is the life of one connection. PLANS says how many there are.

The rates are set so that attackers, the honest client and the kernel's part of it fit on one CPU:
what is looked at is whether the server is fair, not when the machine is full.
"""

import asyncio

from . import full, garbage

SLOW_HEAD = (b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\nUser-Agent: slow\r\n"
             b"Accept: text/html,application/xhtml+xml\r\nX-Filler: " + b"x" * 400)
LARGE = b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMALL = b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /form HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def slow_head(one):
    """A byte or two each second: ended by the header time-out."""
    await one.connect()
    at = 0
    while at < len(SLOW_HEAD):
        step = one.random.randint(1, 2)
        await one.send(SLOW_HEAD[at:at + step])
        at += step
        try:
            if not await one.receive(4096, one.random.uniform(0.5, 1.5)):
                return
        except asyncio.TimeoutError:
            pass


async def slow_body(one):
    """A body that never ends in time, with a length or in chunks; some hold much of it at once."""
    await one.connect()
    if one.random.random() < 0.5:
        framing, first, step = b"Content-Length: 200000", b"", b"x"
    else:
        framing, first, step = b"Transfer-Encoding: chunked", b"", b"1\r\nx\r\n"
    if one.random.random() < 0.1:
        # Most of it at once, and then a trickle.
        first = b"y" * 180_000 if step == b"x" else b"20000\r\n" + b"y" * 0x20000 + b"\r\n"
    await one.send(b"POST /form HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n\r\n" + first)
    while True:
        await one.send(step)
        try:
            if not await one.receive(4096, one.random.uniform(1, 3)):
                return
        except asyncio.TimeoutError:
            pass


async def slow_reader(one):
    """Asks for a large file, takes next to nothing of it, and sends more requests meanwhile."""
    await one.connect(receive_bytes=2048)
    await one.send(LARGE + SMALL * 150)
    takes = one.random.random() < 0.7
    while True:
        await asyncio.sleep(one.random.uniform(1, 3))
        if takes and not await one.receive(512):
            return
        if not takes:
            await one.send(b"\r\n")


async def idle(one):
    """A connection that is opened, says nothing or asks once, and is left after some seconds."""
    await one.connect()
    if one.random.random() < 0.5:
        await one.send(SMALL)
        await one.receive()
    await asyncio.sleep(one.random.uniform(2, 6))
    one.close(cut=one.random.random() < 0.5)


async def churn(one):
    """A connection for one request."""
    await one.connect()
    await one.send(one.random.choice((SMALL, LAST)))
    await one.receive()


async def half_closed(one):
    """Sends no more behind its request, and reads the response, or does not."""
    await one.connect()
    kind = one.random.randrange(4)
    await one.send((SMALL, SMALL[:30], LARGE, b"POST /form HTTP/1.1\r\nHost: h\r\n"
                    b"Content-Length: 100\r\n\r\nhalf")[kind])
    one.half_close()
    if one.random.random() < 0.8:
        await one.receive_all()
    else:
        await asyncio.sleep(one.random.uniform(1, 10))


async def reset(one):
    """Is gone with a reset: before its request, within it, within the response."""
    await one.connect()
    kind = one.random.randrange(4)
    if kind:
        await one.send((SMALL[:40], SMALL * 20, LARGE)[kind - 1])
    if kind > 1 and one.random.random() < 0.5:
        await one.receive()
    one.close(cut=True)


async def bad_bytes(one):
    """Noise, or requests that break the grammar somewhere."""
    await one.connect()
    await one.send(garbage.bytes_of(one.random))
    if one.random.random() < 0.3:
        one.half_close()
    await one.receive_all(1 << 18, 0.5)


async def burst(one):
    """Many requests at once, of which it reads all, some or none of the responses."""
    await one.connect()
    some = (SMALL, garbage.good(one.random), garbage.good(one.random))
    await one.send(b"".join(one.random.choices(some, k=100)) + LAST)
    kind = one.random.randrange(3)
    if kind:
        await one.receive_all((0, 20_000, 1 << 22)[kind])
    one.close(cut=kind == 1)


async def ranges(one):
    """Many ranges of a large file: as many as are served, far too many, overlapping, backwards."""
    await one.connect()
    count = one.random.choice((2, 15, 16, 17, 1_000))
    kind = one.random.randrange(3)
    said = []
    for number in range(count):
        start = one.random.randrange(60 << 20) if kind else number * 4_000_000 % (60 << 20)
        said.append(f"{start}-{start + (one.random.randrange(60_000) if kind == 1 else 9)}")
    field = f"\r\nConnection: close\r\nRange: bytes={','.join(said)}\r\n\r\n"
    await one.send(LARGE.strip() + field.encode())
    await one.receive_all(1 << 21)


# Each line is a process: kinds of attackers, each with how many at a time, or how many a second.
PLANS = [
    {
        "slow heads": {"life": slow_head, "count": 400},
        "slow bodies": {"life": slow_body, "count": 200},
        "slow readers": {"life": slow_reader, "count": 300},
    },
    {
        "connection flood": {"life": idle, "count": 1_000},
        "churn": {"life": churn, "rate": 200},
    },
    {
        "half-closed": {"life": half_closed, "rate": 40},
        "resets": {"life": reset, "rate": 150},
        "bad bytes": {"life": bad_bytes, "rate": 150},
        "bursts": {"life": burst, "rate": 10},
        "big ranges": {"life": ranges, "rate": 15},
    },
]
# Another process has the pipelines that are always full (`full.py`).
KINDS = [full.NAME, *(name for plan in PLANS for name in plan)]
