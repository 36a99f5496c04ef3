"""What the fast path reads of a request, and what Twisted's own parser reads of the same bytes.

`GUSTNADO_EXAMPLES=200000` makes up more requests than the usual ones.
"""

import os
import random
from pathlib import Path

import pytest

pytest.importorskip("twisted")

from gustnado._gustnado import read_plain_request
from requests_sent import get, kinds, post
from twisted.internet.testing import StringTransport
from twisted.web import http

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
EXAMPLES = int(os.environ.get("GUSTNADO_EXAMPLES", "4000"))

# What requests are made of, and cut and mixed with: each decides something in one of the parsers.
PIECES = [
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b": ", b"\x00", b"\x7f", b"\xe9", b"\xff", b"&", b"%",
    b"GET", b"POST", b"CONNECT", b"OPTIONS", b"get", b"/", b"*", b"?a=1&b=2", b"#a", b"http://a/b",
    b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"Host: a", b"Host: b:80", b"Host:",
    b"Content-Length: 3", b"content-length:0", b"Content-Length: 003", b"Content-Length: +3",
    b"Content-Length: 3, 3", b"Content-Length: 0_3", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity", b"Expect: 100-continue", b"Expect: cake", b"Upgrade: h2c",
    b"Connection: close", b"Cookie: a=1; b", b"X-Odd: 1", b"x-odd:  2 \t", b" folded", b"\tfolded",
    b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"x" * 200,
]


class Read(http.Request):
    """A request that is only noted."""

    def requestReceived(self, command, path, version):
        self.content.seek(0)
        fields = {name: list(values) for name, values in self.requestHeaders.getAllRawHeaders()}
        read = (command, path, version.decode(), fields, self.content.read())
        self.channel.read.append(read)


def twisted(received):
    """What Twisted reads of these bytes; nothing if it has sent something, or has some left."""
    channel = http.HTTPChannel()
    channel.read, channel.requestFactory, channel.timeOut = [], Read, None
    transport = StringTransport()
    channel.makeConnection(transport)
    channel.dataReceived(received)
    left = channel._buffer + b"".join(channel._dataBuffer)
    is_whole = not left and not transport.value() and not transport.disconnecting
    return channel.read, is_whole


def check(received):
    """Whether the fast path takes a request, which Twisted then has to read alike."""
    found = read_plain_request(received)
    if found is None:
        return False
    method, target, version, lines, body, length = found
    fields = {}
    for name, value in lines:
        spelled = http.Headers({name: [b""]})
        name = next(iter(spelled.getAllRawHeaders()))[0]
        fields.setdefault(name, []).append(value)
    read, is_whole = twisted(received[:length])
    assert (read, is_whole) == ([(method, target, version, fields, body)], True), received
    assert twisted(received[:length - 1])[0] == [], received
    return True


def mutated(chance, requests):
    """A request with some of its bytes taken away, doubled, replaced, or mixed with others'."""
    made = bytearray(chance.choice(requests))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 5))):
        at, piece = chance.randrange(len(made) + 1), chance.choice(PIECES)
        match chance.randrange(6):
            case 0:
                del made[at:at + chance.randint(1, 4)]
            case 1:
                made[at:at] = piece
            case 2:
                made[at:at + len(piece)] = piece
            case 3:
                # A line between two others.
                ends = [end for end in range(len(made)) if made[end:end + 2] == b"\r\n"]
                at = chance.choice(ends) if ends else at
                made[at:at] = b"\r\n" + piece
            case 4:
                made[at:at + 1] = bytes([chance.randrange(256)])
            case 5:
                other = chance.choice(requests)
                made[at:] = other[chance.randrange(len(other) + 1):]
        if len(made) > 40_000:
            break
    return bytes(made)


def seeds():
    found = [*kinds(b"/seen").values()]
    for folder in ("twisted", "head", "framing"):
        found += [path.read_bytes() for path in sorted((CORPUS / folder).iterdir())]
    return [seed for seed in found if seed]


def test_every_kind_of_request_is_read_as_twisted_reads_it():
    taken = sum(map(check, seeds()))
    assert taken > 50, taken


def test_made_up_requests_are_read_as_twisted_reads_them():
    chance, requests, taken = random.Random(1), [one for one in seeds() if len(one) < 2000], 0
    for _ in range(EXAMPLES):
        taken += check(mutated(chance, requests))
    # The others are for Twisted. If nearly all were, this test would compare nothing.
    assert taken > EXAMPLES // 10, taken


@pytest.mark.parametrize("request_", [
    get(b"/"), get(b"/a?b=c", b"Cookie: d\r\nX: \t\xe9 \r\n"), post(b"/", b"abc"),
    b"GET / HTTP/1.0\r\n\r\n", get(b"http://a.example/b"), get(b"/") + get(b"/"),
])
def test_what_clients_send_is_taken(request_):
    assert check(request_)


@pytest.mark.parametrize("request_", [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\r\n" + get(b"/"),
    get(b"/", version=b"HTTP/1.2"),
    get(b"/", method=b"A&B"),
    get(b"/", b"A&B: c\r\n"),
    get(b"/", b"Expect: 100-continue\r\n"),
    get(b"/", b"Upgrade: websocket\r\n"),
    get(b"/", b"X: a\x01b\r\n"),
    get(b"/", b"X: a\r\n b\r\n"),
    get(b"/\xb0"),
    post(b"/", b"abc", b"Content-Length: 3\r\n"),
    post(b"/", b"abc")[:-1],
    get(b"/")[:-1],
    get(b"/", b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
    get(b"/", b"Transfer-Encoding: identity\r\n"),
    get(b"/", b"X: 1\r\n" * 499),
    get(b"/", b"X: " + b"x" * 16_384 + b"\r\n"),
])
def test_what_is_unusual_is_left_to_twisted(request_):
    assert read_plain_request(request_) is None
