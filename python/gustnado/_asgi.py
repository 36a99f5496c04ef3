"""The scope that ASGI applications are called with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._plan import Plan


def scope_template(plan: Plan, server: tuple[str, int]) -> dict[str, Any]:
    """The scope of a request but for what differs.

    What each request has is in it already, so that copies are large enough from the start.
    """
    return {
        **dict.fromkeys(("http_version", "method", "path", "raw_path", "query_string", "headers")),
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "scheme": "http",
        "server": server,
        "client": None,
        "root_path": plan.root_path,
        "extensions": {"http.response.pathsend": {}, "http.response.early_hint": {}},
    }
