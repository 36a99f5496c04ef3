"""gunicorn's raw requests, those that are valid and those that are not, sent to an application by
WSGI. Results that differ from gunicorn's parser are in gunicorn_differs."""

import glob
import json
import os
import select
import sys
import time

import pytest
from conftest import Server, free_port
from gunicorn_differs import INVALID, VALID

TESTS = os.environ["GUNICORN_TESTS"]
sys.path.insert(0, TESTS)
import treq  # noqa: E402  (It is gunicorn's: what reads its files of requests.)

APP = """
import json

def app(environ, start_response):
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "application/json")])
    found = {key: value for key, value in environ.items() if isinstance(value, str)}
    return [json.dumps({**found, "body": body.decode("latin-1")}).encode()]
"""
# The time for all responses; a server that sends nothing for FIRST_SECONDS waits, and after a
# response QUIET_SECONDS are enough.
ANSWER_SECONDS, FIRST_SECONDS, QUIET_SECONDS = 5.0, 2.0, 0.3
WAITS = "waits"


def names(kind):
    paths = glob.glob(os.path.join(TESTS, "requests", kind, "*.http"))
    return sorted(os.path.basename(path).removesuffix(".http") for path in paths)


def case_of(kind, name):
    """What is sent, what gunicorn makes of it, and whether by the PROXY protocol."""
    path = os.path.join(TESTS, "requests", kind, name)
    told = treq.load_py(path + ".py")
    case = treq.badrequest(path + ".http") if kind == "invalid" else treq.request(
        path + ".http", told["request"])
    return with_host(case.data), told["request"], told["cfg"].proxy_protocol != "off"


def with_host(data):
    """Most of their requests by HTTP/1.1 have no Host, which is refused here before anything else
    of them is looked at (RFC 9112, 3.2): they are sent with one."""
    if b"\nhost:" in data.lower() or data.split(b"\r\n")[0].endswith(b" HTTP/1.0"):
        return data
    return data.replace(b" HTTP/1.1\r\n", b" HTTP/1.1\r\nHost: a\r\n")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """One without the PROXY protocol, and one with it."""
    folder = tmp_path_factory.mktemp("gunicorn")
    (folder / "site_app.py").write_text(APP)
    started = []
    for options in ([], ["--proxy-protocol", "true", "--proxy-allow-from", "127.0.0.1"]):
        port = free_port()
        command = [sys.executable, "-m", "gustnado", "run", "--port", str(port), *options]
        started.append(Server(folder, [*command, "site_app:app"], port))
    yield started
    for server in started:
        server.kill()


def answers_to(server, data, wanted):
    """Returns status and content of each response, until so many have come or nothing more does."""
    with server.connect() as link:
        link.sendall(data)
        received, found, deadline = b"", [], time.monotonic() + ANSWER_SECONDS
        while len(found) < wanted and time.monotonic() < deadline:
            patience = QUIET_SECONDS if found else FIRST_SECONDS
            if not select.select([link], [], [], patience)[0]:
                break
            try:
                piece = link.recv(65536)
            except ConnectionResetError:
                piece = b""
            received += piece
            while (answer := first_answer(received)) is not None:
                status, content, received = answer
                if status >= 200:
                    found.append((status, content))
            if not piece:
                break
    return found


def first_answer(received):
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    _, _, length = head.lower().partition(b"content-length:")
    length = int(length.split(b"\r\n")[0] or 0)
    if len(rest) < length:
        return None
    return int(head.split()[1]), rest[:length], rest[length:]


@pytest.mark.parametrize("name", names("valid"))
def test_valid_request(servers, name):
    data, expected, by_proxy = case_of("valid", name)
    expected = expected if isinstance(expected, list) else [expected]
    found = answers_to(servers[by_proxy], data, len(expected))
    assert faring(found, expected) == VALID.get(name, ("as there",))[0]


def faring(found, expected):
    """In a word, what has become of requests of which all should have been served."""
    for status, _content in found:
        if status != 200:
            return status
    if len(found) < len(expected):
        return WAITS
    pairs = zip(found, expected, strict=True)
    differs = {key for (_, content), wanted in pairs
               for key in differences(json.loads(content), wanted)}
    return "differs in " + ", ".join(sorted(differs)) if differs else "as there"


def differences(environ, wanted):
    """What the application finds other than gunicorn's parser says it."""
    for key, found, should in [
        ("method", environ["REQUEST_METHOD"], wanted["method"]),
        ("target", environ["RAW_URI"], wanted["uri"]["raw"]),
        ("query", environ["QUERY_STRING"], wanted["uri"]["query"]),
        ("version", environ["SERVER_PROTOCOL"], "HTTP/{}.{}".format(*wanted["version"])),
        ("body", environ["body"].encode("latin-1"), wanted["body"]),
    ]:
        if found != should:
            yield key
    fields = {}
    for name, value in wanted["headers"]:
        fields.setdefault(name.upper().replace("-", "_"), []).append(value)
    for name, values in fields.items():
        # The length is that of the body where it comes in chunks, whose coding is gone by then.
        if name not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            key = name if name == "CONTENT_TYPE" else f"HTTP_{name}"
            if environ.get(key, "").replace(" ", "") != ",".join(values).replace(" ", ""):
                yield name


@pytest.mark.parametrize("name", names("invalid"))
def test_invalid_request(servers, name):
    data, _error, by_proxy = case_of("invalid", name)
    found = answers_to(servers[by_proxy], data, 9)
    refused = [status for status, _ in found if status != 200]
    fares = "refused" if refused else "served" if found else WAITS
    assert fares == INVALID.get(name, ("refused",))[0]


def test_every_name_that_is_listed_is_there():
    assert set(VALID) <= set(names("valid")) and set(INVALID) <= set(names("invalid"))
