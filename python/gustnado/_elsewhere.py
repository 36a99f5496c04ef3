"""Moves calls of an exchange from other threads to the thread of its loop."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    _T = TypeVar("_T")


async def on_the_loop(function: Callable[..., Awaitable[_T]], *arguments: object) -> _T:
    """Calls `function` once this is awaited."""
    return await function(*arguments)
