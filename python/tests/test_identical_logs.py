"""What twisted.web's programs on our reactor say in their logs, and when clients go or tarry."""

import re
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("twisted")

from pairs import Pair, Until, exchange, mask
from requests_sent import get, post

# Sent one after the other, for the order in the log is compared, too.
REQUESTS = [
    get(b"/"),
    get(b"/seen?x='y'\"z\"", b"User-Agent: a\"b\\c\r\nReferer: \xe9\t\r\n"),
    get(b"/", b"User-Agent: one\r\nUser-Agent: two\r\nX-Forwarded-For: 10.1.2.3, 4.5.6.7\r\n"),
    get(b"/", method=b"HEAD"),
    get(b"/", version=b"HTTP/1.0"),
    get(b"/absent") + get(b"/") * 2,
    get(b"/later") + get(b"/"),
    get(b"/fails"),
    get(b"/status?code=204") + get(b"/status?code=304"),
    get(b"/pull"),
    get(b"/aborts"),
    get(b"/closes"),
    get(b"/waits", b"Connection: close\r\n"),
    get(b"/waits?write=1"),
    get(b"/files/text.txt", b"Range: bytes=1-4\r\n"),
    get(b"/wsgi"),
    get(b"http://a.example/seen"),
    get(b"*", method=b"OPTIONS"),
    post(b"/seen", b"abc"),
    b"POST /seen HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"nonsense\r\n\r\n",
    get(b"/", b"no colon\r\n"),
    b"GET / HTTP/1.1\r\n",
    get(b"/seen?" + bytes(byte for byte in range(33, 177) if byte not in b"#")),
]


def timeless(text, server):
    """Without times, places in memory, ports, and lines of code that called something."""
    text = mask(text.encode("utf-8", "surrogateescape"), server.port).decode("utf-8", "replace")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[-+]\d{4}", "when", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z?", "when", text)
    text = re.sub(r"port=\d+", "port=some", text)
    text = re.sub(r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+\d{4}", "when", text)
    return re.sub(r"\d+\.\d\dms", "some ms", text)


def ask_all(pair, requests=REQUESTS, quiet=0.12):
    """Each server gets one request after the other, and both at the same time."""
    def ask(server):
        return [exchange(server, [request], 0, Until(quiet)) for request in requests]

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(ask, pair.servers))


def logs(folder, read, program, *words, requests=REQUESTS):
    """Returns what both have logged of these requests. If it differs, the requests are repeated
    with more patience: on a busy machine clients go before they have a response."""
    for quiet in (0.12, 0.8):
        both = Pair(folder / str(quiet), program, *words)
        try:
            ask_all(both, requests, quiet)
            both.end()
            epoll, ours = map(read, both.servers)
        finally:
            both.kill()
        if epoll == ours:
            break
    return epoll, ours


def lines_of_file(server):
    text = (server.folder / "access.log").read_text(errors="surrogateescape")
    return timeless(text, server).split("\n")


@pytest.mark.parametrize("words", ["logged", "logged formatted", "logged proxied",
                                   "logged subclass", "logged requests"])
def test_the_access_log_in_a_file_is_the_same(tmp_path, words):
    epoll, ours = logs(tmp_path, lines_of_file, "web.py", *words.split())
    assert ours == epoll
    assert len(epoll) >= len(REQUESTS) - 6


def lines_of(server):
    """Twisted's log without what says where in its own code something was called."""
    text = timeless(server.said(), server)
    # (Twisted 24.7 also says what called those, up to the start of the program.)
    own = r'File "[^"]*/(?:(?:twisted|gustnado)/[^"]*|starting\.py)", line \d+, in \w+'
    called = rf"[\t ]*{own}\n(\t*    .*\n)*"
    return re.sub(called, "", text).split("\n")


@pytest.mark.parametrize("words", ["said", "said formatted", "said subclass", "said traced"])
def test_twisteds_log_is_the_same(tmp_path, words):
    epoll, ours = logs(tmp_path, lines_of, "web.py", *words.split())
    assert ours == epoll
    assert any(line.endswith("[_GenericHTTPChannelProtocol,1,127.0.0.1] saying hello")
               for line in epoll)


def test_cyclones_log_is_the_same(tmp_path):
    pytest.importorskip("cyclone")
    requests = [get(b"/") * 2, get(b"/fails/403"), get(b"/absent"), get(b"/later"),
                get(b"/waits"), b"nonsense\r\n\r\n", post(b"/echo", b"abc")]
    epoll, ours = logs(tmp_path, lines_of, "cyclone_kinds.py", "debug", requests=requests)
    assert ours == epoll and any("[http] 200 GET / (127.0.0.1)" in line for line in epoll)


# Sent, and gone.
CUTS = {
    "within the line": get(b"/")[:7],
    "within the head": get(b"/")[:-2],
    "within the body": post(b"/seen", b"abc")[:-1],
    "within a chunk": b"POST /seen HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "before the answer": get(b"/waits"),
    "within the answer": get(b"/waits?write=1"),
    "behind answers": get(b"/") * 3,
    "with more in line": get(b"/waits") + get(b"/") * 3,
    "within a push": get(b"/push"),
    "within a pull": get(b"/pull"),
}


# Where we are known to differ, and how. What is mended has to go from here: it fails then.
RESET = "a reset is told as ConnectionDone, and is ConnectionLost on epoll"
KNOWN = {}


@pytest.fixture(scope="module")
def talkative(tmp_path_factory):
    both = Pair(tmp_path_factory.mktemp("talkative"), "web.py", "said")
    yield both
    both.kill()


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("way", ["closed", "reset"])
def test_a_client_that_goes_is_heard_of_alike(request, talkative, name, way):
    if reason := KNOWN.get((name, way)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    before = [len(lines_of(server)) for server in talkative.servers]
    for server in talkative.servers:
        link = server.connect()
        link.sendall(CUTS[name])
        time.sleep(0.15)
        if way == "reset":
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()
    time.sleep(0.3)
    # Others are served as before.
    ask_all(talkative, [get(b"/")])
    epoll, ours = (lines_of(server)[count - 1:]
                   for server, count in zip(talkative.servers, before))
    assert ours == epoll
    if name in ("before the answer", "within the answer"):
        assert any("lost Connection" in line for line in epoll)


IDLE = {
    "from the beginning": [b""],
    "within the head": [get(b"/")[:-2]],
    "within the body": [post(b"/seen", b"abc")[:-1]],
    "between requests": [get(b"/")],
    "between requests, the first in pieces": [get(b"/")[:9], get(b"/")[9:]],
    "behind a later one": [get(b"/later")],
    "during an answer": [get(b"/waits")],
}


def test_idle_connections_end_alike(tmp_path):
    both = Pair(tmp_path, "web.py", "said", "short")
    with ThreadPoolExecutor(2 * len(IDLE)) as threads:
        ends = [[threads.submit(wait_for_end, server, pieces) for pieces in IDLE.values()]
                for server in both.servers]
        epoll, ours = ([end.result() for end in one] for one in ends)
    assert ours == epoll
    assert [state for _, state in epoll] == ["closed"] * (len(IDLE) - 1) + ["open"]
    both.end()
    epoll, ours = (sorted(line.split("] ")[-1] for line in lines_of(server))
                   for server in both.servers)
    both.kill()
    assert ours == epoll and sum("Timing out" in line for line in epoll) == len(IDLE) - 1


def wait_for_end(server, pieces):
    """What came until it was closed, or for 4 seconds."""
    came = b""
    with server.connect(timeout=4) as link:
        for piece in pieces:
            link.sendall(piece)
            time.sleep(0.05)
        began = time.monotonic()
        try:
            while more := link.recv(65536):
                came += more
        except TimeoutError:
            return mask(came, server.port), "open"
        assert time.monotonic() - began > 0.5
    return mask(came, server.port), "closed"
