"""Digests of Twisted's own functions that `python/src/twisted/ordinary.rs` replaces.

It replaces them as they are in the releases named here, to the letter. With any other release,
and where a program has put something else in their place, they are called themselves.
"""

import hashlib
import inspect
import sys
from io import BytesIO
from types import SimpleNamespace

from twisted.internet import address
from twisted.protocols import basic, policies
from twisted.python import components, failure, filepath
from twisted.web import http, http_headers, resource, server

from .._gustnado import TwistedWords, escape_for_log

# Digests of the functions' sources, by the first release with them.
_DIGESTS = {
    "26.10.0": "9c7dfd164bb4290250d885638008a2b96df1de47b4550235383aab098a919146",
}

_DIGESTS_OF_FILES = {
    "26.10.0": "e0f994599ad5f9be182a2f6c33b4ccdc25b56be74341cf2dbabe279da78d3826",
}

_FUNCTIONS = (
    (http, ("_getContentFile", "combinedLogFormatter")),
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


def functions_of(wanted):
    """Returns the needed functions, by owner and name."""
    return {(kind, name): vars(kind)[name] for kind, names in wanted for name in names}


def _functions_of_files(static):
    return functions_of((
        (static, ("getTypeAndEncoding",)),
        (static.File, ("__init__", "_setContentHeaders", "createSimilarFile", "getChild",
                       "getFileSize", "makeProducer", "openForReading", "render_GET")),
        (static.NoRangeStaticProducer, ("resumeProducing", "start")),
        (resource.Resource, ("getChildWithDefault",)),
        (filepath.FilePath, ("child", "splitext")),
        (http.Request, ("setLastModified",)),
    ))


def digest(functions):
    """Returns the digests of the functions' sources."""
    found = hashlib.sha256()
    for function in functions.values():
        found.update(inspect.getsource(getattr(function, "__func__", function)).encode())
    return found.hexdigest()


def as_ever(functions):
    """The same, to be compared with what is there by then: names, a name and its function."""
    return [(vars(kind), name, own) for (kind, name), own in functions.items()]


class _Again:
    """A resource that was rendered already."""

    def __init__(self, resource, error, body):
        self._resource, self._error, self._body, self._is_asked = resource, error, body, False

    def render(self, request):
        if self._is_asked:
            return self._resource.render(request)
        self._is_asked = True
        if self._error is not None:
            raise self._error
        return self._body

    def __repr__(self):
        return repr(self._resource)

    def __str__(self):
        return str(self._resource)


def _go_on(request, resource, error, body):
    """Continues `process` with the result or exception of a resource."""
    try:
        request.render(_Again(resource, error, body))
    except BaseException:
        request.processingFailed(failure.Failure())


def _failed(request, error):
    """Continues `process` with an earlier exception."""
    try:
        raise error
    except BaseException:
        request.processingFailed(failure.Failure())


def _words(make_date):
    return TwistedWords(SimpleNamespace(
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
    """Whether connections have only known functions."""

    def __init__(self, date):
        self._date = date
        self._originals = functions_of(_FUNCTIONS)
        self._as_ever = as_ever(self._originals)
        is_known = digest(self._originals) in _DIGESTS.values()
        self._version = server.version
        is_known = is_known and isinstance(self._version, bytes)
        self._words = _words(date) if is_known else None
        self._files = None

    def words_for(self, channel):
        """Returns the shared words for ordinary requests of a new connection, or nothing."""
        if self._words is None or channel.requestFactory is not server.Request:
            return None
        site = getattr(channel, "site", None)
        if type(channel) is not http.HTTPChannel or not isinstance(site, server.Site):
            return None
        is_as_ever = (
            server.datetimeToString is self._date
            and server.version is self._version
            and http._escape is escape_for_log
            and type(site).getResourceFor is server.Site.getResourceFor
            and "getResourceFor" not in vars(site)
            and not hasattr(site, "getContentFile")
            and vars(channel).keys().isdisjoint(_CHANNEL_NAMES)
            and all(names[name] is own for names, name, own in self._as_ever)
        )
        if not is_as_ever:
            return None
        self._look_for_files()
        return self._words

    def _look_for_files(self):
        static = sys.modules.get("twisted.web.static")
        if static is None or self._files is not None:
            return
        self._files = _functions_of_files(static)
        if digest(self._files) in _DIGESTS_OF_FILES.values():
            self._words.know_files(SimpleNamespace(
                file=static.File,
                get_child=static.File.getChild,
                create_similar=static.File.createSimilarFile,
                child_with_default=resource.Resource.getChildWithDefault,
                make_date=http.datetimeToString,
            ))


_CHANNEL_NAMES = {
    *(name for kind, names in _FUNCTIONS if kind is http.HTTPChannel for name in names),
    "setLineMode", "setRawMode", "setTimeout", "resetTimeout",
}
