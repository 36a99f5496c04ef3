"""To any request, this reactor responds as Twisted's own: requests are made up by hypothesis."""

import itertools
import os

import pytest

pytest.importorskip("twisted")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, event, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pairs import Pair  # noqa: E402

EXAMPLES = int(os.environ.get("GUSTNADO_EXAMPLES", "200"))

methods = st.sampled_from([b"GET"] * 9 + [b"HEAD", b"POST", b"POST", b"PUT", b"OPTIONS", b"get",
                           b"G\xe9T", b"CONNECT"])
targets = st.one_of(
    st.sampled_from([b"/", b"/seen", b"/seen?a=1&b=%20", b"/tree/a/b", b"/late/x", b"/later",
                     b"/cookie", b"/absent", b"*", b"http://b/seen", b"//", b"/../seen", b"?",
                     b"/closes", b"/files/text.txt", b"/status?code=204", b"/wsgi/x"]),
    st.binary(max_size=8).map(lambda odd: b"/seen?" + odd),
)
versions = st.sampled_from([b"HTTP/1.1"] * 20 + [b"HTTP/1.0"] * 4
                           + [b"HTTP/2.0", b"HTTP/1.1 ", b"http/1.1", b""])
ends = st.sampled_from([b"\r\n"] * 90 + [b"\n", b"\r\r\n", b"\r"])
names = st.sampled_from([b"Host", b"X-Odd", b"x-odd", b"Cookie"] * 4 + [
                         b"Connection", b"Content-Type",
                         b"Content-Length", b"Transfer-Encoding", b"Expect", b"Upgrade", b"Range",
                         b"Accept-Encoding", b"Authorization", b"If-None-Match", b"X Odd", b""])
values = st.one_of(
    st.sampled_from([b"a", b"close", b"Close", b"keep-alive", b"x, close", b"chunked", b"gzip",
                     b"3", b"0", b"+3", b"3, 3", b"100-continue", b"websocket", b"a=1; b=2",
                     b"bytes=1-4", b"application/x-www-form-urlencoded", b'"x"', b"",
                     b"multipart/form-data; boundary=X", b"Basic am9lOmJsb3c=", b"a\r\n b"]),
    st.binary(max_size=6),
)
blanks = st.sampled_from([b" "] * 6 + [b"", b"\t ", b"  "])
colons = st.sampled_from([b":"] * 40 + [b" :", b""])
fields = st.tuples(names, colons, blanks, values).map(b"".join)
bodies = st.one_of(st.just(b""), st.sampled_from([b"a=1", b"3\r\nabc\r\n0\r\n\r\n", b"\r\n"]),
                   st.binary(max_size=12))


PAGES = [b"/", b"/seen", b"/seen?a=1&b", b"/tree/a", b"/late/x", b"/later", b"/cookie", b"/absent",
         b"/closes", b"/fails", b"/session", b"/files/text.txt", b"/status?code=304", b"/wsgi"]
PLAIN = [b"Host: a", b"X-Odd: 1", b"x-odd:2 ", b"Cookie: a=1; b=2", b"Range: bytes=1-4", b"DNT: 1",
         b"Accept-Encoding: gzip", b"Authorization: Basic am9lOmJsb3c=", b'If-None-Match: "x"',
         b"Connection: keep-alive", b"Content-Type: application/x-www-form-urlencoded"]


@st.composite
def plain_requests(draw):
    """What the engine takes, but for what is rare."""
    body = draw(st.one_of(st.just(b""), st.just(b"a=1&b=2"), st.binary(max_size=9)))
    method = b"POST" if body else draw(st.sampled_from([b"GET", b"GET", b"HEAD"]))
    lines = [method + b" " + draw(st.sampled_from(PAGES)) + b" HTTP/1.1"]
    lines += draw(st.lists(st.sampled_from(PLAIN), max_size=5))
    if body:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@st.composite
def odd_requests(draw):
    lines = [b" ".join((draw(methods), draw(targets), draw(versions)))]
    lines += draw(st.lists(fields, max_size=5))
    body = draw(bodies)
    if draw(st.booleans()):
        lines.append(b"Content-Length: %d" % len(body))
    return b"".join(line + draw(ends) for line in [*lines, b""]) + body


requests = st.one_of(plain_requests(), plain_requests(), odd_requests())


@st.composite
def sendings(draw):
    """A few requests one behind the other, in pieces."""
    whole = b"".join(draw(st.lists(requests, min_size=1, max_size=3)))
    cuts = draw(st.lists(st.integers(0, len(whole)), max_size=4))
    cuts = [0, *sorted(cuts), len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(cuts) if a < b]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pair = Pair(tmp_path_factory.mktemp("site"), "web.py", "quiet")
    yield pair
    pair.kill()


@settings(max_examples=EXAMPLES, deadline=None, database=None,
          suppress_health_check=list(HealthCheck))
@given(pieces=sendings())
def test_anything_is_answered_alike(site, pieces):
    for quiet in (0.05, 0.5):
        epoll, ours = site.ask(pieces, 0.001, quiet)
        if epoll == ours:
            break
    event(f"answers: {epoll[0].count(b'HTTP/1.')}, and {epoll[1]}")
    assert ours == epoll
