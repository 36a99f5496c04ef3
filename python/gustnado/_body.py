"""The body of a request, for coroutines."""

from __future__ import annotations

import asyncio
import functools

from . import _routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ._gustnado import Request


async def read(request: Request, limit: int | None = None, default: int | None = None) -> bytes:
    """Returns the whole body as bytes.

    - `default`: the limit without `limit`; none: the server's own.
    """
    bytes_max = default if limit is None else limit
    pieces: list[bytes] = []
    length = 0
    async for piece in stream(request):
        length += len(piece)
        if bytes_max is not None and length > bytes_max:
            request.note_too_large()
            if limit is None:
                _routes.warn(
                    f"{request.target}: refused with 413: its body has more than {bytes_max} "
                    "bytes; request.read(limit=…) takes more, as does --limit-body-bytes for all "
                    "handlers"
                )
            raise ValueError(f"the body has more than {bytes_max} bytes")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def stream(request: Request) -> AsyncIterator[bytes]:
    """Yields pieces as they arrive."""
    while True:
        waiting = asyncio.get_running_loop().create_future()
        piece = request.next_or_call(functools.partial(_routes.set_done, waiting))
        if piece is None:
            await waiting
        elif piece:
            yield piece
        else:
            return
