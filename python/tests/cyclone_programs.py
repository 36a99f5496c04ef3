"""Cyclone's programs, the request to each, and what must be in the response if it works.

    python cyclone_programs.py

prints the table of docs/python/cyclone.md: each is run on both reactors.
"""

import pathlib
import re
import tempfile
from dataclasses import dataclass

from pairs import Pair
from requests_sent import MULTIPART, PARTS, get, post

SOCKET = (b"Upgrade: websocket\r\nConnection: Upgrade\r\nOrigin: http://a\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
BRAZIL = b"Accept-Language: pt-BR\r\n"
HELLO_FRAME = b"\x81\x85\0\0\0\0hello"


@dataclass
class Program:
    what: str
    request: bytes
    words: bytes


# Those that do not work on Python 3, whatever the reactor.
BROKEN = (
    "bottle", "locale_gettext", "locale_csv", "xml_rpc", "sse", "flush", "websocket", "client",
    "client_text",
)


def call(method, params):
    return post(b"/", b'{"id": 1, "method": "%s", "params": %s}' % (method, params))


XML = (b"<?xml version='1.0'?><methodCall><methodName>add</methodName><params><param><value>"
       b"<int>1</int></value></param><param><value><int>2</int></value></param></params>"
       b"</methodCall>")

PROGRAMS = {
    "hello": Program("hello world", get(b"/"), b"Hello, world"),
    "bottle": Program("bottle style", get(b"/"), b"Hello, bottle"),
    "static": Program("static files", get(b"/static/text.txt"), b"a line of text"),
    "template": Program("templates", get(b"/"), b"<li>&lt;two&gt;</li>"),
    "modules": Program("UI modules", get(b"/"), b"HEY!"),
    "locale": Program("locale: numbers, dates, lists", get(b"/"), b"1,234,567 a, b and c"),
    "locale_gettext": Program("locale: gettext", get(b"/words", BRAZIL), b"3 ma\xc3\xa7\xc3\xa3s"),
    "locale_csv": Program("locale: translations in CSV", get(b"/words", BRAZIL), b"Bom dia"),
    "json_rpc": Program("JSON-RPC", call(b"add", b"[1, 2]"), b'"result": 3'),
    "xml_rpc": Program("XML-RPC", post(b"/", XML), b"<int>3</int>"),
    "sse": Program("SSE, with sendEvent", get(b"/"), b"data: one"),
    "sse_bytes": Program("SSE, written as bytes", get(b"/"), b"id: 3\ndata: tick\n\n"),
    "flush": Program("flush: chunked answers", get(b"/"), b"piece 2"),
    "websocket": Program("WebSocket", get(b"/", SOCKET) + HELLO_FRAME, b"\x81\x05hello"),
    "authentication": Program("basic authentication",
                              get(b"/", b"Authorization: Basic am9lOmJsb3c=\r\n"), b"let in"),
    "login": Program("secure cookies", get(b"/join"), b"joined"),
    "xsrf": Program("XSRF forms", get(b"/", b"Cookie: _xsrf=x\r\n"), b'value="x"'),
    "upload": Program("uploads", post(b"/", MULTIPART, PARTS), b"n.txt"),
    "gzip": Program("gzip", get(b"/echo", b"Accept-Encoding: gzip\r\n"), b"Content-Encoding: gzip"),
    "redirect": Program("redirects", get(b"/"), b"Location: "),
    "errors": Program("own error pages", get(b"/"), b"own page for 404"),
    "hooks": Program("hooks and named URLs", get(b"/named/a/1"), b"db a 1 /named/x"),
    "hosts": Program("virtual hosts", get(b"/"), b"Hello, world"),
    "common": Program("Deferreds", get(b"/later"), b"later"),
    "debug": Program("debug", get(b"/"), b"Hello, world"),
    "proxied": Program("behind a proxy", get(b"/echo", b"X-Real-Ip: 10.1.2.3\r\n"), b"10.1.2.3"),
    "sqlite": Program("SQLite", get(b"/"), b"a note"),
    "client": Program("HTTP client, with a URL of bytes", get(b"/?bytes=1"), b"Hello, world"),
    "client_text": Program("HTTP client, with a URL of text", get(b"/"), b"Hello, world"),
    "options": Program("options", get(b"/"), b"Hello from options"),
    "redis": Program("Redis (import)", get(b"/"), b"Hello, world"),
    "mail": Program("mail (import)", get(b"/"), b"Hello, world"),
    "sign_in_elsewhere": Program("OpenID (first step)", get(b"/"), b"Location: "),
}


def outcome(name, folder):
    """For each reactor, whether it works, and the error that it says."""
    program, made = PROGRAMS[name], []
    try:
        pair = Pair(folder, "cyclone_kinds.py", name)
    except AssertionError as failed:
        return [(False, last_error(str(failed)))] * 2
    try:
        answers = pair.ask([program.request], quiet=0.3)
        for server, (came, _) in zip(pair.servers, answers):
            made.append((program.words in came, last_error(server.said())))
    finally:
        pair.kill()
    return made


def last_error(said):
    errors = re.findall(r"([A-Za-z]*(?:Error|Exception))(?:'>)?(: .*)", said)
    return "".join(errors[-1]) if errors else ""


def table():
    yield "| program | on epoll | on ours | its error |"
    yield "| --- | --- | --- | --- |"
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            (epoll, error), (ours, _) = outcome(name, pathlib.Path(folder))
        says = ["works" if works else "broken" for works in (epoll, ours)]
        yield f"| {program.what} | {says[0]} | {says[1]} | {'' if epoll else f'`{error}`'} |"


if __name__ == "__main__":
    for row in table():
        print(row, flush=True)
