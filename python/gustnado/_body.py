"""The body of a request, for coroutines."""

import asyncio

from . import _routes


async def read(request, limit=None, usual=None):
    """Returns the whole body as bytes.

    - `usual`: the default limit; none: the server's own.
    """
    is_said = limit is not None
    limit = limit if is_said else usual
    pieces, length = [], 0
    async for piece in stream(request):
        length += len(piece)
        if limit is not None and length > limit:
            request.note_too_large()
            if not is_said:
                _routes.warn(
                    f"{request.target}: refused with 413: its body has more than {limit} bytes; "
                    "request.read(limit=…) takes more, as does --limit-body-bytes for all handlers"
                )
            raise ValueError(f"the body has more than {limit} bytes")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def stream(request):
    """Yields pieces as they arrive."""
    while True:
        waiting = asyncio.get_running_loop().create_future()
        piece = request.next_or_call(lambda: waiting.done() or waiting.set_result(None))
        if piece is None:
            await waiting
        elif piece:
            yield piece
        else:
            return
