"""Digests of Cyclone's own functions, those of its release 1.3.

`python/src/twisted/cyclone.rs` replaces some of them; faster forms with the same results replace
some more. A class that has another one keeps its own.
"""

import datetime
import re
import time
from types import SimpleNamespace

import cyclone
from cyclone import escape, httpserver, httputil, web

from .._gustnado import CycloneWords, cyclone_head
from ._known import as_ever, digest, functions_of

_DIGEST = "6f50dc70137f72d013069947b3864431576a62e9784db3907c82fcd700faa121"

_FUNCTIONS = (
    (escape, ("parse_qs_bytes", "to_unicode", "utf8")),
    (httpserver.HTTPConnection, ("_on_headers", "connectionMade")),
    (httpserver.HTTPRequest, ("__init__",)),
    (httputil.HTTPHeaders, ("__init__", "__setitem__", "_normalize_name", "add", "parse",
                            "parse_line", "update")),
    (web.RequestHandler, ("_convert_header_value", "_generate_headers", "clear")),
)

_originals = functions_of(_FUNCTIONS)
_as_ever = [(names, name, own) for names, name, own in as_ever(_originals)
            if name not in ("_convert_header_value", "_generate_headers", "clear")]
_is_known = digest(_originals) == _DIGEST
_slow_value = web.RequestHandler._convert_header_value
_slow_head = web.RequestHandler._generate_headers

_server = f"cyclone/{cyclone.version}"
_date, _date_of = "", None
_is_unsafe = re.compile(r"[\x00-\x1f]").search


def _date_now():
    global _date, _date_of
    now = int(time.time())
    if now != _date_of:
        _date = datetime.datetime.utcnow().strftime("%a, %d %b %Y %H:%M:%S GMT")
        _date_of = now
    return _date


def _clear(self):
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


def _convert_header_value(self, value):
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is str and len(value) <= 4000 and not _is_unsafe(value):
        return value
    return _slow_value(self, value)


def _generate_headers(self):
    return cyclone_head(self) or _slow_head(self)


_faster = {
    "clear": _clear,
    "_convert_header_value": _convert_header_value,
    "_generate_headers": _generate_headers,
}


def install():
    """Replaces Cyclone's functions, unless they were replaced already."""
    if not _is_known:
        return
    for name, faster in _faster.items():
        if vars(web.RequestHandler)[name] is _originals[web.RequestHandler, name]:
            setattr(web.RequestHandler, name, faster)


_words = _is_known and CycloneWords(SimpleNamespace(
    new=object.__new__,
    new_headers=dict.__new__,
    request=httpserver.HTTPRequest,
    headers=httputil.HTTPHeaders,
    normalize=httputil.HTTPHeaders._normalize_name,
    parse_qs=escape.parse_qs_bytes,
))


def words_for(connection):
    """Returns the shared words for a new connection, or nothing."""
    is_as_ever = (
        _is_known
        and type(connection) is httpserver.HTTPConnection
        and not connection.factory.settings.get("xheaders")
        and "_on_headers" not in vars(connection)
        and all(names[name] is own for names, name, own in _as_ever)
    )
    return _words if is_as_ever else None
