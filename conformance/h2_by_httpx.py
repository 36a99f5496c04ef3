"""httpx, with python-hyper's h2 beneath it: requests as programs write them."""

import asyncio
import ssl
from collections.abc import Iterator

from h2_lab import Lab
from outcomes import Case, expect
from served import MEGABYTE, PAGE

try:
    import httpx
except ImportError:
    httpx = None


def version() -> str:
    return f"httpx {httpx.__version__}" if httpx else ""


def options(lab: Lab, way: str) -> dict:
    context = ssl.create_default_context(cafile=lab.file("root.pem"))
    # (In clear it speaks HTTP/2 where it knows nothing else.)
    return {"http2": True, "http1": way == "TLS", "verify": context, "timeout": 20,
            "trust_env": False}


def cases(lab: Lab, way: str) -> Iterator[Case]:
    yield "a page, and the version is 2", lambda: page(lab, way)
    yield "1 MB down, as a stream", lambda: down(lab, way)
    yield "1 MB up, of a generator, and back", lambda: echo(lab, way)
    yield "a range", lambda: ranged(lab, way)
    yield "a condition that holds", lambda: condition(lab, way)
    yield "200 requests of one AsyncClient at once", lambda: asyncio.run(at_once(lab, way))
    yield "5 responses that are left unread, and others after them", lambda: asyncio.run(
        unread(lab, way))


def page(lab: Lab, way: str) -> None:
    with httpx.Client(**options(lab, way)) as client:
        for _ in range(3):
            answer = client.get(lab.origin(way))
            expect((answer.status_code, answer.http_version) == (200, "HTTP/2"), f"{answer}")
            expect(answer.text == PAGE, "another page")


def down(lab: Lab, way: str) -> None:
    with httpx.Client(**options(lab, way)) as client:
        with client.stream("GET", lab.origin(way) + "/1m.bin") as answer:
            expect(b"".join(answer.iter_bytes()) == MEGABYTE, "other bytes")


def echo(lab: Lab, way: str) -> None:
    pieces = (MEGABYTE[at:at + 10_000] for at in range(0, len(MEGABYTE), 10_000))
    with httpx.Client(**options(lab, way)) as client:
        answer = client.post(lab.origin(way, "program") + "/echo", content=pieces)
        expect(answer.content == MEGABYTE, f"{answer}: {len(answer.content)} bytes")


def ranged(lab: Lab, way: str) -> None:
    with httpx.Client(**options(lab, way)) as client:
        answer = client.get(lab.origin(way) + "/1m.bin", headers={"Range": "bytes=5-9"})
        expect((answer.status_code, answer.content) == (206, MEGABYTE[5:10]), f"{answer}")


def condition(lab: Lab, way: str) -> None:
    with httpx.Client(**options(lab, way)) as client:
        tag = client.get(lab.origin(way)).headers["etag"]
        answer = client.get(lab.origin(way), headers={"If-None-Match": tag})
        expect((answer.status_code, answer.content) == (304, b""), f"{answer}")


async def at_once(lab: Lab, way: str) -> None:
    url, before = lab.origin(way), lab.server().counters()["http2_connections"]
    async with httpx.AsyncClient(**options(lab, way)) as client:
        await client.get(url)
        answers = await asyncio.gather(*(client.get(url) for _ in range(200)))
    expect(all(one.text == PAGE and one.http_version == "HTTP/2" for one in answers), "another")
    count = lab.server().counters()["http2_connections"] - before
    expect(count == 1, f"{count} connections")


async def unread(lab: Lab, way: str) -> None:
    # (httpcore resets no stream that it leaves, and gives the connection's window of 16 MB back for
    # none of them: a few at most.)
    url, before = lab.origin(way), lab.server().counters()["http2_connections"]
    async with httpx.AsyncClient(**options(lab, way)) as client:
        for _ in range(5):
            async with client.stream("GET", url + "/1m.bin") as answer:
                async for _ in answer.aiter_bytes():
                    break
            expect((await client.get(url)).text == PAGE, "another page")
    count = lab.server().counters()["http2_connections"] - before
    expect(count == 1, f"{count} connections")
