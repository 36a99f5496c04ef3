"""Makes the table of frameworks: each serves the same ten requests, and some of its own, on this
server and on uvicorn or gunicorn; what differs in status, fields (but Date, Server and Connection)
or content is shown. Those that have WebSockets are talked to on them, too.

    python table.py [NAME...] [--report FILE]
"""

import argparse
import contextlib
import datetime
import importlib
import importlib.metadata
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import zlib
from http.client import HTTPConnection
from typing import NamedTuple

import websockets.sync.client
from explained import EXPLAINED

SITES = pathlib.Path(__file__).resolve().parent / "sites"
# What it is called, its packages, `module:name`, and the interface.
FRAMEWORKS = [
    ("Starlette", ["starlette"], "starlette_site:app", "asgi"),
    ("FastAPI", ["fastapi"], "fastapi_site:app", "asgi"),
    ("Litestar", ["litestar"], "litestar_site:app", "asgi"),
    ("Quart", ["quart"], "quart_site:app", "asgi"),
    ("Sanic", ["sanic"], "sanic_site:app", "asgi"),
    ("BlackSheep", ["blacksheep"], "blacksheep_site:app", "asgi"),
    ("Falcon", ["falcon"], "falcon_asgi_site:app", "asgi"),
    ("Falcon", ["falcon"], "falcon_wsgi_site:app", "wsgi"),
    ("Django, admin", ["django"], "django_site:asgi", "asgi"),
    ("Django, admin", ["django"], "django_site:wsgi", "wsgi"),
    ("Channels", ["channels", "django"], "channels_site:app", "asgi"),
    ("Flask", ["flask"], "flask_site:app", "wsgi"),
    ("Bottle", ["bottle"], "bottle_site:app", "wsgi"),
    ("Pyramid", ["pyramid"], "pyramid_site:app", "wsgi"),
    ("Connexion", ["connexion"], "connexion_site:app", "asgi"),
    ("Strawberry", ["strawberry-graphql"], "strawberry_site:app", "asgi"),
    ("a2wsgi, of Flask", ["a2wsgi"], "a2wsgi_site:asgi", "asgi"),
    ("a2wsgi, of Starlette", ["a2wsgi"], "a2wsgi_site:wsgi", "wsgi"),
    ("Gradio", ["gradio"], "gradio_site:app", "asgi"),
    ("python-socketio", ["python-socketio"], "socketio_site:app", "asgi"),
    ("NiceGUI", ["nicegui"], "nicegui_site:app", "asgi"),
    ("Streamlit", ["streamlit"], "streamlit_site:app", "asgi"),
    ("MCP", ["mcp"], "mcp_site:app", "asgi"),
]
PEERS = {
    "asgi": ("uvicorn", ["uvicorn", "--port", "{port}", "--log-level", "warning"]),
    "wsgi": ("gunicorn", ["gunicorn", "--bind", "127.0.0.1:{port}", "--log-level", "warning",
                          "--worker-class", "gthread", "--threads", "4"]),
}
# (The port is not the real one: no response depends on it.)
HOST = "127.0.0.1:8000"
START_SECONDS, ANSWER_SECONDS = 60, 30
CONTENT = bytes(index * 7 % 251 for index in range(3_000_000))
BOUNDARY = "0123456789abcdef"
MULTIPART = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="three.bin"\r\n'
    f"Content-Type: application/octet-stream\r\n\r\n").encode() + CONTENT + (
    f"\r\n--{BOUNDARY}--\r\n").encode()
# Name, method, path, fields and content: the ten.
REQUESTS = [
    ("GET", "GET", "/", [], b""),
    ("HEAD", "HEAD", "/", [], b""),
    ("not found", "GET", "/there-is-none", [], b""),
    ("query", "GET", "/query?name=a%20b&x=1", [], b""),
    ("fields", "GET", "/headers", ["X-One: one, two"], b""),
    ("JSON", "POST", "/json", ["Content-Type: application/json"], b'{"name": "one"}'),
    ("form", "POST", "/form", ["Content-Type: application/x-www-form-urlencoded"],
     b"name=a+%26+b&x=1"),
    ("upload of 3 MB", "POST", "/upload",
     [f"Content-Type: multipart/form-data; boundary={BOUNDARY}"], MULTIPART),
    ("stream", "GET", "/stream", [], b""),
    ("redirect with a cookie", "GET", "/redirect", [], b""),
]
# Each server has its own; `Connection: keep-alive` says nothing in HTTP/1.1.
APART = ("date", "server", "connection")
# What the responses to these must contain, for the request to be meaningful.
SHOWS = {"GET": b"hello", "query": b"a b", "fields": b"one, two", "JSON": b"one",
         "form": b"a & b", "stream": b"piece 2",
         "upload of 3 MB": f"three.bin 3000000 {zlib.crc32(CONTENT)}".encode()}


class Answer(NamedTuple):
    status: int
    fields: list
    body: bytes


class Row(NamedTuple):
    name: str
    packages: list
    site: str
    interface: str
    asked: int
    differs: list


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="only those whose name or file begins so")
    parser.add_argument("--report", metavar="FILE", help="also write a page of it")
    options = parser.parse_args()
    wanted = tuple(name.lower() for name in options.names)
    sys.path.insert(0, str(SITES))
    rows = []
    for framework in FRAMEWORKS:
        name, packages, site, interface = framework
        if wanted and not (name.lower().startswith(wanted) or site.startswith(wanted)):
            continue
        asked, differs = compare(site, interface)
        rows.append(Row(*framework, asked, differs))
        print(f"{name} {version_of(packages)} ({interface}): {asked} requests, "
              f"{len(differs) or 'none'} differ", flush=True)
        for request, what in differs:
            print(f"  {request}: {what} [{explanation(what) or 'unexplained'}]",
                  flush=True)
    if options.report:
        pathlib.Path(options.report).write_text("\n".join(page(rows)) + "\n")
    unexplained = [row for row in rows for request, what in row.differs
                   if not explanation(what)]
    return 1 if unexplained else 0


def compare(site, interface):
    """Returns how many requests were sent to both, and which had other responses, in what."""
    answers, differs = [], []
    for command in (["gustnado", "run", "--port", "{port}", "--interface", interface],
                    PEERS[interface][1]):
        with serving(command, site) as port:
            answers.append(dict(visit(site, port)))
    ours, theirs = answers
    varies = variations(site)
    for name, answer in theirs.items():
        assert is_meant(name, answer), f"{site}, {name}: {answer.status} {answer.body[:200]!r}"
    for name, answer in ours.items():
        other = theirs.get(name)
        what = difference(answer, other, varies) if other else "it was not reached"
        if what:
            differs.append((name, what))
    return len(ours), differs


def is_meant(name, answer):
    """Returns whether a site has served the request: two that fail alike show nothing."""
    status_meant = answer.status == 404 if name == "not found" else answer.status < 400
    return status_meant and SHOWS.get(name, b"") in answer.body


def visit(site, port):
    """Sends the ten requests and the framework's own: yields each response by its name."""

    def ask(method, path, fields=(), body=b""):
        link = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        with contextlib.closing(link):
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            link.putheader("Host", HOST)
            for field in fields:
                link.putheader(*field.split(": ", 1))
            if body:
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body or None)
            answer = link.getresponse()
            head = [(name.lower(), value) for name, value in answer.getheaders()]
            return Answer(answer.status, head, answer.read())

    if attribute(site, "HAS_ONLY_ITS_OWN") is None:
        for name, *request in REQUESTS:
            yield name, ask(*request)
    more = attribute(site, "more")
    if more is not None:
        yield from more(ask)
    talk = attribute(site, "talk")
    if talk is not None:
        for name, said in talk(Connect(port)):
            yield name, Answer(200, [], said.encode())


class Connect:
    """Opens WebSockets to a server on a port."""

    def __init__(self, port):
        self._port = port

    def url(self, scheme):
        return f"{scheme}://127.0.0.1:{self._port}"

    def __call__(self, path, **more):
        return websockets.sync.client.connect(
            self.url("ws") + path, open_timeout=ANSWER_SECONDS, close_timeout=5, max_size=None,
            **more)


def difference(ours, theirs, varies):
    """Returns the difference of two responses, in a few words; nothing where they are the same."""
    found = []
    if ours.status != theirs.status:
        found.append(f"status {ours.status}, there {theirs.status}")
    sides = [sorted(f"{name}: {plain(value.encode('latin-1'), varies).decode('latin-1')}"
                    for name, value in answer.fields if name not in APART)
             for answer in (ours, theirs)]
    only = [[field for field in side if field not in other]
            for side, other in (sides, sides[::-1])]
    for fields, where in zip(only, ("here", "there"), strict=True):
        if fields:
            found.append(f"{where} only: {', '.join(fields)}")
    if plain(ours.body, varies) != plain(theirs.body, varies):
        found.append(f"content ({len(ours.body)} bytes, there {len(theirs.body)})")
    return "; ".join(found)


def plain(text, varies):
    for pattern in varies:
        text = re.sub(pattern, b"...", text)
    return text


def variations(site):
    return attribute(site, "VARIES") or []


def attribute(site, name):
    """Of a site's file, which is imported here only where it has the word."""
    module = site.partition(":")[0]
    if not re.search(rf"^(def )?{name}\b", (SITES / f"{module}.py").read_text(), re.MULTILINE):
        return None
    return getattr(importlib.import_module(module), name)


@contextlib.contextmanager
def serving(command, site):
    """Runs a server until the block ends, and gives its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in command]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
        [str(SITES), os.environ.get("PYTHONPATH", "")]), "GRADIO_ANALYTICS_ENABLED": "False"}
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+") as log:
        process = subprocess.Popen([sys.executable, "-m", *words, site], cwd=folder, stderr=log,
                                   stdout=log, env=environment)
        try:
            wait_for_port(process, port, log)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_port(process, port, log):
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                sys.exit(f"{process.args} has not started:\n{log.read()}")
            time.sleep(0.05)


def version_of(packages):
    return ", ".join(importlib.metadata.version(package) for package in packages)


def own_version():
    manifest = (pathlib.Path(__file__).parents[3] / "Cargo.toml").read_text()
    return re.search(r'^version = "(.+)"', manifest, re.MULTILINE)[1]


def explanation(what):
    """Why this differs, as explained.py has it."""
    return next((why for words, why in EXPLAINED if re.fullmatch(words, what)), None)


def filled(text):
    """A paragraph of the page."""
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"


def page(rows):
    today = datetime.date.today().isoformat()
    python = ".".join(map(str, sys.version_info[:3]))
    yield "# Frameworks\n"
    yield filled("Written by `make frameworks`, which serves one small site by each framework"
                 " (`python/tests/frameworks/sites`) from this server and from uvicorn or gunicorn,"
                 " and compares the responses.")
    yield (f"{today}, Python {python}, gustnado {own_version()}, "
           + ", ".join(f"{name} {importlib.metadata.version(name)}" for name, _ in PEERS.values())
           + ".\n")
    yield filled("Each gets ten requests: " + ", ".join(name for name, *_ in REQUESTS)
                 + "; some get more of their own, and those that have WebSockets are talked to on"
                 " them: texts and bytes of up to 300 KB, closing by either side, subprotocols,"
                 " handshakes that are refused. Compared are status, fields (but Date, Server and"
                 " Connection) and content, byte for byte, and what was said on WebSockets.")
    yield "| framework | version | by | requests | compared with | result |"
    yield "| --- | --- | --- | ---: | --- | --- |"
    notes = []
    for row in rows:
        marks = []
        for request, what in row.differs:
            reason = explanation(what) or "not explained"
            if reason not in notes:
                notes.append(reason)
            marks.append(f"{request} ({notes.index(reason) + 1})")
        result = "differs: " + ", ".join(marks) if marks else "same"
        yield (f"| {row.name} | {version_of(row.packages)} | {row.interface.upper()} | {row.asked}"
               f" | {PEERS[row.interface][0]} | {result} |")
    if notes:
        yield "\n## What differs, and why\n"
        yield from (f"{number}. {note}" for number, note in enumerate(notes, 1))


if __name__ == "__main__":
    sys.exit(main())
