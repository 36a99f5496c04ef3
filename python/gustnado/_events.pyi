from collections.abc import AsyncIterable, Mapping
from typing import Any

from ._gustnado import Response

KIND: str

def events(
    source: AsyncIterable[str | dict[str, Any]],
    *,
    retry: int | None = None,
    heartbeat: float | None = 15.0,
    headers: Mapping[str, str | bytes] | None = None,
) -> Response: ...
def event_text(event: str | dict[str, Any]) -> str: ...
