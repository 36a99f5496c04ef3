"""Functions of Twisted that `python/src/twisted/ordinary.rs` replaces.

It replaces them as they are in the releases of `_digests`, to the letter. With any other release,
and where a program has put something else in their place, they are called themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from types import ModuleType, SimpleNamespace
from typing import Any

import twisted
from twisted.internet import address
from twisted.protocols import basic, policies
from twisted.python import components, failure, filepath
from twisted.web import http, http_headers, resource, server

from .._gustnado import TwistedApi, escape_for_log
from ._digests import RELEASES
from ._replaced import FunctionNames, Functions, log_unknown

_FUNCTIONS: FunctionNames = (
    (http, ("_escape", "_getContentFile", "combinedLogFormatter")),
    (http.Request, ("__init__", "_cleanup", "finish", "getClientAddress", "getHeader", "gotLength",
                    "parseCookies", "requestReceived", "setHeader", "setResponseCode", "write")),
    (http.HTTPChannel, ("allContentReceived", "allHeadersReceived", "checkPersistence", "getHost",
                        "getPeer", "loseConnection", "requestDone", "write", "writeHeaders",
                        "writeSequence")),
    (http.HTTPFactory, ("log",)),
    (http_headers.Headers, ("__init__", "addRawHeader", "getAllRawHeaders", "getRawHeaders",
                            "setRawHeaders")),
    (server.Request, ("__init__", "finish", "gotLength", "process", "render", "write")),
    (server.Site, ("getResourceFor",)),
    (resource, ("getChildForRequest",)),
    (resource.Resource, ("render",)),
    (components.Componentized, ("__init__",)),
    (basic.LineReceiver, ("setLineMode", "setRawMode")),
    (policies.TimeoutMixin, ("resetTimeout", "setTimeout")),
)

_CHANNEL_NAMES = {
    *(name for owner, names in _FUNCTIONS if owner is http.HTTPChannel for name in names),
    "setLineMode", "setRawMode", "setTimeout", "resetTimeout",
}


def functions() -> Functions:
    """Returns the functions of a request."""
    return Functions(_FUNCTIONS)


def functions_of_files(static: ModuleType) -> Functions:
    """Returns the functions that find a file and send it.

    - `static`: the module `twisted.web.static`.
    """
    return Functions((
        (static, ("getTypeAndEncoding",)),
        (static.File, ("__init__", "_setContentHeaders", "createSimilarFile", "getChild",
                       "getFileSize", "makeProducer", "openForReading", "render_GET")),
        (static.NoRangeStaticProducer, ("resumeProducing", "start")),
        (resource.Resource, ("getChildWithDefault",)),
        (filepath.FilePath, ("child", "splitext")),
        (http.Request, ("setLastModified",)),
    ))


class _Rendered:
    """A resource that was rendered already."""

    def __init__(self, resource: Any, error: BaseException | None, body: object) -> None:
        self._resource, self._error, self._body, self._is_used = resource, error, body, False

    def render(self, request: server.Request) -> object:
        if self._is_used:
            rendered: object = self._resource.render(request)
            return rendered
        self._is_used = True
        if self._error is not None:
            raise self._error
        return self._body

    def __repr__(self) -> str:
        return repr(self._resource)

    def __str__(self) -> str:
        return str(self._resource)


def _go_on(
    request: server.Request, resource: object, error: BaseException | None, body: object
) -> None:
    """Continues `process` with the result or exception of a resource."""
    try:
        request.render(_Rendered(resource, error, body))
    except BaseException:
        request.processingFailed(failure.Failure())


def _failed(request: server.Request, error: BaseException) -> None:
    """Continues `process` with an earlier exception."""
    try:
        raise error
    except BaseException:
        request.processingFailed(failure.Failure())


def _api(make_date: Callable[[], bytes]) -> TwistedApi:
    return TwistedApi(SimpleNamespace(
        new=object.__new__,
        request=server.Request,
        headers=http_headers.Headers,
        bytes_io=BytesIO,
        parse_qs=http.parse_qs,
        child_of=resource.getChildForRequest,
        provides_encoding=resource._IEncodingResource.providedBy,
        resource_render=resource.Resource.render,
        request_write=server.Request.write,
        request_finish=server.Request.finish,
        factory_log=http.HTTPFactory.log,
        formatter=http.combinedLogFormatter,
        addresses=(address.IPv4Address, address.IPv6Address),
        not_done_yet=server.NOT_DONE_YET,
        version=server.version,
        make_date=make_date,
        go_on=_go_on,
        failed=_failed,
    ))


class Known:
    """Whether connections have only known functions. It is made before any is replaced."""

    def __init__(self, date: Callable[[], bytes]) -> None:
        self._date = date
        self._functions = functions()
        self._version = server.version
        nearest, unknown = self._functions.unknown(RELEASES)
        self.has_known_escape = "http._escape" not in unknown
        self._api = _api(date) if not unknown and isinstance(self._version, bytes) else None
        self._files: Functions | None = None
        if unknown:
            effect = "the engine leaves ordinary requests to Twisted's own functions"
            log_unknown(f"Twisted {twisted.__version__}", nearest, unknown, effect)

    def api_for(self, channel: http.HTTPChannel) -> TwistedApi | None:
        """Returns Twisted's API for ordinary requests of a new connection, or nothing."""
        if self._api is None or channel.requestFactory is not server.Request:
            return None
        site = getattr(channel, "site", None)
        if type(channel) is not http.HTTPChannel or not isinstance(site, server.Site):
            return None
        is_original = (
            vars(server)["datetimeToString"] is self._date
            and server.version is self._version
            and http._escape is escape_for_log
            and type(site).getResourceFor is server.Site.getResourceFor
            and "getResourceFor" not in vars(site)
            and not hasattr(site, "getContentFile")
            and vars(channel).keys().isdisjoint(_CHANNEL_NAMES)
            and self._functions.are_in_place(except_for=("_escape",))
        )
        if not is_original:
            return None
        self._find_files(self._api)
        return self._api

    def _find_files(self, api: TwistedApi) -> None:
        static = sys.modules.get("twisted.web.static")
        if static is None or self._files is not None:
            return
        self._files = functions_of_files(static)
        nearest, unknown = self._files.unknown(RELEASES)
        if unknown:
            effect = "the engine leaves files to Twisted's own functions"
            log_unknown(f"Twisted {twisted.__version__}", nearest, unknown, effect)
            return
        api.set_files(SimpleNamespace(
            file=static.File,
            get_child=static.File.getChild,
            create_similar=static.File.createSimilarFile,
            child_with_default=resource.Resource.getChildWithDefault,
            make_date=http.datetimeToString,
        ))
