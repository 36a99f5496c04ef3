"""Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from __future__ import annotations

from ._app import stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
    from typing import Any

    from ._gustnado import Response

KIND = "text/event-stream"


def events(
    source: AsyncIterable[str | dict[str, Any]], *, retry: int | None = None,
    heartbeat: float | None = 15.0, headers: Mapping[str, str | bytes] | None = None,
) -> Response:
    """Returns a response of events. For coroutine functions.

    - `source`: an asynchronous iterable of events: text, or dictionaries with some of `data` (text,
      or anything that JSON has), `event`, `id`, `retry` and `comment`.
    - `retry`: milliseconds after which a client that was cut off reconnects.
    - `heartbeat`: seconds of silence after which a comment is sent, so that no proxy
      takes the connection for dead; none: never.
    """
    fields: dict[str, str | bytes] = {"Cache-Control": "no-store", **(headers or {})}
    return stream(_texts(source, retry, heartbeat), content_type=KIND, headers=fields)


def event_text(event: str | dict[str, Any]) -> str:
    """Encodes an event."""
    if not isinstance(event, dict):
        event = {"data": event}
    unknown = event.keys() - {"data", "event", "id", "retry", "comment"}
    if unknown:
        raise ValueError(
            f"expected data, event, id, retry or comment in an event, found {min(unknown)!r}"
        )
    lines = [f": {line}" for line in _lines(event.get("comment"))]
    for name in ("event", "id"):
        value = event.get(name)
        if value is not None:
            value = str(value)
            if "\n" in value or "\r" in value or "\0" in value:
                raise ValueError(f"expected one line as the {name} of an event, found {value!r}")
            lines.append(f"{name}: {value}")
    if event.get("retry") is not None:
        lines.append(f"retry: {int(event['retry'])}")
    data = event.get("data")
    if data is not None:
        if not isinstance(data, str):
            import json

            data = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        lines += [f"data: {line}" for line in _lines(data)]
    return "\n".join(lines) + "\n\n"


def _lines(text: str | None) -> Sequence[str]:
    """Splits lines as the format does: at CR, LF or both, and nothing else."""
    return () if text is None else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


async def _texts(
    source: AsyncIterable[str | dict[str, Any]], retry: int | None, heartbeat: float | None
) -> AsyncIterator[str]:
    import asyncio  # Not above: it is most of what importing the package would take.

    if retry is not None:
        yield f"retry: {int(retry)}\n\n"
    events = source.__aiter__()
    coming: asyncio.Future[str | dict[str, Any]] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(events.__anext__())
            while not (await asyncio.wait((coming,), timeout=heartbeat))[0]:
                yield ":\n\n"
            event = coming.result()
            coming = None
            yield event_text(event)
    except StopAsyncIteration:
        pass
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
