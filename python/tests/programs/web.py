"""Resources of every kind that twisted.web documents, in one tree.

Words: `quiet` shows no tracebacks; `traced` does; `short` ends idle connections after a second;
`logged` writes access.log; `said` has Twisted's log on standard error; `formatted` has a formatter
of its own, `proxied` that for proxies, `subclass` a site with its own `log`; `requests` a factory
of requests of its own, `channels` a channel of its own.
"""

import sys

import starting

starting.install()

import resources  # noqa: E402
from twisted.python import log  # noqa: E402
from twisted.web import http, server  # noqa: E402


class SiteWithLog(server.Site):
    def log(self, request):
        self.logFile.write(f"{request.method!r} {request.uri!r} {request.code} {request.sentLength}"
                           f" {request.getClientAddress().host}\n")


class OwnRequest(server.Request):
    def process(self):
        self.setHeader(b"X-Own", b"yes")
        super().process()


class OwnChannel(http.HTTPChannel):
    def headerReceived(self, line):
        return super().headerReceived(line.replace(b"X-Odd", b"X-Even"))


def format_entry(timestamp, request):
    host = request.requestHeaders.getRawHeaders(b"host", [b"-"])[0]
    return f"{timestamp} {request.method!r} {host!r} {request.code} {request.sentLength}"


def site():
    words, more = starting.WORDS, {}
    if "logged" in words:
        more["logPath"] = b"access.log"
    if "formatted" in words:
        more["logFormatter"] = format_entry
    if "proxied" in words:
        more["logFormatter"] = http.proxiedLogFormatter
    if "short" in words:
        more["timeout"] = 1
    if "requests" in words:
        more["requestFactory"] = OwnRequest
    kind = SiteWithLog if "subclass" in words else server.Site
    made = kind(resources.tree(int(sys.argv[2])), **more)
    made.displayTracebacks = "traced" in words
    if "channels" in words:
        made.protocol = OwnChannel
    return made


if "said" in starting.WORDS:
    log.startLogging(sys.stderr, setStdout=False)
starting.listen(site())
