"""Functions of Cyclone that the engine replaces, as they are in its release 1.3.

`python/src/twisted/cyclone.rs` does the work of those that make a request, and changes no class.
`patch` replaces those that make a response, where a program has asked for it.
"""

from __future__ import annotations

import datetime
import functools
import re
import time
from types import SimpleNamespace
from typing import Any

import cyclone  # type: ignore[import-untyped]
from cyclone import escape, httpserver, httputil, web

from .._gustnado import CycloneApi, cyclone_head
from ._digests import CYCLONE_RELEASES
from ._replaced import FunctionNames, Functions, log_unknown

_OF_REQUESTS: FunctionNames = (
    (escape, ("parse_qs_bytes", "to_unicode", "utf8")),
    (httpserver.HTTPConnection, ("_on_headers", "connectionMade")),
    (httpserver.HTTPRequest, ("__init__",)),
    (httputil.HTTPHeaders, ("__init__", "__setitem__", "_normalize_name", "add", "parse",
                            "parse_line", "update")),
)
_OF_RESPONSES: FunctionNames = (
    (web.RequestHandler, ("_convert_header_value", "_generate_headers", "clear")),
)

_request_functions = Functions(_OF_REQUESTS)
_response_functions = Functions(_OF_RESPONSES)

_server = f"cyclone/{cyclone.version}"
_date, _date_second = "", -1
_is_unsafe = re.compile(r"[\x00-\x1f]").search
_original_value = web.RequestHandler._convert_header_value
_original_head = web.RequestHandler._generate_headers


def digests() -> dict[str, str]:
    """Returns the digests of all functions that are replaced, by their names."""
    return {**_request_functions.digests(), **_response_functions.digests()}


def _are_known(functions: Functions, effect: str) -> bool:
    nearest, unknown = functions.unknown(CYCLONE_RELEASES)
    if unknown:
        log_unknown("Cyclone", nearest, unknown, effect)
    return not unknown


_are_requests_known = _are_known(
    _request_functions, "the engine leaves requests to Cyclone's own functions"
)


def _date_now() -> str:
    global _date, _date_second
    now = int(time.time())
    if now != _date_second:
        _date = datetime.datetime.utcnow().strftime("%a, %d %b %Y %H:%M:%S GMT")
        _date_second = now
    return _date


def _clear(self: Any) -> None:
    """`RequestHandler.clear`, which makes the date of a second once."""
    kind = "text/html; charset=UTF-8"
    self._headers = {"Server": _server, "Content-Type": kind, "Date": _date_now()}
    self._list_headers = []
    self.set_default_headers()
    request = self.request
    if not request.supports_http_1_1() and request.headers.get("Connection") == "Keep-Alive":
        self.set_header("Connection", "Keep-Alive")
    self._write_buffer = []
    self._status_code, self._reason = 200, web.http_client.responses[200]


def _convert_header_value(self: Any, value: object) -> object:
    kind = type(value)
    if kind is int:
        return str(value)
    if isinstance(value, str) and kind is str and len(value) <= 4000 and not _is_unsafe(value):
        return value
    return _original_value(self, value)


def _generate_headers(self: Any) -> object:
    return cyclone_head(self) or _original_head(self)


_faster = {
    "clear": _clear,
    "_convert_header_value": _convert_header_value,
    "_generate_headers": _generate_headers,
}


@functools.cache
def patch() -> None:
    """Replaces methods of `RequestHandler`, unless a program has replaced one already. A second
    call does nothing."""
    if not _response_functions.are_in_place():
        return
    if _are_known(_response_functions, "functions of Cyclone are not replaced"):
        for name, function in _faster.items():
            setattr(web.RequestHandler, name, function)


_api = CycloneApi(SimpleNamespace(
    new=object.__new__,
    new_headers=dict.__new__,
    request=httpserver.HTTPRequest,
    headers=httputil.HTTPHeaders,
    normalize=httputil.HTTPHeaders._normalize_name,
    parse_qs=escape.parse_qs_bytes,
))


def api_for(connection: Any) -> CycloneApi | None:
    """Returns Cyclone's API for the requests of a new connection, or nothing."""
    is_original = (
        _are_requests_known
        and type(connection) is httpserver.HTTPConnection
        and not connection.factory.settings.get("xheaders")
        and "_on_headers" not in vars(connection)
        and _request_functions.are_in_place()
    )
    return _api if is_original else None
